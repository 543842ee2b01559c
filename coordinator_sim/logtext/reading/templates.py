"""The form of one known log message, and the pieces that many of them share.

Named groups of a pattern are columns of the trace; `p` is the offsets partition, `ms` a duration,
`a_*` goes to `attrs`, `instance` is an instance id in Java's or Scala's spelling, `many` lists
members.
"""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import InvariantViolation
from coordinator_sim.trace.events import Event


class Template(Struct, frozen=True):
    """One log message.

    Args:
        name: Name for counts and for the version fingerprint.
        event: Kind of the event; None for a known message that the trace does not keep.
        anchor: Literal text that the message contains; checked before the pattern.
        pattern: The message's fixed words, with groups for the variable parts.
        attrs: Fixed entries of the event's `attrs`.
        lead: Literal text that the pattern begins with.
        reach: Number of characters of a message that the pattern reads.
    """

    name: str
    event: Event | None
    anchor: str
    pattern: re.Pattern[str]
    attrs: dict[str, str]
    lead: str
    reach: int

    def match(self, message: str) -> re.Match[str] | None:
        """Return the match at the first places of the lead; None when there is none.

        A pattern is tried at few places and over a bounded length, so that no line takes long,
        however often it repeats a message's words.
        """
        at = message.find(self.lead)
        for _ in range(_TRIES):
            if at < 0:
                return None
            match = self.pattern.match(message, at, self.reach)
            if match is not None:
                return match
            at = message.find(self.lead, at + 1)
        return None


_TRIES: Final = 3
_REACH: Final = 8_192
"""Characters of a message that are searched: Kafka's longest without a list has 2,000."""
_REACH_OF_LISTS: Final = 4_000_000
_LEAD: Final = re.compile(r"(?:[\w ',:-]|\\[\[\].()])+(?![?*+{|])")


def template(
    name: str, event: Event | None, anchor: str, pattern: str = "", **attrs: str
) -> Template:
    """Return a template; without a pattern the anchor is the whole message."""
    text = pattern or re.escape(anchor)
    literal = _LEAD.match(text)
    if pattern and literal is None:
        raise InvariantViolation(f"the pattern of {name!r} does not begin with literal text")
    lead = literal.group().replace("\\", "") if pattern and literal is not None else anchor
    has_list = any(f"(?P<{group}>" in text for group in LISTS)
    return Template(
        name,
        event,
        anchor,
        re.compile(text, re.DOTALL),
        attrs,
        lead,
        _REACH_OF_LISTS if has_list else _REACH,
    )


LISTS: Final = ("many", "groups", "a_member_ids", "map", "a_partitions", "assignment_text")
"""Pattern groups that grow with a group's members or partitions."""
GROUP: Final = r"(?P<group_id>.*?)"
MEMBER: Final = r"(?P<member_id>.*?)"
GENERATION: Final = r"(?P<generation>\d+)"
LOG: Final = r"(?:\[?__consumer_offsets[-,](?P<p>\d+)\]?|\S+)"
PARTITION: Final = r"(?: \(__consumer_offsets-(?P<p>\d+)\))?"
CLIENT_REASON: Final = r"(?:; client reason: (?P<client_reason>.*))?"
LEAVE: Final = r"through explicit `?LeaveGroup`?(?: request)?"
STATE: Final = r"in (?:state )?(?P<a_in_state>\w+)(?: state)?"
METADATA: Final = (
    r"MemberMetadata\(memberId=(?P<member_id>.*?), groupInstanceId=(?P<instance>.*?), "
    r"clientId=(?P<client_id>.*?), clientHost=(?P<client_host>.*?), "
    r"sessionTimeoutMs=(?P<session_timeout_ms>\d+), "
    r"rebalanceTimeoutMs=(?P<rebalance_timeout_ms>\d+), supportedProtocols=.*?\)+"
)
