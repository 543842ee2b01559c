"""Maps a broker's reason for a rebalance, free text, to `RebalanceReason`.

Kafka changed the wording and its capitals several times; the fixed words of each version are here.
"""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import RebalanceReason

_CLIENT_REASON: Final = "; client reason: "
_NO_INSTANCE: Final = frozenset({"", "None", "null", "Some(null)", "Optional.empty"})
_WRAPPED: Final = re.compile(r"(?:Some\(|Optional\[)(.*)[)\]]$", re.DOTALL)


class ReasonRule(Struct, frozen=True):
    """One wording: the fixed words, with groups for the member and its instance."""

    reason: RebalanceReason
    pattern: re.Pattern[str]


def _rule(reason: RebalanceReason, pattern: str) -> ReasonRule:
    return ReasonRule(reason, re.compile(pattern, re.IGNORECASE | re.DOTALL))


RULES: Final = (
    _rule(
        RebalanceReason.MEMBER_JOINED,
        r"adding new member (?P<member>.*?)(?: with group instance ?id (?P<instance>.*))?$",
    ),
    _rule(
        RebalanceReason.METADATA_CHANGED,
        r"updating metadata for static member (?P<member>.*?)"
        r"(?: with instance id (?P<instance>.*))?$",
    ),
    _rule(
        RebalanceReason.METADATA_CHANGED,
        r"updating metadata for member (?P<member>.*?)(?: during \w+)?$",
    ),
    _rule(RebalanceReason.LEADER_REJOIN, r"leader (?P<member>.*?)(?: re-joining group.*)?$"),
    _rule(
        RebalanceReason.MEMBER_REJOIN, r"member (?P<member>.*?) (?:is )?joining group during \w+"
    ),
    _rule(
        RebalanceReason.MEMBER_FAILED,
        # One letter tells the two endings apart, where a screen cut off the rest.
        r"removing member (?P<member>.*?) on h",
    ),
    _rule(RebalanceReason.MEMBER_LEFT, r"removing member (?P<member>.*?) on l"),
    _rule(
        RebalanceReason.MEMBER_LEFT, r"explicit `?leavegroup`? request(?: for \((?P<member>.*)\))?"
    ),
    _rule(RebalanceReason.SYNC_TIMEOUT, r"removing .* on pending sync request expiration"),
    _rule(
        RebalanceReason.STATIC_PROTOCOL_CHANGE,
        r"group's selectedprotocol will change because static member (?P<member>.*?)"
        r"(?: with instance id (?P<instance>.*?)(?: joined with.*)?)?$",
    ),
    _rule(
        RebalanceReason.STORE_ERROR,
        r"error (?:\S+ )?when storing group assignment ?during syncgroup"
        r"(?: \(member: (?P<member>.*)\))?",
    ),
    _rule(RebalanceReason.OVER_CAPACITY, r"freshly-loaded group .*is over capacity"),
    _rule(RebalanceReason.DOWNGRADE, r"downgrade group "),
)
"""Rules in order: the first that matches from the start of the text wins."""


class Cause(Struct, frozen=True):
    """A reason taken apart.

    Args:
        text: Part of the broker, as written.
        client_reason: Reason of the client (KIP-800); None when nothing was logged.
        member_id: The one member named; None when none or several are.
    """

    reason: RebalanceReason
    text: str
    client_reason: str | None = None
    member_id: str | None = None
    group_instance_id: str | None = None


def classify(text: str) -> Cause:
    """Return the meaning of a `(reason: ...)`; UNKNOWN for words that no version writes."""
    broker_text, found, client_text = text.partition(_CLIENT_REASON)
    client_reason = client_text if found else None
    for rule in RULES:
        match = rule.pattern.match(broker_text)
        if match is not None:
            parts = match.groupdict()
            member = parts.get("member") or None
            several = member is not None and ", " in member
            return Cause(
                rule.reason,
                broker_text,
                client_reason,
                None if several else member,
                instance_id(parts.get("instance")),
            )
    return Cause(RebalanceReason.UNKNOWN, broker_text, client_reason)


def instance_id(text: str | None) -> str | None:
    """Parse a group instance id as Java or Scala prints it: `None`, `Some(x)`, `null` or bare."""
    if text is None or text in _NO_INSTANCE:
        return None
    wrapped = _WRAPPED.match(text)
    return wrapped.group(1) if wrapped is not None else text
