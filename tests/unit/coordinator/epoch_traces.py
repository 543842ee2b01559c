"""Traces of groups with epochs, as tests look at them: lines, and the log read back."""

from collections.abc import Iterable, Mapping
from typing import Final

from coordinator_sim.messages.records import LogBatch
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TraceEvent
from coordinator_sim.trace.offsets_topic import OffsetsTopic, StoredRecord
from coordinator_sim.trace.story import story_line

_REQUESTS: Final = {Event.JOIN_REQ, Event.JOIN_RESP, Event.LEAVE_REQ, Event.HEARTBEAT}
_UNKNOWN_TO_RECORDS: Final = {
    *_REQUESTS,
    *(Event.GROUP_LOADED, Event.GROUP_UNLOADED, Event.STORE_FAILED),
}
_DEPARTURES: Final = {
    Event.MEMBER_FAILED: Event.MEMBER_LEFT,
    Event.MEMBER_KICKED: Event.MEMBER_LEFT,
}
_WENT: Final = (
    *(RebalanceReason.MEMBER_FAILED, RebalanceReason.REBALANCE_TIMEOUT),
    *(RebalanceReason.MEMBER_LEFT, RebalanceReason.UNKNOWN),
)
"""Reasons of an epoch that a departure began; records without commits do not tell which."""
_ATTRS: Final = (
    *("state", "revoking", "waiting", "old_member_id", "standby", "warmup"),
    *("revoking_standby", "revoking_warmup", "group_type"),
)


def lines_of(events: Iterable[TraceEvent]) -> list[str]:
    """What was told of groups, as a reader sees it, requests left out."""
    shown = [e for e in events if e.event not in _REQUESTS and e.group_id is not None]
    return [" ".join(story_line(event).split()[2:]) for event in shown]


def own_lines(events: Iterable[TraceEvent]) -> list[TraceEvent]:
    """The events of a coordinator that its records tell too."""
    return [e for e in events if e.group_id and e.event not in _UNKNOWN_TO_RECORDS]


def read_back(batches: Iterable[LogBatch], names: Mapping[bytes, str]) -> list[TraceEvent]:
    """The batches of the offsets topic as a trace."""
    topic = OffsetsTopic(Source.OFFSETS_SEGMENT, "log")
    for topic_id, name in names.items():
        topic.name_topic(topic_id, name)
    return [
        event
        for batch in batches
        for event in topic.read(
            StoredRecord(record=record, offset=batch.base_offset, timestamp_ms=batch.timestamp_ms)
            for record in batch.records
        )
    ]


def alike(event: TraceEvent) -> tuple[object, ...]:
    """What the records tell of an event too: not who computed a target, nor why a member went."""
    return (
        _DEPARTURES.get(event.event, event.event),
        *(event.generation, event.member_id, event.group_instance_id, event.members),
        None if event.reason in _WENT else event.reason,
        *(event.assignment, event.subscription, event.protocol_type),
        *(event.attrs.get(name) for name in _ATTRS),
    )
