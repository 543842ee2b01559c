"""A trace as the checkers read it: cut into tenancies, with requests paired with answers.

A *tenancy* is one life of one group on one coordinator: from its load, or its creation, to its
unload, its death or the coordinator's next load of that partition. Generation numbers, member
ids and timers are comparable only inside a tenancy; a failover starts a new one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, Source, TimeKind, TraceEvent
from coordinator_sim_conformance.bounds import GroupTiming, observed_timing

CLIENT_EVENTS: Final = frozenset(
    {
        Event.REVOKED,
        Event.LOST,
        Event.TASKS_STARTED,
        Event.TASKS_STOPPED,
        Event.POSITION,
        Event.FAULT,
        Event.LIFECYCLE,
        Event.UNPARSED,
        Event.GAP,
    }
)
"""Events of clients and of the world around the coordinator."""
REMOVALS: Final = frozenset({Event.MEMBER_LEFT, Event.MEMBER_FAILED, Event.MEMBER_KICKED})
"""Events after which the member id is no longer a member."""
ENDINGS: Final = frozenset({Event.GROUP_DEAD, Event.GROUP_UNLOADED})
LAST_WORDS: Final = ENDINGS | {Event.JOIN_RESP, Event.SYNC_RESP}
"""Events that a coordinator may still emit for a group at the instant it gives it up."""
RESPONSE_OF: Final = {Event.JOIN_REQ: Event.JOIN_RESP, Event.SYNC_REQ: Event.SYNC_RESP}

Place = tuple[int | None, str]
"""A broker and a group."""


@dataclass(slots=True)
class Tenancy:
    """One life of one group on one coordinator."""

    group_id: str
    broker_id: int | None
    offsets_partition: int | None
    incarnation: int
    is_loaded: bool
    """Whether it began with a load of stored state, so that earlier members may exist."""
    is_deposed: bool = False
    """Whether it began after another broker had loaded the partition, unknown to this one."""
    events: list[TraceEvent] = field(default_factory=list)
    """The coordinator's events about the group, in trace order."""
    ended_at_us: int | None = None
    """When it was unloaded, died or was replaced by a new load; None while it lives."""


@dataclass(slots=True)
class Exchange:
    """A JoinGroup or SyncGroup with its answer, if the trace has one."""

    tenancy: Tenancy
    request: TraceEvent
    position: int
    """Index of the request among the events of its tenancy."""
    response: TraceEvent | None = None

    def after(self) -> Iterator[TraceEvent]:
        """The events of the tenancy that follow the request."""
        return islice(self.tenancy.events, self.position + 1, None)


class Circumstances(Struct, frozen=True, kw_only=True):
    """Facts about a trace beside its events; unknown ones are derived from the events.

    Args:
        timings: Settings of the groups, by group id; others are taken from their members' requests.
        calm_from_us: End of the last disturbance; None takes the last event that shows one.
        ends_at_us: End of the trace's coverage; None takes its last event.
    """

    timings: dict[str, GroupTiming] = {}
    calm_from_us: int | None = None
    ends_at_us: int | None = None


NOTHING_KNOWN: Final = Circumstances()
"""No facts beside the events."""


class History:
    """Views over one trace.

    Args:
        events: Events in trace order.
        known: Facts beside the events.
    """

    def __init__(self, events: Sequence[TraceEvent], known: Circumstances = NOTHING_KNOWN) -> None:
        self.events = events
        self._known = known

    @property
    def ends_at_us(self) -> int:
        """End of the trace's coverage; 0 for an empty trace of unknown length."""
        if self._known.ends_at_us is not None:
            return self._known.ends_at_us
        return self.events[-1].ts_us if self.events else 0

    @cached_property
    def tenancies(self) -> list[Tenancy]:
        """Every tenancy, in the order of its first event."""
        return _Cutter().cut(self.events)

    def timing_of(self, group_id: str) -> GroupTiming:
        """Return the settings that bound the group's steps."""
        known = self._known.timings.get(group_id)
        return self._observed[group_id] if known is None else known

    @cached_property
    def _observed(self) -> dict[str, GroupTiming]:
        by_group: dict[str, list[TraceEvent]] = {}
        for event in self.events:
            if event.group_id is not None:
                by_group.setdefault(event.group_id, []).append(event)
        return {group_id: observed_timing(events) for group_id, events in by_group.items()}

    @cached_property
    def exchanges(self) -> list[Exchange]:
        """Every JoinGroup and SyncGroup of every tenancy, in order of tenancy, then of request."""
        return [exchange for tenancy in self.tenancies for exchange in _exchanges_of(tenancy)]

    @cached_property
    def calm_from_us(self) -> int | None:
        """When the last disturbance was over; None if the trace does not tell.

        Only a simulation records every disturbance; a log records those that it notices.
        """
        if self._known.calm_from_us is not None:
            return self._known.calm_from_us
        disturbed = (event.ts_us for event in self.events if _is_disturbance(event))
        return max(disturbed, default=None)


def _is_disturbance(event: TraceEvent) -> bool:
    """Whether the event is a simulation's disturbance. A log's lines have logged times."""
    is_simulated = event.source in (None, Source.SIM) and event.ts_kind is TimeKind.EVENT
    return is_simulated and event.event in (Event.FAULT, Event.LIFECYCLE)


class _Cutter:
    """Assigns the coordinator's events to tenancies."""

    def __init__(self) -> None:
        self._open: dict[Place, Tenancy] = {}
        self._leaders: dict[int, int | None] = {}
        self._all: list[Tenancy] = []

    def cut(self, events: Sequence[TraceEvent]) -> list[Tenancy]:
        for event in events:
            if event.event is Event.LOAD_START:
                self._close_partition(event)
            if event.group_id is None or event.event in CLIENT_EVENTS:
                continue
            tenancy = self._tenancy_of(event, event.group_id)
            tenancy.events.append(event)
            if event.event in ENDINGS:
                self._close(tenancy, event.ts_us)
        return self._all

    def _close_partition(self, load: TraceEvent) -> None:
        """End every broker's tenancies of a loaded partition: a crashed broker reports nothing."""
        if load.offsets_partition is not None:
            self._leaders[load.offsets_partition] = load.broker_id
        for (broker_id, _), tenancy in list(self._open.items()):
            same = load.offsets_partition == tenancy.offsets_partition
            if same or (load.offsets_partition is None and broker_id == load.broker_id):
                self._close(tenancy, load.ts_us)

    def _close(self, tenancy: Tenancy, at_us: int) -> None:
        if tenancy.ended_at_us is None:
            tenancy.ended_at_us = at_us

    def _tenancy_of(self, event: TraceEvent, group_id: str) -> Tenancy:
        place = (event.broker_id, group_id)
        tenancy = self._open.get(place)
        is_load = event.event is Event.GROUP_LOADED
        if tenancy is not None and (is_load or tenancy.incarnation != event.incarnation):
            self._close(tenancy, event.ts_us)
        if tenancy is not None and _is_over(tenancy, event) and not self._is_deposed(tenancy):
            tenancy = None
        if tenancy is None:
            tenancy = Tenancy(
                group_id, event.broker_id, event.offsets_partition, event.incarnation, is_load
            )
            tenancy.is_deposed = self._is_deposed(tenancy)
            self._open[place] = tenancy
            self._all.append(tenancy)
        return tenancy

    def _is_deposed(self, tenancy: Tenancy) -> bool:
        """Whether another broker leads the partition; a paused broker learns of that late.

        Its events until then, and its refusals afterwards, belong to its old tenancy.
        """
        if tenancy.offsets_partition is None:
            return False
        leader_id = self._leaders.get(tenancy.offsets_partition, tenancy.broker_id)
        return leader_id != tenancy.broker_id


def _is_over(tenancy: Tenancy, event: TraceEvent) -> bool:
    ended_at_us = tenancy.ended_at_us
    if ended_at_us is None:
        return False
    return event.ts_us > ended_at_us or event.event not in LAST_WORDS


class Instances:
    """Which member had which instance id last, to name replaced members."""

    def __init__(self) -> None:
        self._member_of: dict[str, str] = {}

    def take(self, event: TraceEvent) -> str | None:
        """Take a coordinator's event; return the member id that it replaces, if any."""
        instance_id, member_id = event.group_instance_id, event.member_id
        if instance_id is None or not member_id or event.error_code not in (None, ErrorCode.NONE):
            return None
        previous = self._member_of.get(instance_id)
        self._member_of[instance_id] = member_id
        return previous if event.event is Event.STATIC_REPLACED else None


def _exchanges_of(tenancy: Tenancy) -> Iterator[Exchange]:
    """Yield requests with their answers. A log's requests have no number, and no known answer."""
    waiting: dict[tuple[Event, int | None], Exchange] = {}
    found: list[Exchange] = []
    for position, event in enumerate(tenancy.events):
        awaited = RESPONSE_OF.get(event.event)
        if event.correlation_id is None:
            continue
        if awaited is not None:
            exchange = Exchange(tenancy, event, position)
            found.append(exchange)
            waiting[awaited, event.correlation_id] = exchange
        elif event.event in (Event.JOIN_RESP, Event.SYNC_RESP):
            answered = waiting.pop((event.event, event.correlation_id), None)
            if answered is not None:
                answered.response = event
    return iter(found)
