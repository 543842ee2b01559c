"""The cost of each rebalance of a group: downtime, moves, records; None where unknown.

A cost belongs to the last rebalance that began before the cost ended. Time is lost by pauses of
members, standstill of the group and resources without owner (`docs/glossary.md`); findings, costs
and replays take their figures from here. Where no ownership is known there are upper bounds
instead. Times are microseconds. Other definitions, as of what changed hands between generations,
are those of `docs/trace-schema.md`. The reports take their tables from here, group by group.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.replay.costs import RebalanceCost, costs_of_rebalances
from coordinator_sim.replay.moves import Handed, Move, handed_out, moves_of
from coordinator_sim.replay.storms import storm_numbers
from coordinator_sim.runs.holdings import (
    Holding,
    Interval,
    Names,
    assigned_or_gone,
    covered,
    gaps,
    holdings_of,
)
from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines, rebalances_of
from coordinator_sim.trace.rebalances import NumberedRebalance, RebalanceOutcome
from coordinator_sim.trace.schema import GenerationRow, day_of
from coordinator_sim.trace.work import repetitions

_FOR_EVER_US: Final = (1 << 63) - 1


class Downtime(Struct, frozen=True, kw_only=True):
    """What one rebalance cost in time.

    Args:
        paused_us: How long living members that had owned something owned nothing, from giving up
            to their next assignment, summed over the members.
        stopped_us: Time in which nobody in the group owned anything.
        unowned_us: Time without an owner, summed over resources; None where no owners are known.
        is_bound: Whether pauses and standstill are upper bounds, because no owners are known.
    """

    paused_us: int | None
    stopped_us: int | None
    unowned_us: int | None
    is_bound: bool = False


def stopped_by_number(
    rebalances: Sequence[NumberedRebalance], held: Sequence[Holding], end_us: int
) -> dict[int, int]:
    """Return by number of a rebalance the time in which nobody owned anything; 0 is in it.

    One that is still open, or has no known start, is absent.
    """
    idle = Passed(standstills(rebalances, held, end_us))
    return {
        tile.number: idle.within(tile.from_us, tile.to_us)
        for tile in _tiles(rebalances)
        if tile.quiet_us is not None
    }


def bounds_of(
    rebalances: Sequence[NumberedRebalance], costs: Sequence[RebalanceCost]
) -> list[Downtime]:
    """Return the most that each rebalance can have cost, of a group whose owners are not known.

    Every member may pause for all of it, and the group stand still meanwhile; nobody has to under a
    cooperative protocol, and nobody had anything in a group that was empty.
    """
    protocols = [each.protocol_name for each in costs if each.protocol_name]
    is_free = is_cooperative(max(protocols, default=None))
    bounds = []
    before = None
    for told, cost in zip(rebalances, costs, strict=True):
        length_us = 0 if is_free else told.rebalance.length_us
        # Logs up to 2.x count members nowhere but in a group that is empty.
        is_counted = before is not None or bool(cost.members)
        most = max(before or 0, cost.members or 0) if is_counted else None
        if is_free or cost.initial_ms:
            most = 0
        paused_us = None if length_us is None or most is None else length_us * most
        bounds.append(
            Downtime(paused_us=paused_us, stopped_us=length_us, unowned_us=None, is_bound=True)
        )
        before = cost.members
    return bounds


def standstills(
    rebalances: Sequence[NumberedRebalance], held: Sequence[Holding], end_us: int
) -> list[Interval]:
    """Return when nobody in a group owned anything, from rebalances on, in order.

    The time in which the group had no members is in it; no rebalance is charged with that.
    """
    whole = covered((each.from_us, each.to_us) for each in held)
    return covered(_charged(_tiles(rebalances), gaps(whole, end_us)))


def place_of(seen_us: Sequence[int], at_us: int) -> int:
    """Return which rebalance a cost belongs to that ended then; the first, if none began.

    Args:
        seen_us: When each rebalance was first seen, ascending.
        at_us: When the cost ended.
    """
    return max(0, bisect_right(seen_us, at_us) - 1)


class _Tile(Struct, frozen=True):
    """When idleness is charged to a rebalance; what begins from `quiet_us` on is not."""

    number: int
    from_us: int
    to_us: int
    quiet_us: int | None


def _tiles(rebalances: Sequence[NumberedRebalance]) -> list[_Tile]:
    """Return the time in which idleness is charged to each rebalance that has a start."""
    following = [_start_us(each) for each in rebalances[1:]]
    tiles = []
    for told, next_us in zip(rebalances, [*following, None], strict=False):
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


def _charged(tiles: Sequence[_Tile], idle: Iterable[Interval]) -> list[Interval]:
    """Return idle times without what begins while no rebalance runs, up to the next one."""
    starts = [tile.from_us for tile in tiles]
    found = []
    for from_us, to_us in idle:
        place = bisect_right(starts, from_us) - 1
        begin_us = from_us
        if place >= 0:
            quiet_us = tiles[place].quiet_us
            if quiet_us is not None and from_us >= quiet_us:
                begin_us = max(from_us, tiles[place].to_us)
        if to_us > begin_us:
            found.append((begin_us, to_us))
    return found


def _pauses(
    tiles: Sequence[_Tile],
    held: Sequence[Holding],
    assigned_or_gone: Mapping[str, Sequence[int]],
    end_us: int,
) -> list[Interval]:
    """Return the pauses of all members: from the last that each gives up to what ends it."""
    own: defaultdict[str, list[Interval]] = defaultdict(list)
    for each in held:
        if each.member_key in assigned_or_gone:
            own[each.member_key].append((each.from_us, each.to_us))
    found = []
    for key, intervals in own.items():
        ends = assigned_or_gone[key]
        for from_us, to_us in gaps(covered(intervals), end_us):
            place = bisect_left(ends, from_us)
            found.append((from_us, min([to_us, *ends[place : place + 1]])))
    return _charged(tiles, found)


class Gap(Struct, frozen=True, kw_only=True):
    """A time in which a resource had no owner; microseconds.

    Args:
        unowned_us: Its length without the time in which the group had no members; above 0.
        joining_us: Of this, while members joined.
        syncing_us: Between the end of the join and the leader's assignment.
        waiting_us: Outside any rebalance: failures not yet detected, answers under way, delays.
    """

    resource: str
    from_us: int
    to_us: int
    joining_us: int
    syncing_us: int
    unowned_us: int
    waiting_us: int


def unowned_in(
    rebalances: Sequence[NumberedRebalance], held: Sequence[Holding], end_us: int
) -> Iterator[Gap]:
    """Yield the times without an owner of each resource, after its first owner."""
    empty = Passed(empty_times(rebalances, end_us))
    joining, syncing = (Passed(phase) for phase in _phases(rebalances))
    of: defaultdict[str, list[Interval]] = defaultdict(list)
    for each in held:
        of[each.resource].append((each.from_us, each.to_us))
    for resource, own in of.items():
        for from_us, to_us in gaps(covered(own), end_us):
            unowned_us = to_us - from_us - empty.within(from_us, to_us)
            if unowned_us > 0:
                joining_us = joining.within(from_us, to_us)
                syncing_us = syncing.within(from_us, to_us)
                yield Gap(
                    resource=resource,
                    from_us=from_us,
                    to_us=to_us,
                    joining_us=joining_us,
                    syncing_us=syncing_us,
                    unowned_us=unowned_us,
                    waiting_us=max(0, unowned_us - joining_us - syncing_us),
                )


def empty_times(rebalances: Sequence[NumberedRebalance], end_us: int) -> list[Interval]:
    """Return when the group had no members."""
    ends_us = [*(each.rebalance.first_line.ts_us for each in rebalances[1:]), end_us]
    return covered(
        (told.rebalance.empty.ts_us, until_us)
        for told, until_us in zip(rebalances, ends_us, strict=False)  # of none, one end
        if told.rebalance.outcome is RebalanceOutcome.EMPTY
        and told.rebalance.empty is not None
        and until_us > told.rebalance.empty.ts_us
    )


def _phases(rebalances: Sequence[NumberedRebalance]) -> tuple[list[Interval], list[Interval]]:
    """Return when members joined, and when they waited for the leader's assignment."""
    joining, syncing = [], []
    for each in rebalances:
        begun, joined, ended = each.rebalance.start, each.rebalance.join, each.rebalance.ended
        joined = joined or ended
        if begun is not None and joined is not None and joined.ts_us > begun.ts_us:
            joining.append((begun.ts_us, joined.ts_us))
        if joined is not None and ended is not None and ended.ts_us > joined.ts_us:
            syncing.append((joined.ts_us, ended.ts_us))
    return joining, syncing


class Passed:
    """The time that intervals take up to an instant; where they overlap, each counts."""

    def __init__(self, intervals: Iterable[Interval]) -> None:
        own = list(intervals)
        self._starts = sorted(from_us for from_us, _ in own)
        self._ends = sorted(to_us for _, to_us in own)
        self._sums = [list(accumulate(each, initial=0)) for each in (self._starts, self._ends)]

    def within(self, from_us: int, to_us: int) -> int:
        """Return the time of the intervals between two instants."""
        return self._until(to_us) - self._until(from_us)

    def _until(self, at_us: int) -> int:
        begun, over = bisect_right(self._starts, at_us), bisect_right(self._ends, at_us)
        begun_us, over_us = self._sums[0][begun], self._sums[1][over]
        return begun * at_us - begun_us - (over * at_us - over_us)


def _start_us(told: NumberedRebalance) -> int | None:
    return None if told.rebalance.start is None else told.rebalance.start.ts_us


EXACT_SOURCES: Final = frozenset({Source.SIM, Source.WIRE, Source.REQUEST_LOG})
"""Sources with each member's own times, and the assignments of every generation they show."""
_STORED: Final = frozenset({Event.SYNC_LEADER, Event.TARGET_COMPUTED})
_COMPLETING: Final = _STORED | {Event.JOIN_COMPLETE, Event.GROUP_STABLE, Event.GROUP_EMPTY}


class Charge(Struct, frozen=True, kw_only=True):
    """Costs of one rebalance; None is what the trace does not tell. Times are microseconds.

    Args:
        cost: Its cause, the parts of its length, pauses and standstill.
        source_ref: File of its first line; None for a trace without files.
        day: UTC date of its first line.
        end_us: When it was over; None while it is open.
        storm: Number of the storm that it is in, from 1; 0 for none.
        rebalancing_us: Its length; None while it is open.
        unowned_us: Time without an owner, summed over partitions, connectors and tasks.
        moved: Of these, how many have another owner.
        voluntary: Moves whose old owner stayed.
        needless: Moves beyond the fewest that a balanced result needs; None too where members
            differ in their subscriptions.
        reprocessed: Records read again.
    """

    group_id: str
    cost: RebalanceCost
    source_ref: str | None
    day: str
    seen_us: int
    end_us: int | None
    storm: int
    rebalancing_us: int | None
    unowned_us: int | None
    moved: int | None
    voluntary: int | None
    needless: int | None
    reprocessed: int | None

    @property
    def paused_us(self) -> int | None:
        """Pauses of its members together, as `RebalanceCost` has them."""
        return self.cost.paused_us

    @property
    def stopped_us(self) -> int | None:
        """Standstill of the group, as `RebalanceCost` has it."""
        return self.cost.stopped_us


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


def trace_of(events: Sequence[TraceEvent], source: Source, end_us: int | None = None) -> Told:
    """Return the events of a trace with the assignments that they tell.

    Args:
        events: Events of the trace, or of some of its groups, in its order.
        source: Source of events that name none.
        end_us: End of the trace; None where that is the last of the events.
    """
    rows, lists = dense_rows(events, "", "")
    return Told(
        events=events,
        generations=rows,
        names={row.resource_list_id: row.resources for row in lists},
        source=source,
        end_us=max((event.ts_us for event in events), default=0) if end_us is None else end_us,
    )


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
    groups = group_lines(coordinator_events(told.events, told.source))
    charges: list[Charge] = []
    for group_id, lines in groups.items():
        rebalances = rebalances_of(group_id, lines)
        if rebalances:
            costs = costs_of_rebalances(rebalances, lines)
            of_group = GroupCosts(rebalances, costs, told, dense.get(group_id, []), own[group_id])
            charges.extend(of_group.charges(again.get(group_id)))
    return charges


class GroupCosts:
    """The costs of one group's rebalances, and the ownership that they follow from.

    Args:
        rebalances: Its rebalances, in order.
        costs: Their causes and lengths.
        told: Facts of the trace; its events and assignments are not read.
        dense: Assignments of the group.
        events: Its events, in order.
    """

    def __init__(
        self,
        rebalances: Sequence[NumberedRebalance],
        costs: Sequence[RebalanceCost],
        told: Told,
        dense: Sequence[GenerationRow],
        events: Sequence[TraceEvent],
    ) -> None:
        self._rebalances, self._costs = rebalances, costs
        self._told, self._dense, self._events = told, dense, events
        self._seen_us = [each.rebalance.first_line.ts_us for each in rebalances]

    @cached_property
    def is_assigned(self) -> bool:
        """Whether the assignments of all its generations are known."""
        is_exact = self._told.source in EXACT_SOURCES
        return bool(self._dense) and (is_exact or _is_whole(self._dense, self._events))

    @cached_property
    def handed(self) -> list[list[Handed]]:
        """What its generations gave."""
        return handed_out(self._dense, self._told.names)

    @cached_property
    def moves(self) -> list[Move]:
        """What moved between them."""
        return moves_of(self.handed)

    @cached_property
    def held(self) -> list[Holding]:
        """Intervals of ownership, as far as they are known."""
        return holdings_of(self._dense, self._events, self._told.names, self._told.end_us)

    @cached_property
    def unowned(self) -> list[Gap]:
        """When its resources had no owner."""
        return list(unowned_in(self._rebalances, self.held, self._told.end_us))

    @cached_property
    def stopped(self) -> dict[int, int]:
        """How long each rebalance stopped the group, by number."""
        return stopped_by_number(self._rebalances, self.held, self._told.end_us)

    def charges(self, again: Iterable[tuple[int, int]] | None) -> list[Charge]:
        """Return the costs; `again` are records read again, None where no records are told."""
        if not self._rebalances:
            return []
        is_known = self.is_assigned
        downtimes = self._downtimes() if is_known else bounds_of(self._rebalances, self._costs)
        moves: list[list[Move]] = [[] for _ in self._costs]
        for move in self.moves if is_known else ():
            moves[place_of(self._seen_us, move.row.sync_us or 0)].append(move)
        repeated = [0] * len(self._costs)
        for at_us, count in again or ():
            repeated[place_of(self._seen_us, at_us)] += count
        storms = storm_numbers(self._costs)
        return [
            Charge(
                group_id=told.episode.group_id,
                cost=replace(
                    cost,
                    paused_us=downtime.paused_us,
                    stopped_us=downtime.stopped_us,
                    is_bound=downtime.is_bound,
                ),
                source_ref=told.episode.source_ref,
                day=day_of(seen_us),
                seen_us=seen_us,
                end_us=None if told.rebalance.ended is None else told.rebalance.ended.ts_us,
                storm=storms.get(cost.number, 0),
                rebalancing_us=told.rebalance.length_us,
                unowned_us=downtime.unowned_us,
                moved=sum(each.moved for each in own) if is_known else None,
                voluntary=sum(each.voluntary for each in own) if is_known else None,
                needless=_needless(own) if is_known else None,
                reprocessed=None if again is None else count,
            )
            for told, cost, downtime, seen_us, own, count in zip(
                self._rebalances,
                self._costs,
                downtimes,
                self._seen_us,
                moves,
                repeated,
                strict=True,
            )
        ]

    def _downtimes(self) -> list[Downtime]:
        """Return what each rebalance cost in time.

        A standstill counts in the rebalances that it lasts through; a pause, and a time without an
        owner, belongs to the last rebalance that began before it ended.
        """
        paused, unowned = [0] * len(self._costs), [0] * len(self._costs)
        tiles, ends = _tiles(self._rebalances), assigned_or_gone(self._events)
        for from_us, to_us in _pauses(tiles, self.held, ends, self._told.end_us):
            paused[place_of(self._seen_us, to_us)] += to_us - from_us
        for gap in self.unowned:
            unowned[place_of(self._seen_us, gap.to_us)] += gap.unowned_us
        return [
            Downtime(
                paused_us=pause, stopped_us=self.stopped.get(each.number, 0), unowned_us=gap_us
            )
            for each, pause, gap_us in zip(self._rebalances, paused, unowned, strict=True)
        ]


def _needless(moves: Sequence[Move]) -> int | None:
    known = [each.excess_moves for each in moves if each.excess_moves is not None]
    return sum(known) if len(known) == len(moves) else None


def _is_whole(dense: Sequence[GenerationRow], events: Sequence[TraceEvent]) -> bool:
    """Whether the assignments of all generations are known."""
    members: dict[tuple[int, int], int | None] = {}
    stored: set[tuple[int, int]] = set()
    for line in events:
        if line.event in _COMPLETING and line.generation is not None:
            key = (line.incarnation, line.generation)
            most = max((each for each in (members.get(key), line.members) if each), default=None)
            members[key] = most
            if line.event in _STORED:
                stored.add(key)
    given = {(row.incarnation, row.generation): len(row.member_ids) for row in dense}
    return all(given.get(key, -1) >= (members[key] or 0) for key in stored)
