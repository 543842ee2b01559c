"""Costs of a trace's rebalances: which member owned which resource when, in plain Python.

The definitions are those of the Spark report (`docs/trace-schema.md`), for one trace at a time and
without Spark; the two are checked against each other. Reads events alone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, zip_longest
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.runs.ownership import OwnershipTracker
from coordinator_sim.runs.step_holdings import step_holdings, tells_holdings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.schema import GenerationRow

_ALIVE: Final = {Event.HEARTBEAT, Event.OFFSET_COMMIT, Event.JOIN_REQ, Event.SYNC_REQ}
_LEFT: Final = {Event.LEAVE_REQ, Event.MEMBER_LEFT, Event.MEMBER_FENCED, Event.LOST}
_FAILED: Final = {Event.MEMBER_FAILED, Event.MEMBER_KICKED}
_TOLD_BY: Final = {Event.ASSIGNED, Event.MEMBER_ADDED}
_STARTS: Final = {Event.PREPARE_REBALANCE, Event.EPOCH_BUMPED}
_SETTLES: Final = {Event.SYNC_LEADER, Event.TARGET_REACHED}
_ENDS_OF_PROCESS: Final = ("crashed", "gone")

Interval = tuple[int, int]
"""From (included) and to (excluded), in microseconds."""


class Holding(Struct, frozen=True, kw_only=True):
    """One stretch of time in which a member owned a resource."""

    group_id: str
    resource: str
    member_key: str
    from_us: int
    to_us: int


class GroupCosts(Struct, frozen=True, kw_only=True):
    """Costs of one group's rebalances.

    Args:
        unowned_us: Time without an owner while the group had members, summed over all resources.
        stopped_us: Time after rebalances in which no member owned anything, until one did again.
    """

    group_id: str
    unowned_us: int
    stopped_us: int


class Stop(Struct, frozen=True, kw_only=True):
    """One stretch in which no member of a group owned anything, as charged to a rebalance.

    Args:
        from_us: When the last member let go; may be before the rebalance.
        stopped_us: Length of the part after the rebalance began.
        last_holders: Keys of the members that let go last, at `from_us`.
    """

    group_id: str
    from_us: int
    stopped_us: int
    last_holders: tuple[str, ...]


class _Mark(Struct, frozen=True):
    """An instant that begins or may end a member's hold; one of the three times is given."""

    ordinal: int
    generation: int | None
    synced_us: int | None = None
    rejoin_us: int | None = None
    gone_us: int | None = None


class _Rebalance(Struct):
    start_us: int
    end_us: int | None = None
    sync_us: int | None = None
    empty_us: int | None = None


def costs_of(events: Sequence[TraceEvent]) -> list[GroupCosts]:
    """Return the costs of every group with assignments, by group id.

    Args:
        events: Events of one trace, in emission order; it ends with its last event.
    """
    ends_us = max((event.ts_us for event in events), default=0)
    found = holdings(events)
    rebalances = _rebalances(events)
    costs = []
    for group_id in sorted({holding.group_id for holding in found}):
        own = [holding for holding in found if holding.group_id == group_id]
        held = rebalances.get(group_id, [])
        empties = _empty_times(held, ends_us)
        by_resource: dict[str, list[Interval]] = defaultdict(list)
        for holding in own:
            by_resource[holding.resource].append((holding.from_us, holding.to_us))
        unowned_us = sum(
            to_us - from_us - sum(_shared((from_us, to_us), empty) for empty in empties)
            for intervals in by_resource.values()
            for from_us, to_us in _gaps(intervals, ends_us)
        )
        stopped_us = sum(stop.stopped_us for stop in _stops(own, held, ends_us))
        costs.append(GroupCosts(group_id=group_id, unowned_us=unowned_us, stopped_us=stopped_us))
    return costs


def stops_of(events: Sequence[TraceEvent]) -> list[Stop]:
    """Return every stop of every group with assignments, by group id and time."""
    ends_us = max((event.ts_us for event in events), default=0)
    found = holdings(events)
    rebalances = _rebalances(events)
    return [
        stop
        for group_id in sorted({holding.group_id for holding in found})
        for stop in _stops(
            [holding for holding in found if holding.group_id == group_id],
            rebalances.get(group_id, []),
            ends_us,
        )
    ]


def _stops(own: list[Holding], held: list[_Rebalance], ends_us: int) -> Iterator[Stop]:
    """Yield the stops of one group; a stop during several rebalances is split among them."""
    for from_us, to_us in _gaps([(each.from_us, each.to_us) for each in own], ends_us):
        stopped_us = sum(
            _charged(held, index, (from_us, to_us), ends_us) for index in range(len(held))
        )
        if stopped_us:
            keys = {each.member_key for each in own if each.to_us == from_us}
            yield Stop(
                group_id=own[0].group_id,
                from_us=from_us,
                stopped_us=stopped_us,
                last_holders=tuple(sorted(keys)),
            )


def holdings(events: Sequence[TraceEvent]) -> list[Holding]:
    """Return all holdings: of workers that log their work, by work; of others, by assignment."""
    telling = {event.group_id for event in events if _changed(event)}
    stepping = {event.group_id for event in events if tells_holdings(event)}
    ends_us = max((event.ts_us for event in events), default=0)
    marks = _marks(events)
    found = list(_worked(events, marks, ends_us))
    others = telling | stepping
    found += (one for one in _assigned(events, marks, ends_us) if one.group_id not in others)
    found += _stepped(events, stepping - telling, ends_us)
    return [holding for holding in found if holding.to_us > holding.from_us]


# By steps.


def _stepped(
    events: Sequence[TraceEvent], groups: set[str | None], ends_us: int
) -> Iterator[Holding]:
    by_group: dict[str, list[TraceEvent]] = {}
    for event in events:
        if event.group_id is not None and event.group_id in groups:
            by_group.setdefault(event.group_id, []).append(event)
    for group_id, own in by_group.items():
        for held in step_holdings(own, ends_us):
            yield Holding(
                group_id=group_id,
                resource=held.resource,
                member_key=held.member_key,
                from_us=held.from_us,
                to_us=held.to_us,
            )


# By assignment.


def _assigned(
    events: Sequence[TraceEvent], marks: dict[tuple[str, str], list[_Mark]], ends_us: int
) -> Iterator[Holding]:
    tracker = OwnershipTracker("", "")
    for event in events:
        tracker.record(event)
    tracker.finish()
    generations, lists = tracker.take()
    resources = {row.resource_list_id: row.resources for row in lists}
    lives: dict[tuple[str, int], list[GenerationRow]] = defaultdict(list)
    for row in generations:
        lives[row.group_id, row.incarnation].append(row)
    for rows in lives.values():
        for row, following in zip_longest(rows, rows[1:]):
            yield from _given(row, following, resources[row.resource_list_id], marks, ends_us)


def _given(
    row: GenerationRow,
    following: GenerationRow | None,
    names: Sequence[str],
    marks: dict[tuple[str, str], list[_Mark]],
    ends_us: int,
) -> Iterator[Holding]:
    """Yield the holdings of one generation's assignment, for as long as each lasted."""
    for index, member_key in enumerate(row.member_keys):
        own = marks.get((row.group_id, member_key), [])
        given = [name for name, owner in zip(names, row.owners, strict=False) if owner == index]
        for from_us, to_us in _holds(row, following, own, ends_us):
            for resource in given:
                yield Holding(
                    group_id=row.group_id,
                    resource=resource,
                    member_key=member_key,
                    from_us=from_us,
                    to_us=to_us,
                )


def _holds(
    row: GenerationRow, following: GenerationRow | None, marks: list[_Mark], ends_us: int
) -> Iterator[Interval]:
    """Yield when one member held the resources of one generation."""
    is_eager = not is_cooperative(row.protocol_name)
    next_us = None
    if following is not None:
        later = [m.synced_us for m in marks if m.generation == following.generation]
        next_us = min((us for us in later if us is not None), default=following.sync_us)
    synced = [m for m in marks if m.synced_us is not None and m.generation == row.generation]
    if not synced and row.sync_us is not None:
        yield row.sync_us, ends_us if next_us is None else next_us
    for mark in synced:
        ends = [next_us, _next_gone(marks, mark), _next_rejoin(marks, mark) if is_eager else None]
        yield mark.synced_us or 0, min((us for us in ends if us is not None), default=ends_us)


def _next_gone(marks: list[_Mark], mark: _Mark) -> int | None:
    later = (m.gone_us for m in marks if m.ordinal > mark.ordinal and m.gone_us is not None)
    return next(later, None)


def _next_rejoin(marks: list[_Mark], mark: _Mark) -> int | None:
    later = (m.rejoin_us for m in marks if m.ordinal > mark.ordinal and m.rejoin_us is not None)
    return next(later, None)


# By work.


def _changed(event: TraceEvent) -> bool:
    return event.event in (Event.TASKS_STARTED, Event.TASKS_STOPPED) and "resources" in event.attrs


def _worked(
    events: Sequence[TraceEvent], marks: dict[tuple[str, str], list[_Mark]], ends_us: int
) -> Iterator[Holding]:
    keys: dict[tuple[str, str], list[str]] = defaultdict(list)
    for group_id, client_id, key in _clients(events):
        keys[group_id, client_id].append(key)
    for (group_id, client_id, resource), (start_us, end_us) in _runs(events, ends_us):
        for key in keys[group_id, client_id]:
            for from_us, to_us in _memberships(marks.get((group_id, key), []), ends_us):
                yield Holding(
                    group_id=group_id,
                    resource=resource,
                    member_key=key,
                    from_us=max(start_us, from_us),
                    to_us=min(end_us, to_us),
                )


def _runs(
    events: Sequence[TraceEvent], ends_us: int
) -> Iterator[tuple[tuple[str, str, str], Interval]]:
    """Yield each run of a connector or task, from its start to its stop or its process's end."""
    running: dict[tuple[str, str, str], int] = {}
    for event in events:
        group_id, client_id = event.group_id or "", event.client_id or ""
        if _changed(event):
            for resource in event.attrs["resources"].split(" "):
                name = (group_id, client_id, resource)
                if name in running:
                    yield name, (running.pop(name), event.ts_us)
                if event.event is Event.TASKS_STARTED:
                    running[name] = event.ts_us
        elif event.event is Event.LIFECYCLE and event.reason_text in _ENDS_OF_PROCESS:
            for name in [name for name in running if name[:2] == (group_id, client_id)]:
                yield name, (running.pop(name), event.ts_us)
    for name, start_us in running.items():
        yield name, (start_us, ends_us)


def _memberships(marks: list[_Mark], ends_us: int) -> list[Interval]:
    spans = []
    for mark in marks:
        if mark.synced_us is not None:
            gone_us = _next_gone(marks, mark)
            until_us = ends_us if gone_us is None else gone_us
            spans.append((mark.synced_us, max(mark.synced_us, until_us)))
    return _covered(spans)


# Marks of members.


def _key_of(event: TraceEvent) -> str:
    return event.group_instance_id or event.member_id or ""


def _clients(events: Iterable[TraceEvent]) -> list[tuple[str, str, str]]:
    """Return group, client and member key of every member whose client is known, each once."""
    return list(
        dict.fromkeys(
            (event.group_id or "", event.client_id, _key_of(event))
            for event in events
            if event.event in _TOLD_BY and event.client_id is not None and _key_of(event)
        )
    )


def _marks(events: Sequence[TraceEvent]) -> dict[tuple[str, str], list[_Mark]]:
    keys: dict[tuple[str, str], list[str]] = defaultdict(list)
    for group_id, client_id, key in _clients(events):
        keys[group_id, client_id].append(key)
    marks: dict[tuple[str, str], list[_Mark]] = defaultdict(list)
    alive_us: dict[tuple[str, str], int] = {}
    for ordinal, event in enumerate(events):
        group_id = event.group_id or ""
        if event.event is Event.LIFECYCLE and event.reason_text in _ENDS_OF_PROCESS:
            for key in keys[group_id, event.client_id or ""]:
                marks[group_id, key].append(_Mark(ordinal, event.generation, gone_us=event.ts_us))
        elif key := _key_of(event):
            name = (group_id, key)
            if event.event in _ALIVE:
                alive_us[name] = max(alive_us.get(name, event.ts_us), event.ts_us)
            mark = _mark_of(ordinal, event, alive_us.get(name))
            if mark is not None:
                marks[name].append(mark)
    return marks


def _mark_of(ordinal: int, event: TraceEvent, alive_us: int | None) -> _Mark | None:
    ts_us = event.ts_us
    if event.event is Event.SYNC_RESP and event.error_code in (None, ErrorCode.NONE):
        return _Mark(ordinal, event.generation, synced_us=ts_us)
    if event.event is Event.JOIN_REQ:
        return _Mark(ordinal, event.generation, rejoin_us=ts_us)
    if event.event in _LEFT:
        return _Mark(ordinal, event.generation, gone_us=ts_us)
    if event.event in _FAILED:
        known = [] if alive_us is None else [alive_us]
        if event.session_timeout_ms is not None:
            known.append(ts_us - event.session_timeout_ms * 1_000)
        return _Mark(ordinal, event.generation, gone_us=min(ts_us, max(known, default=ts_us)))
    return None


# Rebalances and intervals.


def _rebalances(events: Iterable[TraceEvent]) -> dict[str, list[_Rebalance]]:
    """Return each group's rebalances; one without an end ends where the next begins."""
    found: dict[str, list[_Rebalance]] = defaultdict(list)
    for event in events:
        own = found[event.group_id or ""]
        if event.event in _STARTS:
            if own and own[-1].sync_us is None and own[-1].empty_us is None:
                own[-1].end_us = event.ts_us
            own.append(_Rebalance(event.ts_us))
        elif own and event.event in _SETTLES and own[-1].sync_us is None:
            own[-1].sync_us = own[-1].end_us = event.ts_us
        elif own and event.event is Event.GROUP_EMPTY and own[-1].empty_us is None:
            own[-1].empty_us = event.ts_us
            own[-1].end_us = own[-1].sync_us or event.ts_us
    return found


def _empty_times(held: list[_Rebalance], ends_us: int) -> list[Interval]:
    empties = []
    for rebalance, following in zip_longest(held, held[1:]):
        if rebalance.empty_us is not None and rebalance.sync_us is None:
            until_us = ends_us if following is None else following.start_us
            empties.append((rebalance.empty_us, until_us))
    return empties


def _charged(held: list[_Rebalance], index: int, gap: Interval, ends_us: int) -> int:
    """Return the idle time that one finished rebalance began or found, up to the next one."""
    rebalance = held[index]
    if rebalance.end_us is None or gap[0] >= max(rebalance.end_us, rebalance.start_us + 1):
        return 0
    if rebalance.empty_us is not None and rebalance.sync_us is None:
        charged_to_us = rebalance.end_us
    elif index + 1 < len(held):
        charged_to_us = held[index + 1].start_us
    else:
        charged_to_us = ends_us
    return _shared(gap, (rebalance.start_us, charged_to_us))


def _shared(one: Interval, other: Interval) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def _covered(intervals: Iterable[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for from_us, to_us in sorted(intervals):
        if merged and merged[-1][1] >= from_us:
            merged[-1] = (merged[-1][0], max(merged[-1][1], to_us))
        else:
            merged.append((from_us, to_us))
    return merged


def _gaps(intervals: Iterable[Interval], ends_us: int) -> list[Interval]:
    """Return the time between intervals, and from the last one to the end of the trace."""
    whole = [*_covered(intervals), (ends_us, ends_us)]
    return [(one[1], other[0]) for one, other in pairwise(whole) if other[0] > one[1]]
