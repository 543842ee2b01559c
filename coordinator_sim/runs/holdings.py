"""Ownership intervals of partitions, from a trace's assignments and its members' own events.

Costs of rebalances (`replay.charges`), of deploys and of rehearsals all use them. The definitions
are those of `docs/trace-schema.md`. The reports take their ownership from here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.runs.step_holdings import step_holdings, tells_holdings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.schema import GenerationRow

Interval = tuple[int, int]
"""From (included) to (excluded), microseconds."""
Names = Mapping[int, tuple[str, ...]]
"""Resources by the id of their list."""

_SIGNS_OF_LIFE: Final = frozenset(
    {Event.HEARTBEAT, Event.OFFSET_COMMIT, Event.JOIN_REQ, Event.SYNC_REQ}
)
_LEFT: Final = frozenset(
    {Event.LEAVE_REQ, Event.MEMBER_LEFT, Event.MEMBER_FENCED, Event.LOST, Event.LIFECYCLE}
)
_FAILED: Final = frozenset({Event.MEMBER_FAILED, Event.MEMBER_KICKED})
_NAMING: Final = frozenset({Event.ASSIGNED, Event.MEMBER_ADDED})
_WORK: Final = frozenset({Event.TASKS_STARTED, Event.TASKS_STOPPED})
_ENDS_OF_PROCESS: Final = frozenset({"crashed", "gone"})


class Holding(Struct, frozen=True):
    """One stretch of time in which a member held a resource; from (included) to (excluded).

    The generations are those in which it began and ended; None where nothing tells.
    """

    resource: str
    member_key: str
    from_us: int
    to_us: int
    first_generation: int | None = None
    last_generation: int | None = None


class Span(Struct, frozen=True):
    """A successful SyncGroup answer, and when its member next rejoined, and next went."""

    incarnation: int
    generation: int | None
    synced_us: int
    rejoin_us: int | None
    gone_us: int | None


def holdings(events: Sequence[TraceEvent]) -> dict[str, list[Holding]]:
    """Return the holdings of every group that has any, by group id.

    Args:
        events: Events of one trace, in order; it ends with its last event.
    """
    end_us = max((event.ts_us for event in events), default=0)
    rows, lists = dense_rows(events, "", "")
    names = {row.resource_list_id: row.resources for row in lists}
    dense: defaultdict[str, list[GenerationRow]] = defaultdict(list)
    for row in rows:
        dense[row.group_id].append(row)
    own: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for event in events:
        own[event.group_id or ""].append(event)
    found = {
        group_id: holdings_of(dense.get(group_id, ()), lines, names, end_us)
        for group_id, lines in own.items()
    }
    return {group_id: held for group_id, held in found.items() if held}


def holdings_of(
    generations: Sequence[GenerationRow], lines: Sequence[TraceEvent], names: Names, end_us: int
) -> list[Holding]:
    """Return the holdings of one group, unsorted; those of one resource may overlap.

    A member's unbroken hold on what is assigned to it is one holding.

    Workers that record their work hold what runs, members whose steps are told what these say, and
    all others what their generation assigns to them.

    Args:
        generations: Dense assignments of the group.
        lines: Events of the group, in order.
        names: Names of the resources.
        end_us: End of the trace.
    """
    if any(line.event in _WORK and "resources" in line.attrs for line in lines):
        return list(_working(lines, _spans_of(lines), end_us))
    if any(map(tells_holdings, lines)):
        return [Holding(*msgspec.structs.astuple(each)) for each in step_holdings(lines, end_us)]
    found = _by_generation(_spans_of(lines))
    pieces: defaultdict[str, list[tuple[int, int, str, int]]] = defaultdict(list)
    for row, following in _with_the_next(generations):
        given = _resources_by_member(row, names)
        for key, intervals in _member_holds(row, following, found, end_us).items():
            for from_us, to_us in intervals:
                piece = (from_us, row.generation, key, to_us)
                for name in given.get(key, ()):
                    pieces[name].append(piece)
    return [each for name, own in pieces.items() for each in _unbroken(name, sorted(own))]


def _with_the_next(
    generations: Sequence[GenerationRow],
) -> Iterator[tuple[GenerationRow, GenerationRow | None]]:
    """Yield each generation in order, and the next one of the same life of the group."""
    lives: defaultdict[int, list[GenerationRow]] = defaultdict(list)
    for row in sorted(generations, key=lambda row: (row.incarnation, row.generation)):
        lives[row.incarnation].append(row)
    for rows in lives.values():
        yield from zip_longest(rows, rows[1:])


def _unbroken(resource: str, pieces: Sequence[tuple[int, int, str, int]]) -> Iterator[Holding]:
    """Yield the holdings of a resource: what one member holds without a break is one."""
    first = last = 0
    since_us = until_us = reached_us = 0
    holder: str | None = None
    for from_us, generation, key, to_us in pieces:
        if holder == key and reached_us >= from_us:
            first, last = min(first, generation), max(last, generation)
            until_us = max(until_us, to_us)
        else:
            if holder is not None:
                yield Holding(resource, holder, since_us, until_us, first, last)
            holder, since_us, until_us, first, last = key, from_us, to_us, generation, generation
        reached_us = to_us
    if holder is not None:
        yield Holding(resource, holder, since_us, until_us, first, last)


def assigned_or_gone(lines: Sequence[TraceEvent]) -> dict[str, list[int]]:
    """Return by member when it was told its assignment or was gone, in ascending order.

    Empty for a group whose members' steps are told: they go on whatever they are told.
    """
    if any(map(tells_holdings, lines)):
        return {}
    found = {}
    for key, own in _marks_of(lines).items():
        times = ((mark.synced_us, mark.gone_us) for mark in own)
        found[key] = sorted(at_us for both in times for at_us in both if at_us is not None)
    return found


def covered(intervals: Iterable[Interval]) -> list[Interval]:
    """Return the union of intervals, in order: overlapping and touching ones are merged."""
    merged: list[Interval] = []
    for from_us, to_us in sorted(intervals):
        if merged and from_us <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], to_us))
        else:
            merged.append((from_us, to_us))
    return merged


def gaps(intervals: Sequence[Interval], end_us: int) -> list[Interval]:
    """Return the time between disjoint intervals in order, and after the last until `end_us`."""
    after = [from_us for from_us, _ in intervals[1:]]
    found = [
        (to_us, end_us if begin is None else begin)
        for (_, to_us), begin in zip_longest(intervals, after)
    ]
    return [each for each in found if each[1] > each[0]]


class _Mark(Struct, frozen=True):
    """An event that begins or may end a hold of a member."""

    incarnation: int
    generation: int | None
    synced_us: int | None = None
    rejoin_us: int | None = None
    gone_us: int | None = None


def _key_of(line: TraceEvent) -> str | None:
    return line.group_instance_id or line.member_id or None


def _clients_of(lines: Sequence[TraceEvent]) -> dict[str, dict[str, None]]:
    """Return the member keys of each client."""
    clients: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for line in lines:
        key = _key_of(line)
        if line.event in _NAMING and line.client_id is not None and key is not None:
            clients[line.client_id][key] = None
    return clients


def _ends_process(line: TraceEvent) -> bool:
    return line.event is Event.LIFECYCLE and line.reason_text in _ENDS_OF_PROCESS


def _marks_of(lines: Sequence[TraceEvent]) -> dict[str, list[_Mark]]:
    """Return the marks of each member key, in order."""
    clients = _clients_of(lines)
    marks: defaultdict[str, list[_Mark]] = defaultdict(list)
    alive_us: dict[str, int] = {}
    for line in lines:
        key = _key_of(line)
        keys = dict.fromkeys([] if key is None else [key])
        if _ends_process(line):
            keys |= clients.get(line.client_id or "", {})
        for each in keys:
            if line.event in _SIGNS_OF_LIFE:
                alive_us[each] = max(line.ts_us, alive_us.get(each, line.ts_us))
            mark = _mark(line, alive_us.get(each))
            if mark is not None:
                marks[each].append(mark)
    return dict(marks)


def _mark(line: TraceEvent, alive_us: int | None) -> _Mark | None:
    at_us, place = line.ts_us, (line.incarnation, line.generation)
    if line.event is Event.SYNC_RESP and not line.error_code:
        return _Mark(*place, synced_us=at_us)
    if line.event is Event.JOIN_REQ:
        return _Mark(*place, rejoin_us=at_us)
    if line.event in _LEFT:
        return _Mark(*place, gone_us=at_us)
    if line.event in _FAILED:
        timeout_ms = line.session_timeout_ms
        told = [alive_us, None if timeout_ms is None else at_us - timeout_ms * 1000]
        known = [each for each in told if each is not None]
        return _Mark(*place, gone_us=min(at_us, max(known, default=at_us)))
    return None


def _spans_of(lines: Sequence[TraceEvent]) -> dict[str, list[Span]]:
    return {key: list(_spans(own)) for key, own in _marks_of(lines).items()}


def _spans(marks: Sequence[_Mark]) -> Iterator[Span]:
    """Yield successful answers from the last to the first."""
    rejoin_us = gone_us = None
    for mark in reversed(marks):
        if mark.synced_us is not None:
            yield Span(mark.incarnation, mark.generation, mark.synced_us, rejoin_us, gone_us)
        rejoin_us = rejoin_us if mark.rejoin_us is None else mark.rejoin_us
        gone_us = gone_us if mark.gone_us is None else mark.gone_us


_Found = dict[tuple[int, int | None, str], list[Span]]


def _by_generation(spans: Mapping[str, Iterable[Span]]) -> _Found:
    found: defaultdict[tuple[int, int | None, str], list[Span]] = defaultdict(list)
    for key, own in spans.items():
        for span in own:
            found[span.incarnation, span.generation, key].append(span)
    return found


def _member_holds(
    row: GenerationRow, following: GenerationRow | None, found: _Found, end_us: int
) -> dict[str, list[Interval]]:
    """Return from when to when each member held what the generation gave it."""
    held: dict[str, list[Interval]] = {}
    for key in row.member_keys:
        next_us = None if following is None else following.sync_us
        if following is not None:
            answers = found.get((following.incarnation, following.generation, key), ())
            next_us = min((span.synced_us for span in answers), default=next_us)
        spans = found.get((row.incarnation, row.generation, key), [])
        if not spans and row.sync_us is not None:
            spans = [Span(row.incarnation, row.generation, row.sync_us, None, None)]
        intervals = []
        for span in spans:
            told = [span.gone_us, next_us]
            if not is_cooperative(row.protocol_name):
                told.append(span.rejoin_us)
            to_us = min((each for each in told if each is not None), default=end_us)
            if to_us > span.synced_us:
                intervals.append((span.synced_us, to_us))
        held[key] = intervals
    return held


def _resources_by_member(row: GenerationRow, names: Names) -> dict[str, list[str]]:
    given: defaultdict[str, list[str]] = defaultdict(list)
    for resource, owner in zip(names[row.resource_list_id], row.owners, strict=False):
        if owner >= 0:
            given[row.member_keys[owner]].append(resource)
    return given


def _working(
    lines: Sequence[TraceEvent], spans: Mapping[str, Iterable[Span]], end_us: int
) -> Iterator[Holding]:
    """Yield when each connector and task ran on a worker that belonged to its group."""
    belonged: dict[str, list[tuple[str, Interval]]] = {}
    for client, keys in _clients_of(lines).items():
        belonged[client] = [
            (key, interval)
            for key in keys
            for interval in covered(
                (span.synced_us, max(span.synced_us, _or(span.gone_us, end_us)))
                for span in spans.get(key, ())
            )
        ]
    for client, resource, start, until_us in _runs_of(lines, end_us):
        for key, (from_us, to_us) in belonged.get(client, ()):
            begin, end = max(start.ts_us, from_us), min(until_us, to_us)
            if end > begin:
                yield Holding(resource, key, begin, end, start.generation, start.generation)


def _runs_of(
    lines: Sequence[TraceEvent], end_us: int
) -> Iterator[tuple[str, str, TraceEvent, int]]:
    """Yield when each client ran each connector and task, whether it was a member or not."""
    running: defaultdict[str, dict[str, TraceEvent]] = defaultdict(dict)
    for line in lines:
        client = line.client_id or ""
        own = running[client]
        named = line.attrs.get("resources", "") if line.event in _WORK else ""
        changed = list(own) if _ends_process(line) else named.split(" ") if named else []
        for resource in changed:
            start = own.pop(resource, None)
            if start is not None:
                yield client, resource, start, line.ts_us
            if line.event is Event.TASKS_STARTED:
                own[resource] = line
    for client, own in running.items():
        for resource, start in own.items():
            yield client, resource, start, end_us


def _or(value_us: int | None, otherwise_us: int) -> int:
    return otherwise_us if value_us is None else value_us
