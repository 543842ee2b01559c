"""Counts of a log's lines by outcome, as a user sees them after an import."""

from dataclasses import dataclass, field
from typing import Final

from coordinator_sim.trace.events import Event, TimeKind, TraceEvent

_PATTERN_LIMIT: Final = 200
"""Kinds of unparsed lines listed by their own text; the rest are counted together."""
OTHER_PATTERNS: Final = "(other patterns)"


@dataclass(slots=True)
class IngestSummary:
    """Counts of one import; several logs may add to one summary.

    `lines` = `other` + `known` + `parsed` + `unparsed` + `continuations`.
    """

    lines: int = 0
    """Lines read."""
    parsed: int = 0
    """Lines that gave at least one event."""
    known: int = 0
    """Lines of a coordinator or client that are recognised and hold nothing a trace keeps."""
    unparsed: int = 0
    """Lines of a coordinator that match no template, and lines cut off before their meaning."""
    continuations: int = 0
    """Lines that were joined to the line before."""
    clock_regressions: int = 0
    """Events whose time is before that of an earlier line."""
    set_backs: dict[int, int] = field(default_factory=dict)
    """Line number -> microseconds by which the clock was set back just before the line."""
    repeated: int = 0
    """Events left out because another log of the import has their lines."""
    cut_lines: int = 0
    """Lines longer than the reader's limit; the rest of each was left out."""
    timeless: int = 0
    """Events of lines without a time of their own, placed at the line before."""
    by_event: dict[Event, int] = field(default_factory=dict)
    by_layout: dict[str, int] = field(default_factory=dict)
    unparsed_patterns: dict[str, int] = field(default_factory=dict)
    groups: dict[str, None] = field(default_factory=dict)
    """Groups of the events, in the order in which they came."""
    version_ranges: tuple[str, ...] = ()
    """Kafka versions that fit the wording; empty without evidence."""

    @property
    def other(self) -> int:
        """Lines of other programs, of no coordinator and no client of a group."""
        told = self.parsed + self.known + self.unparsed + self.continuations
        return self.lines - told

    @property
    def events(self) -> int:
        """Number of all emitted events, UNPARSED ones included."""
        return sum(self.by_event.values())

    def count_event(self, event: TraceEvent) -> None:
        """Count one event that leaves the importer."""
        self.by_event[event.event] = self.by_event.get(event.event, 0) + 1
        if event.ts_kind is TimeKind.INFERRED and not event.ts_err_us:
            self.timeless += 1
        if event.group_id is not None:
            self.groups[event.group_id] = None

    def count_repeated(self, event: TraceEvent) -> None:
        """Take back an event that was counted and is left out."""
        self.repeated += 1
        self.take_back(event)

    def take_back(self, event: TraceEvent) -> None:
        """Take back an event that another summary may have counted."""
        self.by_event[event.event] = self.by_event.get(event.event, 0) - 1

    def count_layout(self, layout: str) -> None:
        """Count one recognised line, by its layout."""
        self.by_layout[layout] = self.by_layout.get(layout, 0) + 1

    def count_unparsed(self, pattern: str) -> None:
        """Count one line that could not be parsed."""
        self.unparsed += 1
        if pattern not in self.unparsed_patterns and len(self.unparsed_patterns) >= _PATTERN_LIMIT:
            pattern = OTHER_PATTERNS
        self.unparsed_patterns[pattern] = self.unparsed_patterns.get(pattern, 0) + 1

    def add(self, other: "IngestSummary") -> None:
        """Add the counts of another log."""
        self.lines += other.lines
        self.parsed += other.parsed
        self.known += other.known
        self.unparsed += other.unparsed
        self.continuations += other.continuations
        self.clock_regressions += other.clock_regressions
        self.timeless += other.timeless
        self.repeated += other.repeated
        self.cut_lines += other.cut_lines
        for mine, theirs in (
            (self.by_layout, other.by_layout),
            (self.unparsed_patterns, other.unparsed_patterns),
        ):
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count
        for event, count in other.by_event.items():
            self.by_event[event] = self.by_event.get(event, 0) + count
        self.groups |= other.groups
        fresh = (name for name in other.version_ranges if name not in self.version_ranges)
        self.version_ranges = (*self.version_ranges, *fresh)
