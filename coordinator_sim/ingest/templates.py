"""The form of one known log message, and the pieces that many of them share.

Named groups of a pattern are columns of the trace; `p` is the offsets partition, `ms` a duration,
`a_*` goes to `attrs`, `instance` is an instance id in Java's or Scala's spelling, `many` lists
members.
"""

import re
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import Event


class Template(Struct, frozen=True):
    """One message.

    Args:
        name: For counts and for the version fingerprint.
        event: None for a message that is known but tells nothing the trace keeps.
        anchor: Literal text that the message contains; checked before the pattern.
        pattern: The message's fixed words, with groups for what varies.
        attrs: Fixed entries of the event's `attrs`.
    """

    name: str
    event: Event | None
    anchor: str
    pattern: re.Pattern[str]
    attrs: dict[str, str]


def template(
    name: str, event: Event | None, anchor: str, pattern: str = "", **attrs: str
) -> Template:
    """A template; without a pattern the anchor says it all."""
    return Template(name, event, anchor, re.compile(pattern or re.escape(anchor)), attrs)


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
