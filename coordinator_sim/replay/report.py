"""Result of a replay: how much of a trace the core reproduced, and with which assumptions."""

from typing import Final

from msgspec import Struct, field

from coordinator_sim.trace.events import TraceEvent

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


class GroupFidelity(Struct, kw_only=True):
    """Result for one group of one file.

    Args:
        source_ref: The file; None for a trace without files.
        profile: Kafka release that the core behaved like.
        version_range: Broker versions that fit the wording; None when none is told.
        is_nearest: Whether the profile is outside that range, and only the nearest available.
        tallies: Tallies by kind.
        assumed: Choices that replay had to make, one sentence each.
        unexplained: Lines that no choice of members explains, one sentence each.
    """

    source_ref: str | None
    group_id: str
    profile: str
    version_range: str | None = None
    is_nearest: bool = False
    tallies: dict[str, Tally] = field(default_factory=dict)
    assumed: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)

    @property
    def is_reproduced(self) -> bool:
        """Whether all rows that the source determines were reproduced."""
        return all(tally.reproduced == tally.in_source for tally in self.tallies.values())

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
    """

    rebalances: int
    last_generation: int
    join_ms: int
    rebalancing_ms: int
    removed: int
    unnoticed_ms: int
    outcomes: dict[str, int]


class WhatIf(Struct, frozen=True, kw_only=True):
    """A group replayed twice: with what is assumed, and with other settings.

    Args:
        is_reproduced: Whether the plain replay reproduces the source of the group. Otherwise both
            runs differ from the source, and their difference need not come from the settings.
        as_is: Run under the assumptions; these are not the source's own figures.
    """

    source_ref: str | None
    group_id: str
    is_reproduced: bool
    as_is: RunFigures
    with_settings: RunFigures

    @property
    def differs(self) -> bool:
        """Whether the settings make a difference."""
        return self.as_is != self.with_settings


class ReplayReport(Struct, kw_only=True):
    """The result of replaying a trace.

    Args:
        groups: One entry for each file and group, in the order they are first seen.
        silent_groups: Groups without a rebalance, which cannot be compared.
        other_sources: Events of sources that cannot be replayed, by source.
        settings: Given settings, by their Kafka names.
        what_if: Effect of the settings, one entry per group; empty without settings.
        conditions: Assumptions of `what_if` beside the groups' own, one sentence each.
    """

    trace_id: str
    groups: list[GroupFidelity] = field(default_factory=list)
    silent_groups: list[str] = field(default_factory=list)
    other_sources: dict[str, int] = field(default_factory=dict)
    settings: dict[str, int] = field(default_factory=dict)
    what_if: list[WhatIf] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)

    @property
    def is_reproduced(self) -> bool:
        """Whether all rows that the source determines were reproduced."""
        return all(group.is_reproduced for group in self.groups)

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
        events: Events of the core in time order; with settings, of the run with them.
    """

    report: ReplayReport
    events: list[TraceEvent]
