"""The reasons that brokers give for a rebalance, `(reason: ...)`, in the words of each release.

The core words its reasons like Kafka 4.4; the writer reads them here and words them anew. Kafka
changed words and capitals several times, so capitals are ignored where a reason is read.

Source: every call of prepareRebalance and maybePrepareRebalance, GroupCoordinator.scala (2.1 to
3.9) and GroupMetadataManager.java (4.4).
"""

import re
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.logtext.wordings.fields import FIELDS
from coordinator_sim.logtext.wordings.releases import ALL, Release, releases
from coordinator_sim.logtext.wordings.texts import Pattern, parse, read, telling, words, write
from coordinator_sim.logtext.wordings.values import NOT_PROVIDED, instance_id
from coordinator_sim.trace.events import RebalanceReason, TraceEvent

_CLIENT_REASON: Final = "; client reason: "
_REASON_END: Final = re.compile(r"\)\.?$")


class Meaning(Struct, frozen=True):
    """What a wording means.

    Args:
        name: Name that the wordings of other releases for the same thing share.
        releases: Set of releases that write it.
    """

    reason: RebalanceReason
    name: str
    releases: int

    def says(self, text: str) -> "Wording":
        """Return the wording with this text, in the language of `texts`."""
        pattern = Pattern(parse(text), re.IGNORECASE).regex
        return Wording(self.reason, self.name, self.releases, text, pattern)


class Wording(Meaning, frozen=True):
    """One wording of a reason: its text, and the pattern that reads it."""

    text: str
    pattern: re.Pattern[str]


def _reason(reason: RebalanceReason, name: str, known: str) -> Meaning:
    return Meaning(reason, name, releases(known))


RULES: Final = (
    _reason(RebalanceReason.MEMBER_JOINED, "joined", "2.1-").says(
        "Adding new member {member_id}<2.3-2.4!| with group instanceid {option}>"
        "<2.5-!| with group instance id {option}><3.2-|; client reason: {join_reason}>"
    ),
    _reason(RebalanceReason.METADATA_CHANGED, "static metadata", "2.5-").says(
        "Updating metadata for static member {member_id}< with instance id {early_option}>"
        "<3.2-|; client reason: {join_reason}>"
    ),
    _reason(RebalanceReason.METADATA_CHANGED, "metadata", "2.1-").says(
        "Updating metadata for member {member_id}< during {in_state}>"
        "<3.2-|; client reason: {join_reason}>"
    ),
    _reason(RebalanceReason.LEADER_REJOIN, "leader", "2.6-").says(
        "<2.6-2.8|l><3.0-|L>eader {member_id}< re-joining group< during {in_state}>>"
        "<3.2-|; client reason: {join_reason}>"
    ),
    _reason(RebalanceReason.MEMBER_REJOIN, "rejoined", "2.6-").says(
        "Member {member_id} <java|is >joining group during {in_state}"
        "<3.2-|; client reason: {join_reason}>"
    ),
    # One letter tells the next two endings apart, where a screen cut off the rest.
    _reason(RebalanceReason.MEMBER_FAILED, "failed", "2.1-").says(
        "removing member {member_id} on h<eartbeat expiration{.}>"
    ),
    _reason(RebalanceReason.MEMBER_LEFT, "left", "2.1-3.9").says(
        "<2.1-2.8|r><3.0-3.9|R>emoving member {member_id} on L<eaveGroup>"
        "<3.2-|; client reason: {join_reason}>"
    ),
    _reason(RebalanceReason.MEMBER_LEFT, "left", "java").says(
        "explicit {LeaveGroup} request< for ({leavers})>< members.>"
    ),
    _reason(RebalanceReason.SYNC_TIMEOUT, "sync timeout", "2.8-").says(
        "Removing {removed} on pending sync request expiration"
    ),
    _reason(RebalanceReason.STATIC_PROTOCOL_CHANGE, "protocol", "2.5-").says(
        "Group's selectedProtocol will change because static member {member_id}"
        "< with instance id {early_option}< joined with< change of protocol>>>"
        "<3.2-|; client reason: {join_reason}>"
    ),
    # QUIRK: in Java two pieces of this text are put together without a blank.
    # Source: kafka trunk, GroupMetadataManager.classicGroupSyncToClassicGroup.
    _reason(RebalanceReason.STORE_ERROR, "store error", "2.1-").says(
        "<2.1-2.8|e><3.0-|E>rror <3.5-|{code} >when storing group assignment<-3.9| >during "
        "SyncGroup< (member: {member_to_last})>{.}"
    ),
    # QUIRK: 2.2 to 3.0 print the whole configuration where its limit is meant, and misspell the
    # word after it. The values but the limit are those of a broker's defaults here.
    # Source: kafka 2.8, GroupCoordinator.onGroupLoaded.
    _reason(RebalanceReason.OVER_CAPACITY, "over capacity", "2.2-").says(
        "Freshly-loaded group <java|{group_id} (size {size}) >is over capacity"
        "<2.2-3.0| (GroupConfig(6000,1800000,{limit},3000).groupMaxSize). Rebalacing>"
        "<3.1-3.9| ({limit}). Rebalancing><java| {limit}. Rebalancing>"
        "< in order to give a chance for consumers to commit offsets>"
    ),
    _reason(RebalanceReason.DOWNGRADE, "downgrade", "java").says(
        "Downgrade group <{group_id} from consumer to classic.>"
    ),
)
"""Wordings in order: the first that matches from the start of the text wins."""


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
    return _understand(text)[0]


def releases_of(text: str, *, is_whole: bool) -> int:
    """Return the set of releases that can have written a reason; all for unknown words."""
    for rule in RULES:
        if rule.pattern.match(text) is not None:
            pattern = telling(rule.text, is_searched=False)
            match = pattern.regex.match(text)
            return rule.releases & pattern.releases_of(match, is_whole=is_whole)
    return ALL


def spans_of(text: str) -> list[tuple[int, int]]:
    """Return where the values of a `(reason: ...)` stand, the client's reason among them."""
    text = _REASON_END.sub("", text)
    broker_text, found, _ = text.partition(_CLIENT_REASON)
    spans = []
    for rule in RULES:
        match = rule.pattern.match(broker_text)
        if match is not None:
            places = map(match.span, range(1, len(match.groups()) + 1))
            spans += [place for place in places if place[0] >= 0 and _is_value(text, place)]
            break
    if found:
        spans.append((len(broker_text) + len(found), len(text)))
    return spans


def _is_value(text: str, place: tuple[int, int]) -> bool:
    return instance_id(text[place[0] : place[1]]) is not None


def worded(event: TraceEvent, leaver: TraceEvent | None, release: Release) -> str:
    """Return the reason of a PREPARE_REBALANCE in the words of a release.

    Args:
        event: The rebalance; its reason is in the words of the core.
        leaver: Event of the member that left, where the log tells of it later.
        release: Release whose words are used.
    """
    text = event.reason_text or ""
    cause, name, parts = _understand(text)
    known = (one for one in RULES if one.name == name and one.releases & release.bit)
    wording = next(known, None)
    if wording is None:
        return release.shown(text)
    member_id, client_reason = cause.member_id or "", cause.client_reason
    if cause.reason is RebalanceReason.MEMBER_LEFT and leaver is not None:
        member_id, client_reason = leaver.member_id or "", leaver.client_reason or NOT_PROVIDED
    told = msgspec.structs.replace(
        event,
        group_id=parts.get("group_id"),
        member_id=member_id,
        group_instance_id=cause.group_instance_id,
        client_reason=client_reason,
        attrs={FIELDS[name].attr: value for name, value in parts.items() if FIELDS[name].attr},
    )
    return write(words(parse(wording.text), release), told, release)


def _understand(text: str) -> tuple[Cause, str, dict[str, str]]:
    """Return the meaning of a reason, the name of its wording and the values in it."""
    broker_text, found, client_text = text.partition(_CLIENT_REASON)
    client_reason = client_text if found else None
    for rule in RULES:
        match = rule.pattern.match(broker_text)
        if match is not None:
            parts = read(match)
            member = parts.get("member_id") or parts.get("leavers")
            one = None if member is not None and ", " in member else member
            instance = instance_id(parts.get("group_instance_id"))
            cause = Cause(rule.reason, broker_text, client_reason, one, instance)
            return cause, rule.name, parts
    return Cause(RebalanceReason.UNKNOWN, broker_text, client_reason), "", {}
