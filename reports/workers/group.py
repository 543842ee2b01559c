"""One group of a trace, and what follows from its records: each figure is computed once."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct

from coordinator_sim.replay.charges import Charge, GroupCosts, Told
from coordinator_sim.replay.costs import RebalanceCost, costs_of_rebalances
from coordinator_sim.runs.holdings import Holding
from coordinator_sim.trace.client_reasons import CLIENT_EVENTS, with_client_reasons
from coordinator_sim.trace.events import Event, Source, TraceEvent
from coordinator_sim.trace.history import (
    CLIENT_SOURCES,
    COORDINATOR_EVENTS,
    rebalances_of,
    steadied,
)
from coordinator_sim.trace.rebalances import NumberedRebalance
from coordinator_sim.trace.schema import GenerationRow
from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim.trace.work import repetitions
from coordinator_sim_reports.workers.group_records import GroupRecords

_WORK: Final = Event.RECORDS_PROCESSED


class FaultWindow(Struct, frozen=True, kw_only=True):
    """A row of `fault_windows`, as far as effects on groups follow from it."""

    window_no: int
    from_us: int
    to_us: int
    is_ended: bool
    next_from_us: int | None


class RunFacts(Struct, frozen=True, kw_only=True):
    """Facts of the manifest of a run, and the time that its tables are of.

    Args:
        source: Source of events that name none.
        first_ts_us: When the run began, or its window; None for an empty trace.
        last_ts_us: When the run, or its window, ended.
        end_us: When the run ended.
        faults: Its fault windows that are shown.
    """

    source: Source
    scenario: str | None
    assignor: str | None
    profile: str
    version: str
    seed: int | None
    undecodable_assignments: int
    first_ts_us: int | None
    last_ts_us: int | None
    end_us: int
    window: Window = ALWAYS
    faults: tuple[FaultWindow, ...] = ()


class Span(Struct, frozen=True):
    """From when to when what a group costs is shown, and which rebalances and chains are.

    A rebalance lies in the window in which its first line lies, with all that it costs: the time
    from the group's first rebalance there to the first one after the window.
    """

    since_us: int
    before_us: int
    numbers: frozenset[int]

    def holds(self, at_us: int | None) -> bool:
        """Whether an instant is shown."""
        return at_us is not None and self.since_us <= at_us < self.before_us


class Group:
    """A group of one run.

    Args:
        records: All that is told of it.
        facts: Facts of its run.
    """

    def __init__(self, records: GroupRecords, facts: RunFacts) -> None:
        self.records = records
        self.facts = facts
        self.group_id = records.key["group_id"]

    @property
    def lines(self) -> Sequence[TraceEvent]:
        """Its events, in order."""
        return self.records.lines

    @property
    def dense(self) -> Sequence[GenerationRow]:
        """Its assignments."""
        return self.records.dense

    @property
    def seen(self) -> Mapping[str, tuple[str, int]]:
        """Key of each member and when it was first seen, by id."""
        return self.records.seen

    @cached_property
    def rebalances(self) -> list[NumberedRebalance]:
        """Its rebalances, in order."""
        return rebalances_of(self.group_id, self._history)

    @cached_property
    def span(self) -> Span | None:
        """The part of it that is shown; None of one without a rebalance in the window."""
        window = self.facts.window
        seen = [(each.number, each.rebalance.first_line.ts_us) for each in self.rebalances]
        shown = [(number, at_us) for number, at_us in seen if window.holds(at_us)]
        if not shown:
            return None
        first_us = min(at_us for _, at_us in shown)
        # What ended before the first rebalance of a group is charged to that one, too.
        is_first = first_us == min(at_us for _, at_us in seen)
        return Span(
            since_us=ALWAYS.from_us if is_first else first_us,
            before_us=min(
                (at_us for _, at_us in seen if at_us >= window.until_us), default=ALWAYS.until_us
            ),
            numbers=frozenset(number for number, _ in shown),
        )

    @property
    def shown(self) -> list[NumberedRebalance]:
        """Its rebalances in the window."""
        span = self.span
        return [each for each in self.rebalances if span and each.number in span.numbers]

    @cached_property
    def causes(self) -> list[RebalanceCost]:
        """What began each rebalance, and the parts of its length."""
        return costs_of_rebalances(self.rebalances, self._history)

    @cached_property
    def costs(self) -> GroupCosts:
        """Ownership, moves and their costs."""
        told = Told(
            events=(),
            generations=(),
            names=self.records.names,
            source=self.facts.source,
            end_us=self.facts.end_us,
        )
        return GroupCosts(self.rebalances, self.causes, told, self.dense, self.lines)

    @cached_property
    def charges(self) -> list[Charge]:
        """What each rebalance cost."""
        again = None
        if any(line.event is _WORK for line in self.lines):
            again = repetitions(self.lines).get(self.group_id, [])
        return self.costs.charges(again)

    @cached_property
    def held(self) -> list[Holding]:
        """Who held what when."""
        return self.costs.held

    @cached_property
    def _history(self) -> list[TraceEvent]:
        """Lines of its coordinators in order, with the reasons that its clients logged."""
        own: list[TraceEvent] = []
        clients: list[TraceEvent] = []
        for line in self.lines:
            if line.source in CLIENT_SOURCES:
                if line.event in CLIENT_EVENTS:
                    clients.append(line)
            elif line.event in COORDINATOR_EVENTS:
                own.append(line)
        return list(steadied(with_client_reasons(own, clients)))
