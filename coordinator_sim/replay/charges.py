"""What each rebalance of a group cost, as far as its trace tells: standstill, moves, records.

A cost belongs to the last rebalance that began before the cost ended. The definitions are those of
`docs/trace-schema.md`; the reports compute the same in Spark.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.replay.costs import RebalanceCost, costs_of_rebalances
from coordinator_sim.replay.holding import Interval, Names, covered, gaps, holds_of
from coordinator_sim.replay.shifts import Shift, shifts_of
from coordinator_sim.replay.storms import storm_numbers
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines, rebalances_of
from coordinator_sim.trace.rebalances import NumberedRebalance, RebalanceOutcome
from coordinator_sim.trace.schema import GenerationRow, day_of
from coordinator_sim.trace.work import repetitions

_EXACT: Final = frozenset({Source.SIM, Source.WIRE, Source.REQUEST_LOG})
"""Sources with the assignments of every generation that they show."""
_COMPLETING: Final = frozenset(
    {Event.JOIN_COMPLETE, Event.SYNC_LEADER, Event.GROUP_STABLE, Event.GROUP_EMPTY}
)


class Charge(Struct, frozen=True, kw_only=True):
    """Costs of one rebalance; None is what the trace does not tell. Times are microseconds.

    Args:
        cost: Its cause, and the parts of its length.
        day: UTC date of its first line.
        end_us: When it was over; None while it is open.
        storm: Number of the storm that it is in, from 1; 0 for none.
        rebalancing_us: Its length; None while it is open.
        stopped_us: Time in which nobody in the group held anything; an upper bound where no
            assignments are known.
        unowned_us: Time without an owner, summed over partitions, connectors and tasks.
        moved: Of these, how many have another owner.
        voluntary: Moves whose old owner stayed.
        needless: Moves beyond the fewest that a balanced result needs; None too where members
            differ in their subscriptions.
        reprocessed: Records read again.
    """

    group_id: str
    cost: RebalanceCost
    day: str
    seen_us: int
    end_us: int | None
    storm: int
    rebalancing_us: int | None
    stopped_us: int | None
    unowned_us: int | None
    moved: int | None
    voluntary: int | None
    needless: int | None
    reprocessed: int | None


class Told(Struct, frozen=True, kw_only=True):
    """A trace: its events in order, its dense assignments, and its manifest's facts.

    Args:
        source: Source of events that name none.
        end_us: Time of its last event.
    """

    events: Sequence[TraceEvent]
    generations: Sequence[GenerationRow]
    names: Names
    source: Source
    end_us: int


def charges_in(told: Told) -> list[Charge]:
    """Return the costs of every rebalance of a trace, group by group as they are first seen."""
    dense: dict[str, list[GenerationRow]] = {}
    for row in told.generations:
        dense.setdefault(row.group_id, []).append(row)
    own: dict[str, list[TraceEvent]] = {}
    for event in told.events:
        if event.group_id is not None:
            own.setdefault(event.group_id, []).append(event)
    again = repetitions(told.events)
    groups = group_lines(list(coordinator_events(told.events, told.source)))
    charges: list[Charge] = []
    for group_id, lines in groups.items():
        rebalances = rebalances_of(group_id, lines)
        if rebalances:
            costs = costs_of_rebalances(rebalances, lines)
            book = _Book(rebalances, costs, told, dense.get(group_id, []), own[group_id])
            charges.extend(book.charges(again.get(group_id)))
    return charges


class _Book:
    """The costs of one group's rebalances."""

    def __init__(
        self,
        rebalances: Sequence[NumberedRebalance],
        costs: Sequence[RebalanceCost],
        told: Told,
        dense: Sequence[GenerationRow],
        events: Sequence[TraceEvent],
    ) -> None:
        self._rebalances = rebalances
        self._costs = costs
        self._end_us = told.end_us
        self._seen_us = [each.rebalance.first_line.ts_us for each in rebalances]
        self._is_assigned = bool(dense) and (told.source in _EXACT or _is_whole(dense, events))
        self._shifts: list[Shift] = []
        self._held: list[list[Interval]] = []
        if self._is_assigned:
            self._shifts = shifts_of(dense, told.names)
            holds = holds_of(dense, events, told.names, told.end_us)
            self._held = [covered(own) for own in holds.values()]

    def charges(self, again: Iterable[tuple[int, int]] | None) -> list[Charge]:
        """Return the costs; `again` are records read again, None where no records are told."""
        unowned = [0] * len(self._costs)
        for at_us, length_us in self._unowned():
            unowned[self._place(at_us)] += length_us
        moves: list[list[Shift]] = [[] for _ in self._costs]
        for shift in self._shifts:
            moves[self._place(shift.at_us)].append(shift)
        repeated = [0] * len(self._costs)
        for at_us, count in again or ():
            repeated[self._place(at_us)] += count
        stopped = self._stopped()
        storms = storm_numbers(self._costs)
        is_known = self._is_assigned
        return [
            Charge(
                group_id=told.episode.group_id,
                cost=cost,
                day=day_of(self._seen_us[place]),
                seen_us=self._seen_us[place],
                end_us=None if told.rebalance.ended is None else told.rebalance.ended.ts_us,
                storm=storms.get(cost.number, 0),
                rebalancing_us=told.rebalance.length_us,
                stopped_us=stopped[place],
                unowned_us=unowned[place] if is_known else None,
                moved=sum(each.moved for each in moves[place]) if is_known else None,
                voluntary=sum(each.voluntary for each in moves[place]) if is_known else None,
                needless=_needless(moves[place]) if is_known else None,
                reprocessed=None if again is None else repeated[place],
            )
            for place, (told, cost) in enumerate(zip(self._rebalances, self._costs, strict=True))
        ]

    def _place(self, at_us: int) -> int:
        """Return which rebalance a cost belongs to that ended then; the first, if none began."""
        return max(0, bisect_right(self._seen_us, at_us) - 1)

    def _empty_times(self) -> list[Interval]:
        """Return when the group had no members."""
        ends_us = [*self._seen_us[1:], self._end_us]
        return covered(
            (told.rebalance.empty.ts_us, end_us)
            for told, end_us in zip(self._rebalances, ends_us, strict=True)
            if told.rebalance.outcome is RebalanceOutcome.EMPTY
            and told.rebalance.empty is not None
            and end_us > told.rebalance.empty.ts_us
        )

    def _unowned(self) -> list[Interval]:
        """Return the ends of times without an owner of each resource, and their lengths."""
        empty = _Covered(self._empty_times())
        found = []
        for held in self._held:
            for from_us, to_us in gaps(held, self._end_us):
                length_us = to_us - from_us - empty.within(from_us, to_us)
                if length_us > 0:
                    found.append((to_us, length_us))
        return found

    def _stopped(self) -> list[int | None]:
        """Return per rebalance the time in which nobody held anything."""
        if not self._is_assigned:
            is_free = is_cooperative(_protocol(self._costs))
            return [0 if is_free else each.rebalance.length_us for each in self._rebalances]
        tiles = self._tiles()
        starts = [tile.from_us for tile in tiles]
        idle = []
        for from_us, to_us in gaps(covered(chain.from_iterable(self._held)), self._end_us):
            place = bisect_right(starts, from_us) - 1
            tile = tiles[place] if place >= 0 else None
            begin_us = from_us
            if tile is not None and tile.quiet_us is not None and from_us >= tile.quiet_us:
                begin_us = max(from_us, tile.to_us)
            if to_us > begin_us:
                idle.append((begin_us, to_us))
        stopped = _Covered(covered(idle))
        within = {
            tile.number: stopped.within(tile.from_us, tile.to_us)
            for tile in tiles
            if tile.quiet_us is not None
        }
        return [within.get(each.number, 0) for each in self._rebalances]

    def _tiles(self) -> list["_Tile"]:
        """Return the time in which idleness is charged to each rebalance that has a start."""
        following = [_start_us(each) for each in self._rebalances[1:]]
        tiles = []
        for told, next_us in zip(self._rebalances, [*following, None], strict=True):
            start_us, ended = _start_us(told), told.rebalance.ended
            if start_us is None:
                continue
            end_us = None if ended is None else max(start_us, ended.ts_us)
            until_us = _FOR_EVER_US if next_us is None else max(start_us, next_us)
            if told.rebalance.outcome is RebalanceOutcome.EMPTY and end_us is not None:
                until_us = end_us
            quiet_us = None if end_us is None else max(end_us, start_us + 1)
            tiles.append(_Tile(told.number, start_us, until_us, quiet_us))
        return tiles


_FOR_EVER_US: Final = (1 << 63) - 1


class _Tile(Struct, frozen=True):
    """When idleness is charged to a rebalance; what begins from `quiet_us` on is not."""

    number: int
    from_us: int
    to_us: int
    quiet_us: int | None


class _Covered:
    """Disjoint intervals in order, and how much of them lies within another."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self._intervals = intervals
        self._starts = [from_us for from_us, _ in intervals]
        self._before = [0]
        for from_us, to_us in intervals:
            self._before.append(self._before[-1] + to_us - from_us)

    def within(self, from_us: int, to_us: int) -> int:
        """Return the length of the intervals between two instants."""
        return self._until(to_us) - self._until(from_us)

    def _until(self, at_us: int) -> int:
        place = bisect_right(self._starts, at_us) - 1
        if place < 0:
            return 0
        from_us, to_us = self._intervals[place]
        return self._before[place] + min(at_us, to_us) - from_us


def _start_us(told: NumberedRebalance) -> int | None:
    return None if told.rebalance.start is None else told.rebalance.start.ts_us


def _protocol(costs: Sequence[RebalanceCost]) -> str | None:
    return max((each.protocol_name for each in costs if each.protocol_name), default=None)


def _needless(shifts: Sequence[Shift]) -> int | None:
    known = [each.needless for each in shifts if each.needless is not None]
    return sum(known) if len(known) == len(shifts) else None


def _is_whole(dense: Sequence[GenerationRow], events: Sequence[TraceEvent]) -> bool:
    """Whether the assignments of all generations are known."""
    members: dict[tuple[int, int], int | None] = {}
    stored: set[tuple[int, int]] = set()
    for line in events:
        if line.event in _COMPLETING and line.generation is not None:
            key = (line.incarnation, line.generation)
            most = max((each for each in (members.get(key), line.members) if each), default=None)
            members[key] = most
            if line.event is Event.SYNC_LEADER:
                stored.add(key)
    given = {(row.incarnation, row.generation): len(row.member_ids) for row in dense}
    return all(given.get(key, -1) >= (members[key] or 0) for key in stored)
