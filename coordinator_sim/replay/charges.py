"""The cost of each rebalance of a group: downtime, moves, records; None where unknown.

A cost belongs to the last rebalance that began before the cost ended. The definitions are those of
`docs/trace-schema.md`; the reports compute the same in Spark.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.replay.costs import RebalanceCost, costs_of_rebalances
from coordinator_sim.replay.downtime import bounds_of, downtimes_of, place_of
from coordinator_sim.replay.shifts import Shift, shifts_of
from coordinator_sim.replay.storms import storm_numbers
from coordinator_sim.runs.holdings import Names, assigned_or_gone, holdings_of
from coordinator_sim.runs.ownership import dense_rows
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import coordinator_events, group_lines, rebalances_of
from coordinator_sim.trace.rebalances import NumberedRebalance
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
        self._seen_us = [each.rebalance.first_line.ts_us for each in rebalances]
        self._is_assigned = bool(dense) and (told.source in _EXACT or _is_whole(dense, events))
        self._shifts: list[Shift] = []
        if self._is_assigned:
            self._shifts = shifts_of(dense, told.names)
            held = holdings_of(dense, events, told.names, told.end_us)
            downtimes = downtimes_of(rebalances, held, assigned_or_gone(events), told.end_us)
        else:
            downtimes = bounds_of(rebalances, costs)
        self._unowned_us = [each.unowned_us for each in downtimes]
        self._costs = [
            replace(
                cost,
                paused_us=downtime.paused_us,
                stopped_us=downtime.stopped_us,
                is_bound=downtime.is_bound,
            )
            for cost, downtime in zip(costs, downtimes, strict=True)
        ]

    def charges(self, again: Iterable[tuple[int, int]] | None) -> list[Charge]:
        """Return the costs; `again` are records read again, None where no records are told."""
        moves: list[list[Shift]] = [[] for _ in self._costs]
        for shift in self._shifts:
            moves[place_of(self._seen_us, shift.at_us)].append(shift)
        repeated = [0] * len(self._costs)
        for at_us, count in again or ():
            repeated[place_of(self._seen_us, at_us)] += count
        storms = storm_numbers(self._costs)
        is_known = self._is_assigned
        return [
            Charge(
                group_id=told.episode.group_id,
                cost=cost,
                source_ref=told.episode.source_ref,
                day=day_of(self._seen_us[place]),
                seen_us=self._seen_us[place],
                end_us=None if told.rebalance.ended is None else told.rebalance.ended.ts_us,
                storm=storms.get(cost.number, 0),
                rebalancing_us=told.rebalance.length_us,
                unowned_us=self._unowned_us[place],
                moved=sum(each.moved for each in moves[place]) if is_known else None,
                voluntary=sum(each.voluntary for each in moves[place]) if is_known else None,
                needless=_needless(moves[place]) if is_known else None,
                reprocessed=None if again is None else repeated[place],
            )
            for place, (told, cost) in enumerate(zip(self._rebalances, self._costs, strict=True))
        ]


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
