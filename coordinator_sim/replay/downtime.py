"""Time that rebalances cost: pauses of members, standstill of the group, resources without owner.

The one definition of the three (`docs/glossary.md`), of ownership; findings, costs and replays take
their figures from here, and `reports.transforms.availability` holds the same for many traces. Where
no ownership is known there are upper bounds instead. Times are microseconds.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.replay.costs import RebalanceCost
from coordinator_sim.runs.holdings import Holding, Interval, covered, gaps
from coordinator_sim.trace.rebalances import NumberedRebalance, RebalanceOutcome

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


def downtimes_of(
    rebalances: Sequence[NumberedRebalance],
    held: Sequence[Holding],
    assigned_or_gone: Mapping[str, Sequence[int]],
    end_us: int,
) -> list[Downtime]:
    """Return what each rebalance of a group cost.

    A standstill counts in the rebalances that it lasts through; a pause, and a time without an
    owner, belongs to the last rebalance that began before it ended.

    Args:
        rebalances: Rebalances of the group, in order.
        held: Holdings of the group.
        assigned_or_gone: By member, when it was told its assignment or was gone.
        end_us: End of the trace.
    """
    tiles = _tiles(rebalances)
    seen_us = [each.rebalance.first_line.ts_us for each in rebalances]
    paused, unowned = [0] * len(rebalances), [0] * len(rebalances)
    for from_us, to_us in _pauses(tiles, held, assigned_or_gone, end_us):
        paused[place_of(seen_us, to_us)] += to_us - from_us
    for ended_us, length_us in _unowned(rebalances, held, end_us):
        unowned[place_of(seen_us, ended_us)] += length_us
    idle = _Covered(standstills(rebalances, held, end_us))
    stopped = {
        tile.number: idle.within(tile.from_us, tile.to_us)
        for tile in tiles
        if tile.quiet_us is not None
    }
    return [
        Downtime(paused_us=pause, stopped_us=stopped.get(each.number, 0), unowned_us=gap)
        for each, pause, gap in zip(rebalances, paused, unowned, strict=True)
    ]


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
        counts = [each for each in (before, cost.members) if each is not None]
        most = 0 if is_free or cost.initial_ms else max(counts, default=None)
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
    for told, next_us in zip(rebalances, [*following, None], strict=True):
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


def _unowned(
    rebalances: Sequence[NumberedRebalance], held: Sequence[Holding], end_us: int
) -> list[Interval]:
    """Return the ends of times without an owner of each resource, and their lengths."""
    empty = _Covered(_empty_times(rebalances, end_us))
    of: defaultdict[str, list[Interval]] = defaultdict(list)
    for each in held:
        of[each.resource].append((each.from_us, each.to_us))
    found = []
    for own in of.values():
        for from_us, to_us in gaps(covered(own), end_us):
            length_us = to_us - from_us - empty.within(from_us, to_us)
            if length_us > 0:
                found.append((to_us, length_us))
    return found


def _empty_times(rebalances: Sequence[NumberedRebalance], end_us: int) -> list[Interval]:
    """Return when the group had no members."""
    ends_us = [*(each.rebalance.first_line.ts_us for each in rebalances[1:]), end_us]
    return covered(
        (told.rebalance.empty.ts_us, until_us)
        for told, until_us in zip(rebalances, ends_us, strict=True)
        if told.rebalance.outcome is RebalanceOutcome.EMPTY
        and told.rebalance.empty is not None
        and until_us > told.rebalance.empty.ts_us
    )


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
