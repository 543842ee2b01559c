"""Result of a replay: how much of a trace the core reproduced, and with which assumptions."""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from coordinator_sim.replay.sharing import SharingCosts
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.window import clock

KINDS: Final = ("rebalances", "generations", "members", "outcomes", "transitions", "leaders")
"""Kinds of rows compared for every trace, in the order of the table."""
ANSWERS_KIND: Final = "answers"
"""Kind compared where the trace holds the requests."""


class Tally(Struct, kw_only=True):
    """How many rows of one kind were reproduced.

    Args:
        in_source: Rows that the source determines.
        reproduced: Rows of those that the core reproduced.
        assumed: Rows that the source leaves open, so that replay had to choose.
        first_difference: First row that was not reproduced, explained; empty when all were.
    """

    in_source: int = 0
    reproduced: int = 0
    assumed: int = 0
    first_difference: str = ""

    @property
    def is_whole(self) -> bool:
        """Whether all rows that the source determines were reproduced."""
        return self.reproduced == self.in_source

    def add(self, other: "Tally") -> None:
        """Add another tally's rows."""
        self.in_source += other.in_source
        self.reproduced += other.reproduced
        self.assumed += other.assumed
        self.first_difference = self.first_difference or other.first_difference

    def row(self, difference: str | None) -> None:
        """Count a row that the source determines; None when it was reproduced."""
        self.in_source += 1
        if difference is None:
            self.reproduced += 1
        elif not self.first_difference:
            self.first_difference = difference


class Coverage(Struct, frozen=True, kw_only=True):
    """The rebalances of a group that replay reproduces, stretch by stretch.

    A stretch is an `Episode`: at its beginning the group is known anew, so that one which is not
    reproduced takes nothing from the next. Only stretches that are reproduced whole count.

    Args:
        rebalances: Rebalances of the source.
        reproduced: Those in stretches of which all rows that the source determines are reproduced.
        first_us: First line of the first of these; None without any.
        last_us: First line of the last.
        missed: Stretches that are not reproduced, each from its first line to just after its last,
            microseconds.
    """

    rebalances: int = 0
    reproduced: int = 0
    first_us: int | None = None
    last_us: int | None = None
    missed: tuple[tuple[int, int], ...] = ()

    def plus(self, other: "Coverage") -> "Coverage":
        """Return this one with another stretch's, or another file's."""
        times = (self.first_us, self.last_us, other.first_us, other.last_us)
        told = [each for each in times if each is not None]
        return Coverage(
            rebalances=self.rebalances + other.rebalances,
            reproduced=self.reproduced + other.reproduced,
            first_us=min(told, default=None),
            last_us=max(told, default=None),
            missed=(*self.missed, *other.missed),
        )

    @property
    def words(self) -> str:
        """In how many rebalances a saving holds, when these were, and what is not counted."""
        left = self.rebalances - self.reproduced
        count = f"{self.reproduced} of {self.rebalances}" if left else f"all {self.rebalances}"
        text = "in 1 rebalance" if self.rebalances == 1 else f"in {count} rebalances"
        if self.first_us is not None and self.last_us is not None:
            first, last = clock(self.first_us // 1000), clock(self.last_us // 1000)
            # A date that both have is told once.
            is_dated = first[10:11] == " " and first[:11] == last[:11]
            short = last[11:] if is_dated else last
            text += f", {first}" if first == last else f", {first} to {short}"
        if left:
            text += f"; {left} {'is' if left == 1 else 'are'} not reproduced and not counted"
        return text


def sum_of(coverages: Iterable[Coverage]) -> Coverage:
    """Return the coverage of several files together."""
    total = Coverage()
    for each in coverages:
        total = total.plus(each)
    return total


class GroupFidelity(Struct, kw_only=True):
    """Result for one group of one file.

    Args:
        source_ref: The file; None for a trace without files.
        profile: Kafka release that the core behaved like.
        version_range: Broker versions that fit the wording; None when none is told.
        is_nearest: Whether the profile is outside that range, and only the nearest available.
        tallies: Tallies by kind.
        coverage: Rebalances that savings are computed of.
        assumed: Choices that replay had to make, one sentence each.
        printed: Settings that clients printed at their start, and that replay goes by.
        unexplained: Lines that no choice of members explains, one sentence each.
    """

    source_ref: str | None
    group_id: str
    profile: str
    version_range: str | None = None
    is_nearest: bool = False
    tallies: dict[str, Tally] = field(default_factory=dict)
    coverage: Coverage = Coverage()
    assumed: list[str] = field(default_factory=list)
    printed: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)

    @property
    def has_rows(self) -> bool:
        """Whether any row was compared, or left open."""
        return any(tally.in_source or tally.assumed for tally in self.tallies.values())

    @property
    def is_reproduced(self) -> bool:
        """Whether all rows that the source determines were reproduced."""
        return all(tally.is_whole for tally in self.tallies.values())

    @property
    def reproduced_share(self) -> float:
        """Share of the rows that the source determines which were reproduced, 0 to 1."""
        in_source = sum(tally.in_source for tally in self.tallies.values())
        reproduced = sum(tally.reproduced for tally in self.tallies.values())
        return reproduced / in_source if in_source else 1.0

    @property
    def first_difference(self) -> str:
        """First row that was not reproduced, explained; empty when all were."""
        return next(
            (each.first_difference for each in self.tallies.values() if each.first_difference), ""
        )


class RunFigures(Struct, frozen=True, kw_only=True):
    """Figures of one run of a group; durations are milliseconds.

    Args:
        join_ms: Sum of all join phases.
        rebalancing_ms: Sum of all times from the start of a rebalance to its end.
        removed: Members that failed or were removed because they did not come back in time.
        unnoticed_ms: Sum of the times between a dead member's last sign of life and its removal;
            members removed alive add nothing.
        returns: Restarts of static members that caused no rebalance.
        away_ms: Sum of the times that these were away, as far as known: nobody took their work.
        sharing: Costs of sharing the work out; None where the work is not known.
        never_stopped: Partitions, connectors or tasks that never lost a working owner; None where
            the work is not known.
        is_epochs: Whether its rebalances are epochs of the consumer protocol: nobody stops then.
        is_bound: Whether pauses, standstill and times without an owner are upper bounds, because
            the trace tells no assignments.
        within_ms: Of `rebalancing_ms`, what began within each window of time that was asked for.
    """

    rebalances: int
    last_generation: int
    join_ms: int
    rebalancing_ms: int
    removed: int
    unnoticed_ms: int
    outcomes: dict[str, int]
    returns: int = 0
    away_ms: int = 0
    sharing: SharingCosts | None = None
    never_stopped: int | None = None
    is_epochs: bool = False
    is_bound: bool = False
    within_ms: tuple[int, ...] = ()

    @property
    def all_rebalances(self) -> int:
        """Rebalances with those that the strategy asks for itself, where the work is known."""
        if self.sharing is None or self.is_epochs:
            return self.rebalances
        return self.sharing.rebalances + self.sharing.follow_ups


class WhatIf(Struct, frozen=True, kw_only=True):
    """A group replayed as it is, and with other settings.

    Args:
        settings: The settings, by their Kafka names.
        as_is: Run under the assumptions, with the trace's own times of rebalancing, pauses,
            standstill and times without an owner. None when the plain replay reproduces no
            stretch of the group: nothing is computed then.
        with_settings: Run with the settings, with these times as much longer or shorter than the
            trace's own as the replay's are; None when there is none.
        not_computed: Why there is none; empty otherwise.
        notes: What is special about this group under these settings, one sentence each.
        paired_by_time: Restarts whose two processes are taken for one by time alone.
        coverage: Rebalances that both runs are of.
    """

    source_ref: str | None
    group_id: str
    settings: dict[str, int | str]
    as_is: RunFigures | None
    with_settings: RunFigures | None
    not_computed: str = ""
    notes: tuple[str, ...] = ()
    paired_by_time: int = 0
    coverage: Coverage = Coverage()

    @property
    def differs(self) -> bool:
        """Whether the settings make a difference."""
        return self.as_is != self.with_settings

    @property
    def saves_ms(self) -> int | None:
        """Time rebalancing that the settings save, negative for a loss; None when not computed."""
        if self.as_is is None or self.with_settings is None:
            return None
        return self.as_is.rebalancing_ms - self.with_settings.rebalancing_ms


class ReplayReport(Struct, kw_only=True):
    """The result of replaying a trace.

    Args:
        groups: One entry for each file and group, in the order they are first seen.
        silent_groups: Groups without a rebalance, which cannot be compared.
        epoch_groups: Types of consumer, share and streams groups, by id; also of those that were
            one for a part of the trace. Replay leaves them out: a trace does not tell which
            partitions or tasks a member's heartbeats named.
        other_sources: Events of sources that cannot be replayed, by source.
        grid: Combinations of given settings, by their Kafka names; empty without settings.
        what_if: Effect of the settings, one entry per group and combination, groups in order.
        certain: What `what_if` does not assume, one sentence each.
        conditions: Assumptions of `what_if` beside the groups' own, one sentence each.
    """

    trace_id: str
    groups: list[GroupFidelity] = field(default_factory=list)
    silent_groups: list[str] = field(default_factory=list)
    epoch_groups: dict[str, str] = field(default_factory=dict)
    other_sources: dict[str, int] = field(default_factory=dict)
    grid: list[dict[str, int | str]] = field(default_factory=list)
    what_if: list[WhatIf] = field(default_factory=list)
    certain: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)

    @property
    def is_reproduced(self) -> bool:
        """Whether all rows that the source determines were reproduced."""
        return all(group.is_reproduced for group in self.groups)

    def leave_out_silent(self) -> None:
        """Put groups without any row that counts with the silent ones."""
        silent = [each for each in self.groups if not each.has_rows]
        self.groups = [each for each in self.groups if each.has_rows]
        told = {each.group_id for each in self.groups}
        names = dict.fromkeys(each.group_id for each in silent if each.group_id not in told)
        self.silent_groups.extend(names)

    def of_type(self, group_type: str) -> list[str]:
        """Return the groups with epochs of one type, which were left out."""
        return [name for name, told in self.epoch_groups.items() if told == group_type]

    def totals(self) -> dict[str, Tally]:
        """Return the tallies of all groups together, by kind."""
        totals: dict[str, Tally] = {}
        for group in self.groups:
            for kind, tally in group.tallies.items():
                totals.setdefault(kind, Tally()).add(tally)
        return totals


class ReplayResult(Struct, frozen=True):
    """A replay: its report, and its own events.

    Args:
        events: Events of the core in time order; with one combination of settings, of the run
            with them.
    """

    report: ReplayReport
    events: list[TraceEvent]
