"""Decodes the assignments of a trace into the dense form: owners per generation.

Given a trace's events in emission order, an `OwnershipTracker` yields one `GenerationRow` per
generation with assignments, and the `ResourceRow`s they point to. It ignores what clients did with
an assignment: that depends on times, and is left to the reports.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.resources import connector_resource
from coordinator_sim.messages.embedded.connect_protocol import (
    decode_connect_assignment,
    decode_worker_metadata,
)
from coordinator_sim.messages.embedded.consumer_protocol import decode_subscription
from coordinator_sim.messages.embedded.contents import ConnectAssignment
from coordinator_sim.trace.batches import KIND_NUMBERS, EventBatch, Int64s, joined
from coordinator_sim.trace.batches import NOBODY as NO_GROUP
from coordinator_sim.trace.epoch_groups import TEMPORARY
from coordinator_sim.trace.epoch_members import resources_in
from coordinator_sim.trace.epoch_records import CONSUMER, STREAMS
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.schema import GenerationRow, ResourceRow

CONNECT: Final = "connect"
NOBODY: Final = -1

_DEPARTURES: Final = frozenset({Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.MEMBER_KICKED})
TARGET_EVENTS: Final = frozenset(
    {Event.TARGET_COMPUTED, Event.TARGET_ASSIGNED, Event.MEMBER_ADDED, Event.STATIC_REPLACED}
    | _DEPARTURES
)
"""Events that tell who is in a group with epochs, and what its targets give."""
_HEEDED: Final = frozenset(
    {
        Event.JOIN_REQ,
        Event.JOIN_COMPLETE,
        Event.SYNC_LEADER,
        Event.ASSIGNED,
        Event.EMPTY_ASSIGNMENT,
        Event.GROUP_EMPTY,
        Event.GROUP_DEAD,
    }
    | TARGET_EVENTS
)
_HEEDED_KINDS: Final = sorted(KIND_NUMBERS[kind] for kind in _HEEDED)
_NATURAL: Final = re.compile(r"(.*-)(\d+)", re.DOTALL)


def _natural_order(resource: str) -> tuple[str, int, str]:
    """Sort key that orders partitions and tasks of one topic or connector by number."""
    matched = _NATURAL.fullmatch(resource)
    if matched is None:
        return (resource, -1, "")
    digits = matched[2].lstrip("0")
    return (matched[1], len(digits), digits)


@dataclass(slots=True)
class _Member:
    """A member in the generation being gathered."""

    member_id: str
    owned: tuple[str, ...]
    delay_ms: int = 0


@dataclass(slots=True)
class _Group:
    """One incarnation of a group: its assignments, and the generation being gathered."""

    group_id: str
    incarnation: int
    generation: int = NOBODY
    join_done_us: int | None = None
    sync_us: int | None = None
    first_assigned_us: int | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    gathered: dict[str, _Member] = field(default_factory=dict)
    """Members by key: a static member that is replaced keeps its place."""
    held: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Resources of each member after the last generation, by member id, for Connect's deltas."""
    present: dict[str, _Member] = field(default_factory=dict)
    """Of a group with epochs: who is there, by key, with what the last target gives them."""
    has_targets: bool = False
    """Whether it is a group with epochs."""
    has_parts: bool = False
    """Whether it was told what a target gives to members."""
    subscriptions: dict[str, bytes] = field(default_factory=dict)
    positions: dict[str, int] = field(default_factory=dict)
    """Universe: every resource seen so far, and its position in the list."""
    list_id: int = NOBODY


class OwnershipTracker:
    """Gathers assignments per group and generation.

    A generation is complete when the group starts another one or vanishes, and at `finish`.
    A group that becomes empty gets a row without members, in which nothing is owned.
    Groups of protocol types other than consumer, connect and streams are skipped: their bytes are
    opaque, and a partition of a share group has no owner but many.

    Args:
        trace_id: Trace id of the run, copied to the rows.
        cluster_id: Cluster id of the run, copied to the rows.
    """

    _trace_id: str
    _cluster_id: str
    _groups: dict[str, _Group]
    _list_ids: dict[tuple[str, ...], int]
    undecodable_count: int
    _has_assignments: bool
    _waiting: EventBatch | None
    _generations: list[GenerationRow]
    _resources: list[ResourceRow]

    def __init__(self, trace_id: str, cluster_id: str) -> None:
        self._trace_id = trace_id
        self._cluster_id = cluster_id
        self._groups = {}
        self._list_ids = {}
        self.undecodable_count = 0
        """Assignments whose bytes did not parse; their members count as owning nothing."""
        self._has_assignments = False
        """Whether an event of a batch had one, or came from a client's log."""
        self._waiting = None
        self._generations = []
        self._resources = []

    def record(self, event: TraceEvent) -> None:
        """Take the next event; completed rows wait for `take`."""
        if event.event not in _HEEDED or event.group_id is None:
            return
        if event.source is Source.CONNECT_LOG:
            # A worker's log has that worker alone; the rest of its group would look idle.
            return
        group = self._groups.get(event.group_id)
        if group is None or group.incarnation != event.incarnation:
            if group is not None:
                self._complete(group)
            group = _Group(event.group_id, event.incarnation)
            self._groups[event.group_id] = group
        match event.event:
            case Event.JOIN_REQ:
                self._on_join_request(group, event)
            case Event.GROUP_EMPTY | Event.GROUP_DEAD:
                self._on_gone(group, event)
            case kind if kind in TARGET_EVENTS:
                self._on_target(group, event)
            case Event.ASSIGNED if group.has_targets:
                # A member of such a group tells what it has: no target, and no generation.
                return
            case _:
                self._on_generation(group, event)

    def record_batch(self, batch: EventBatch) -> None:
        """Take the next events.

        Until the first assignment, only the last generation of each group is kept: without
        assignments, earlier ones leave nothing behind.
        """
        rows = np.flatnonzero(np.isin(batch.kinds, _HEEDED_KINDS) & (batch.groups != NO_GROUP))
        if not len(rows):
            return
        batch = batch.take(rows)
        objects = () if batch.objects is None else batch.objects
        self._has_assignments |= bool(batch.is_client.any()) or any(
            told is not None and (told.assignment is not None or told.subscription is not None)
            for told in objects
        )
        if not self._has_assignments:
            waiting = batch if self._waiting is None else joined([self._waiting, batch])
            self._waiting = waiting.take(_of_last_generations(waiting)).compact()
            return
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            for event in waiting.events():
                self.record(event)
        for event in batch.events():
            self.record(event)

    def finish(self) -> None:
        """Complete every group's last generation."""
        for group in self._groups.values():
            self._complete(group)

    @property
    def has_rows(self) -> bool:
        """Whether `take` would give any."""
        return bool(self._generations or self._resources)

    def take(self) -> tuple[list[GenerationRow], list[ResourceRow]]:
        """Return the rows completed since the last call, in order of completion."""
        taken = self._generations, self._resources
        self._generations, self._resources = [], []
        return taken

    def _on_join_request(self, group: _Group, event: TraceEvent) -> None:
        if event.member_id and event.subscription is not None:
            group.subscriptions[event.member_id] = event.subscription

    def _on_target(self, group: _Group, event: TraceEvent) -> None:
        """Follow a group with epochs: a generation is a target, with all who are there by then."""
        key = event.group_instance_id or event.member_id or ""
        if event.event is Event.TARGET_COMPUTED and event.generation is not None:
            self._complete(group)
            group.has_targets = True
            group.generation = event.generation
            group.protocol_type = event.protocol_type or CONSUMER
            group.protocol_name = event.protocol_name
            group.join_done_us = group.sync_us = event.ts_us
            group.gathered = dict(group.present)
        elif event.event is Event.TARGET_ASSIGNED and event.member_id:
            self._on_assigned(group, event, event.member_id)
            group.has_parts = True
            group.present[key] = group.gathered[key]
        elif event.event in _DEPARTURES:
            if TEMPORARY not in event.attrs:
                group.present.pop(key, None)
        elif event.member_id and "group_type" in event.attrs:
            before = group.present.get(key)
            owned = () if before is None else before.owned
            group.present[key] = _Member(event.member_id, owned)
            if event.subscription is not None:
                group.subscriptions[event.member_id] = event.subscription

    def _on_generation(self, group: _Group, event: TraceEvent) -> None:
        if event.generation is None:
            return
        if event.generation != group.generation:
            self._complete(group)
            group.generation = event.generation
        group.protocol_type = event.protocol_type or group.protocol_type
        group.protocol_name = event.protocol_name or group.protocol_name
        group.leader_id = event.leader_id or group.leader_id
        if event.event is Event.JOIN_COMPLETE:
            group.join_done_us = event.ts_us
        elif event.event is Event.SYNC_LEADER:
            group.sync_us = event.ts_us
        elif event.member_id and event.assignment is not None:
            self._on_assigned(group, event, event.member_id)

    def _on_assigned(self, group: _Group, event: TraceEvent, member_id: str) -> None:
        if event.subscription is not None:
            group.subscriptions[member_id] = event.subscription
        if group.first_assigned_us is None:
            group.first_assigned_us = event.ts_us
        member = _Member(member_id, ())
        if event.assignment:
            try:
                self._decode(group, member, event.assignment)
            except WireFormatError:
                self.undecodable_count += 1
        group.gathered[event.group_instance_id or member_id] = member

    def _decode(self, group: _Group, member: _Member, assignment: bytes) -> None:
        if (group.protocol_type or CONSUMER) != CONNECT:
            member.owned = tuple(resources_in(assignment, group.protocol_type))
            return
        decoded = decode_connect_assignment(assignment)
        member.delay_ms = decoded.delay_ms
        given = _resources_of(decoded.connectors, decoded)
        if decoded.version > 0:
            revoked = {connector_resource(name) for name in decoded.revoked_connectors}
            revoked.update(task.resource() for task in decoded.revoked_tasks)
            kept = (name for name in self._held_by(group, member.member_id) if name not in revoked)
            given = tuple(dict.fromkeys((*kept, *given)))
        member.owned = given

    def _held_by(self, group: _Group, member_id: str) -> tuple[str, ...]:
        """Return what a Connect worker holds: as its JoinGroup said, or as folded so far."""
        said = group.subscriptions.get(member_id)
        if said is not None:
            metadata = decode_worker_metadata(said)
            if metadata.version > 0:
                held = metadata.allocation
                return () if held is None else _resources_of(held.connectors, held)
        return group.held.get(member_id, ())

    def _on_gone(self, group: _Group, event: TraceEvent) -> None:
        self._complete(group)
        if event.event is Event.GROUP_EMPTY and event.generation is not None and group.positions:
            self._generations.append(self._empty(group, event.generation, event.ts_us))
        group.held.clear()
        group.present.clear()
        group.subscriptions.clear()
        if event.event is Event.GROUP_DEAD:
            self._groups.pop(group.group_id)

    def _complete(self, group: _Group) -> None:
        protocol_type = group.protocol_type or CONSUMER
        # A broker's log tells of targets and not of their parts.
        is_told = group.has_parts or not group.has_targets
        if group.gathered and is_told and protocol_type in (CONSUMER, CONNECT, STREAMS):
            self._generations.append(self._dense(group, protocol_type))
            group.held = {member.member_id: member.owned for member in group.gathered.values()}
            subscriptions = group.subscriptions
            stay = {**group.held, **{each.member_id: () for each in group.present.values()}}
            group.subscriptions = {
                name: subscriptions[name] for name in stay if name in subscriptions
            }
        group.gathered = {}
        group.join_done_us = group.sync_us = group.first_assigned_us = None
        group.leader_id = None

    def _dense(self, group: _Group, protocol_type: str) -> GenerationRow:
        members = sorted(group.gathered.items(), key=lambda entry: entry[1].member_id)
        self._extend_universe(group, members)
        owners = [NOBODY] * len(group.positions)
        for index, (_, member) in enumerate(members):
            for resource in member.owned:
                owners[group.positions[resource]] = index
        loads = [0] * len(members)
        for owner in owners:
            if owner != NOBODY:
                loads[owner] += 1
        return GenerationRow(
            trace_id=self._trace_id,
            cluster_id=self._cluster_id,
            group_id=group.group_id,
            incarnation=group.incarnation,
            generation=group.generation,
            join_done_us=group.join_done_us,
            sync_us=group.first_assigned_us if group.sync_us is None else group.sync_us,
            protocol_type=protocol_type,
            protocol_name=group.protocol_name,
            leader_id=group.leader_id,
            subscriptions_equal=_subscriptions_equal(group, protocol_type),
            delay_ms=max(member.delay_ms for _, member in members),
            member_ids=tuple(member.member_id for _, member in members),
            member_keys=tuple(key for key, _ in members),
            loads=tuple(loads),
            resource_list_id=group.list_id,
            owners=tuple(owners),
        )

    def _empty(self, group: _Group, generation: int, ts_us: int) -> GenerationRow:
        """Return a generation without members, in which all known resources are given up."""
        return GenerationRow(
            trace_id=self._trace_id,
            cluster_id=self._cluster_id,
            group_id=group.group_id,
            incarnation=group.incarnation,
            generation=generation,
            join_done_us=ts_us,
            sync_us=ts_us,
            protocol_type=group.protocol_type or CONSUMER,
            protocol_name=None,
            leader_id=None,
            subscriptions_equal=None,
            delay_ms=0,
            member_ids=(),
            member_keys=(),
            loads=(),
            resource_list_id=group.list_id,
            owners=(NOBODY,) * len(group.positions),
        )

    def _extend_universe(self, group: _Group, members: list[tuple[str, _Member]]) -> None:
        positions = group.positions
        fresh = dict.fromkeys(
            name for _, member in members for name in member.owned if name not in positions
        )
        if not fresh and group.list_id != NOBODY:
            return
        for resource in sorted(fresh, key=_natural_order):
            positions[resource] = len(positions)
        names = tuple(positions)
        known = self._list_ids.get(names)
        if known is None:
            known = len(self._list_ids)
            self._list_ids[names] = known
            self._resources.append(
                ResourceRow(trace_id=self._trace_id, resource_list_id=known, resources=names)
            )
        group.list_id = known


def _of_last_generations(batch: EventBatch) -> Int64s:
    """Return the rows of each group's last generation; all rows have a group."""
    order = np.argsort(batch.groups, kind="stable")
    groups = batch.groups[order]
    lasts = np.flatnonzero(np.append(groups[1:] != groups[:-1], True))
    last = order[np.repeat(lasts, np.diff(lasts, prepend=-1))]
    is_last = (batch.generations[order] == batch.generations[last]) & (
        batch.incarnations[order] == batch.incarnations[last]
    )
    return np.sort(order[is_last])


def _resources_of(connectors: tuple[str, ...], held: ConnectAssignment) -> tuple[str, ...]:
    names = (connector_resource(name) for name in connectors)
    return (*names, *(task.resource() for task in held.tasks))


def _subscriptions_equal(group: _Group, protocol_type: str) -> bool | None:
    """Whether every member may own every resource; None where a subscription is not known."""
    if protocol_type in (CONNECT, STREAMS):
        return True
    topics: set[frozenset[str]] = set()
    for member in group.gathered.values():
        subscription = group.subscriptions.get(member.member_id)
        if subscription is None:
            return None
        try:
            topics.add(frozenset(decode_subscription(subscription).topics))
        except WireFormatError:
            return None
    return len(topics) == 1


def dense_rows(
    events: Iterable[TraceEvent], trace_id: str, cluster_id: str
) -> tuple[list[GenerationRow], list[ResourceRow]]:
    """Return the dense form of a whole trace held in memory."""
    tracker = OwnershipTracker(trace_id, cluster_id)
    for event in events:
        tracker.record(event)
    tracker.finish()
    return tracker.take()
