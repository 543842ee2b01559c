"""What a replay answers: how much of a trace the core reproduced, and what was assumed."""

from typing import Final

from msgspec import Struct, field

from coordinator_sim.trace.events import TraceEvent

KINDS: Final = ("rebalances", "generations", "members", "outcomes", "transitions", "leaders")
"""What is compared of every trace, in the order of the table."""
ANSWERS_KIND: Final = "answers"
"""Compared too where the trace has the requests."""


class Tally(Struct, kw_only=True):
    """How many rows of one kind came true.

    Args:
        in_source: Rows that the source determines.
        reproduced: Those of them that the core repeated.
        assumed: Rows that the source leaves open and replay had to choose.
        first_difference: Why the first row that did not come true did not; empty when all did.
    """

    in_source: int = 0
    reproduced: int = 0
    assumed: int = 0
    first_difference: str = ""

    def add(self, other: "Tally") -> None:
        """Count another tally's rows too."""
        self.in_source += other.in_source
        self.reproduced += other.reproduced
        self.assumed += other.assumed
        self.first_difference = self.first_difference or other.first_difference

    def row(self, difference: str | None) -> None:
        """Count a row that the source determines; None when it came true."""
        self.in_source += 1
        if difference is None:
            self.reproduced += 1
        elif not self.first_difference:
            self.first_difference = difference


class GroupFidelity(Struct, kw_only=True):
    """One group of one file.

    Args:
        source_ref: The file; None for a trace without files.
        profile: The Kafka that the core behaved like.
        version_range: What the wording says the broker was; None when it does not tell.
        is_nearest: The profile is not of that range, only the nearest there is.
        tallies: By kind.
        assumed: What replay had to choose, one sentence each.
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
        """Whether everything that the source determines came true."""
        return all(tally.reproduced == tally.in_source for tally in self.tallies.values())

    @property
    def first_difference(self) -> str:
        """Why the first row that did not come true did not; empty when all did."""
        return next(
            (each.first_difference for each in self.tallies.values() if each.first_difference), ""
        )


class RunFigures(Struct, frozen=True, kw_only=True):
    """One run of a group in figures; durations are milliseconds.

    Args:
        join_ms: All join phases together.
        rebalancing_ms: All time from the start of a rebalance to its end.
        removed: Members that failed or were removed because they did not come back in time.
        unnoticed_ms: Between a dead member's last sign of life and its removal, all together; a
            member that is removed alive adds nothing.
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
        is_reproduced: Whether the plain replay of the group does what its source tells. Without
            that both runs differ from the source, and their difference need not be the settings'.
        as_is: The run under the assumptions; never the source's own figures.
    """

    source_ref: str | None
    group_id: str
    is_reproduced: bool
    as_is: RunFigures
    with_settings: RunFigures

    @property
    def differs(self) -> bool:
        """Whether the settings make any difference."""
        return self.as_is != self.with_settings


class ReplayReport(Struct, kw_only=True):
    """The result of replaying a trace.

    Args:
        groups: One entry for each file and group, in the order they are first seen.
        silent_groups: Groups without any rebalance: nothing of them can be compared.
        other_sources: Events of sources that cannot be replayed, by source.
        settings: Those given, by their Kafka names.
        what_if: The difference that the settings make, a group each; empty without settings.
        conditions: What `what_if` rests on beside the groups' own assumptions, one sentence each.
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
        """Whether everything that the source determines came true."""
        return all(group.is_reproduced for group in self.groups)

    def totals(self) -> dict[str, Tally]:
        """All groups together, by kind."""
        totals: dict[str, Tally] = {}
        for group in self.groups:
            for kind, tally in group.tallies.items():
                totals.setdefault(kind, Tally()).add(tally)
        return totals


class ReplayResult(Struct, frozen=True):
    """A replay: what it answers, and the events of its own.

    Args:
        events: What the core told, in time order; with settings, of the run with them.
    """

    report: ReplayReport
    events: list[TraceEvent]
