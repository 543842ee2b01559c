"""The story of a scenario's run: its events as lines, without those that only keep it going.

Left out are accepted heartbeats, commits, fetches and requests that only lead to what is told.
Members are called by their process: `consumer-2` is the first member id of that client, and
`consumer-2/2` the second. Assignments are told by what they hand out.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.embedded.connect_protocol import decode_connect_assignment
from coordinator_sim.messages.embedded.consumer_protocol import decode_assignment
from coordinator_sim.messages.embedded.contents import ConnectAssignment
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.rebalances import is_of_epoch_group
from coordinator_sim.trace.start_up import LONG_READING_US, reading_us
from coordinator_sim.trace.story import story_line, widest_group

LEFT_OUT: Final = frozenset(
    {
        Event.JOIN_REQ,
        Event.SYNC_REQ,
        Event.OFFSET_FETCH,
        Event.POSITION,
        Event.RECORDS_PROCESSED,
        Event.LOAD_DONE,
        Event.HEARTBEATS_ELIDED,
        Event.CALM_LEFT_OUT,
    }
)
"""Events that a reader of the story does not miss."""
TOLD_IF_REFUSED: Final = frozenset(
    {Event.JOIN_RESP, Event.SYNC_RESP, Event.HEARTBEAT, Event.OFFSET_COMMIT}
)
"""Events that are told only with an error that is not part of an ordinary join."""
ACCEPTED: Final = (None, ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED)
_RESOURCE_KIND: Final = re.compile(r"\b[pct]:")


def scenario_story(events: Sequence[TraceEvent]) -> list[str]:
    """The story of a run, line by line, without line ends.

    Args:
        events: Of one run, in trace order.
    """
    names = member_names(events)
    told = [_readable(event) for event in _told(events)]
    width = widest_group(told)
    return [story_line(event, names, group_width=width) for event in told]


def member_names(events: Iterable[TraceEvent]) -> dict[str, str]:
    """What a story calls each member: its client, and from the second id on the id's number."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    for event in events:
        member_id, client_id = event.member_id, event.client_id
        if not member_id or not client_id or member_id in names:
            continue
        counts[client_id] = counts.get(client_id, 0) + 1
        count = counts[client_id]
        names[member_id] = client_id if count == 1 else f"{client_id}/{count}"
    return names


def _told(events: Iterable[TraceEvent]) -> Iterator[TraceEvent]:
    for event in events:
        is_accepted = event.error_code in ACCEPTED
        if event.event in LEFT_OUT or (event.event in TOLD_IF_REFUSED and is_accepted):
            continue
        if reading_us(event) < LONG_READING_US:
            continue
        yield event


def _readable(event: TraceEvent) -> TraceEvent:
    """The event with what it hands out or gives up as text, and with a name for its member."""
    if is_of_epoch_group(event):
        # Its line says what a member has, gives up and waits for by itself.
        return msgspec.structs.replace(event, member_id=event.member_id or event.client_id)
    handed = event.reason_text
    attrs = event.attrs
    if event.assignment:
        handed = _assignment_text(event.protocol_type, event.assignment)
    elif "resources" in attrs:
        handed = _RESOURCE_KIND.sub("", attrs["resources"])
        attrs = {name: value for name, value in attrs.items() if name != "resources"}
    return msgspec.structs.replace(
        event,
        assignment=None,
        attrs=attrs,
        reason_text=handed,
        member_id=event.member_id or event.client_id,
    )


def _assignment_text(protocol_type: str | None, assignment: bytes) -> str | None:
    try:
        if protocol_type == "connect":
            return _connect_text(decode_connect_assignment(assignment))
        partitions = decode_assignment(assignment).partitions
    except WireFormatError:
        return None
    return " ".join(f"{topic}-{number}" for topic, number in partitions) or "nothing"


def _connect_text(assignment: ConnectAssignment) -> str:
    """What a worker is given (+) and must stop (-), and the scheduled delay."""
    given = [*assignment.connectors, *(f"{name}-{n}" for name, n in assignment.tasks)]
    stopped = [
        *assignment.revoked_connectors,
        *(f"{name}-{n}" for name, n in assignment.revoked_tasks),
    ]
    words = [f"+{name}" for name in given] + [f"-{name}" for name in stopped]
    if assignment.delay_ms:
        words.append(f"delay={assignment.delay_ms / 1_000:g}s")
    return " ".join(words) or "nothing new"
