"""Rebuilds the requests of a recorded trace as a coordinator received them.

A simulation and a capture record every request, but not all fields: missing ones are taken from
the answers, or listed as assumed. `recordings` drives the requests.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.partitioning import partition_for
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordinator_sim.messages.leave_group import LeaveGroupRequest, MemberIdentity
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from coordinator_sim.trace.events import Event, TraceEvent

RecordedRequest = (
    JoinGroupRequest | SyncGroupRequest | HeartbeatRequest | LeaveGroupRequest | OffsetCommitRequest
)
REQUESTS: Final = frozenset(
    {Event.JOIN_REQ, Event.SYNC_REQ, Event.LEAVE_REQ, Event.HEARTBEAT, Event.OFFSET_COMMIT}
)
"""Events that stand for a request; the last two are recorded with their answer."""
ISSUES: Final = frozenset({Event.MEMBER_ID_ASSIGNED, Event.MEMBER_ADDED, Event.STATIC_REPLACED})
"""Events after a JoinGroup without a member id that show an issued id."""
_WORKER_PROTOCOLS: Final = {
    "sessioned": ("sessioned", "compatible", "eager"),
    "compatible": ("compatible", "eager"),
}
"""Protocols that a Connect worker offers. Source: kafka trunk, WorkerCoordinator.metadata."""
_UNSUPPORTED: Final = "none"
_ASSUMED_PROTOCOLS: Final = (
    "members offer all protocols of their group, the selected one first, with one subscription "
    "for all"
)
_ASSUMED_SUBSCRIPTION: Final = "members have the subscription of their first protocol for all"
_USUAL_PARTITION_COUNT: Final = 50
_LARGEST_PARTITION_COUNT: Final = 1_000


_LACKING: Final = (Event.HEARTBEATS_ELIDED, Event.CALM_LEFT_OUT)
"""Events that stand for time without its heartbeats."""


class Recording:
    """The events of a trace, indexed for rebuilding its requests.

    Args:
        events: Events of coordinators and clients, in emission order.
        label: Assignor label of the run: consumers' protocols joined with plus signs.

    Raises:
        DataError: heartbeats were elided when the trace was made.
    """

    def __init__(self, events: list[TraceEvent], label: str | None) -> None:
        if any(event.event in _LACKING for event in events):
            raise DataError(
                "the trace lacks heartbeats, without which sessions run out in a replay: "
                "run its scenario again without --elide, and with calm_ms 0 in its variety"
            )
        self.events = events
        self.partition_count = _partition_count(events)
        self._label = label or ""
        self._selected = _selected_protocols(events)
        self._next_protocol = _next_protocols(events)
        self._assignments = _assignments(events)
        self._batches = _leave_batches(events)

    def request(self, position: int) -> RecordedRequest | None:
        """Return the request of the event at this position; None for a part of another."""
        event = self.events[position]
        match event.event:
            case Event.JOIN_REQ:
                return self._join(position, event)
            case Event.SYNC_REQ:
                return self._sync(position, event)
            case Event.LEAVE_REQ:
                batch = self._batches.get(position)
                return None if batch is None else _leave(event, batch)
            case Event.HEARTBEAT:
                return _heartbeat(event)
            case _:
                return _commit(event)

    def issued_id(self, position: int) -> str | None:
        """Return the member id issued for the JoinGroup at this position."""
        join = self.events[position]
        for event in self.events[position + 1 :]:
            if event.ts_us != join.ts_us:
                return None
            if event.broker_id != join.broker_id or event.group_id != join.group_id:
                continue
            if event.event in REQUESTS:
                return None
            if event.event in ISSUES:
                return event.member_id
        return None

    def assumptions(self) -> list[str]:
        """Return the assumptions about JoinGroups that the trace leaves open; mostly empty."""
        texts: dict[str, None] = {}
        for position, event in enumerate(self.events):
            if event.event is not Event.JOIN_REQ:
                continue
            selected = self._next_protocol.get(position, "")
            told = _told_protocols(event)
            if selected in told[1:]:
                texts[_ASSUMED_SUBSCRIPTION] = None
            elif not told and len(self._guessed_protocols(event.group_id or "", selected)) > 1:
                texts[_ASSUMED_PROTOCOLS] = None
        return list(texts)

    def _join(self, position: int, event: TraceEvent) -> JoinGroupRequest:
        group_id = event.group_id or ""
        selected = self._next_protocol.get(position, "")
        offered = _told_protocols(event) or self._guessed_protocols(group_id, selected)
        return JoinGroupRequest(
            group_id=group_id,
            session_timeout_ms=event.session_timeout_ms or 0,
            rebalance_timeout_ms=-1
            if event.rebalance_timeout_ms is None
            else event.rebalance_timeout_ms,
            member_id=event.member_id or "",
            group_instance_id=event.group_instance_id,
            protocol_type=event.protocol_type or "",
            protocols=tuple(
                JoinGroupRequestProtocol(name, event.subscription or b"") for name in offered
            ),
            reason=event.client_reason,
        )

    def _guessed_protocols(self, group_id: str, selected: str) -> tuple[str, ...]:
        """Return a member's protocols where its JoinGroup omits them: the selected one first."""
        known = self._selected.get(group_id, {})
        first = selected or next(iter(known), _UNSUPPORTED)
        names = [first, *known, *_WORKER_PROTOCOLS.get(first, ())]
        for part in self._label.split(", "):
            labelled = part.split("+")
            if first in labelled:
                names.extend(labelled)
        return tuple(dict.fromkeys(names))

    def _sync(self, position: int, event: TraceEvent) -> SyncGroupRequest:
        return SyncGroupRequest(
            group_id=event.group_id or "",
            generation_id=-1 if event.generation is None else event.generation,
            member_id=event.member_id or "",
            group_instance_id=event.group_instance_id,
            protocol_type=event.protocol_type,
            protocol_name=event.protocol_name,
            assignments=self._assignments.get(position, ()),
        )


class Asked(Struct, frozen=True):
    """Key that a request shares with its answer: broker, API and connection."""

    broker_id: int | None
    api_key: int | None
    correlation_id: int | None


def asked_by(event: TraceEvent) -> Asked:
    """Return the key of a request's or an answer's event."""
    return Asked(event.broker_id, event.api_key, event.correlation_id)


def context_of(event: TraceEvent, token: int) -> RequestContext:
    """Return the sender and version of the request of an event."""
    return RequestContext(
        token=token,
        api_version=event.api_version or 0,
        client_id=event.client_id or "",
        client_host=event.client_host or "/127.0.0.1",
    )


def _told_protocols(event: TraceEvent) -> tuple[str, ...]:
    """Return a JoinGroup's protocols in order of preference; empty in an older trace."""
    names = event.attrs.get("protocols", "")
    return tuple(names.split(",")) if names else ()


def _heartbeat(event: TraceEvent) -> HeartbeatRequest:
    return HeartbeatRequest(
        group_id=event.group_id or "",
        generation_id=-1 if event.generation is None else event.generation,
        member_id=event.member_id or "",
        group_instance_id=event.group_instance_id,
    )


def _commit(event: TraceEvent) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for entry in event.offsets:
        topics.setdefault(entry.topic, []).append(
            OffsetCommitRequestPartition(
                entry.partition, entry.offset, entry.leader_epoch, committed_metadata=entry.metadata
            )
        )
    return OffsetCommitRequest(
        group_id=event.group_id or "",
        topics=tuple(
            OffsetCommitRequestTopic(name, partitions=tuple(own)) for name, own in topics.items()
        ),
        generation_id_or_member_epoch=-1 if event.generation is None else event.generation,
        member_id=event.member_id or "",
        group_instance_id=event.group_instance_id,
    )


def _leave(event: TraceEvent, batch: list[TraceEvent]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=event.group_id or "",
        members=tuple(
            MemberIdentity(
                member_id=entry.member_id or "",
                group_instance_id=entry.group_instance_id,
                reason=entry.client_reason,
            )
            for entry in batch
        ),
    )


def _partition_count(events: list[TraceEvent]) -> int:
    """Return a number of offsets partitions that puts every group where the trace has it."""
    places = {
        event.group_id: event.offsets_partition
        for event in events
        if event.group_id is not None and event.offsets_partition is not None
    }
    count: int
    for count in (_USUAL_PARTITION_COUNT, *range(1, _LARGEST_PARTITION_COUNT)):
        if all(partition_for(group, count) == place for group, place in places.items()):
            return count
    return _USUAL_PARTITION_COUNT


def _selected_protocols(events: list[TraceEvent]) -> dict[str, dict[str, None]]:
    """Return the protocols of each group's generations, in order of first use."""
    selected: dict[str, dict[str, None]] = {}
    for event in events:
        if event.event is Event.JOIN_RESP and event.protocol_name and event.group_id:
            selected.setdefault(event.group_id, {})[event.protocol_name] = None
    return selected


def _next_protocols(events: list[TraceEvent]) -> dict[int, str]:
    """Return for each JoinGroup, by position, the next protocol of its group."""
    upcoming: dict[str, str] = {}
    found: dict[int, str] = {}
    for position in range(len(events) - 1, -1, -1):
        event = events[position]
        if event.group_id is None:
            continue
        if event.event is Event.JOIN_COMPLETE and event.protocol_name:
            upcoming[event.group_id] = event.protocol_name
        elif event.event is Event.JOIN_REQ and event.group_id in upcoming:
            found[position] = upcoming[event.group_id]
    return found


def _assignments(events: list[TraceEvent]) -> dict[int, tuple[SyncGroupRequestAssignment, ...]]:
    """Return each leader's assignments, listed after its SyncGroup, by its position."""
    latest: dict[tuple[str | None, str | None], int] = {}
    current: dict[str | None, int] = {}
    found: dict[int, list[SyncGroupRequestAssignment]] = {}
    for position, event in enumerate(events):
        if event.event is Event.SYNC_REQ:
            latest[event.group_id, event.member_id] = position
        elif event.event is Event.SYNC_LEADER:
            leader = latest.get((event.group_id, event.member_id))
            if leader is not None:
                current[event.group_id] = leader
                found[leader] = []
        elif event.event is Event.ASSIGNED and event.group_id in current:
            entry = SyncGroupRequestAssignment(event.member_id or "", event.assignment or b"")
            found[current[event.group_id]].append(entry)
    return {position: tuple(entries) for position, entries in found.items()}


def _leave_batches(events: list[TraceEvent]) -> dict[int, list[TraceEvent]]:
    """Return the entries of each LeaveGroup, by the position of the first."""
    batches: dict[int, list[TraceEvent]] = {}
    first = -1
    for position, event in enumerate(events):
        if event.event is not Event.LEAVE_REQ:
            continue
        continues = (
            first >= 0
            and position == first + len(batches[first])
            and asked_by(events[first]) == asked_by(event)
            and events[first].ts_us == event.ts_us
        )
        if continues:
            batches[first].append(event)
        else:
            first = position
            batches[first] = [event]
    return batches
