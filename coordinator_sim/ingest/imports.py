"""`Import`: a file that is read, and what came of it."""

from dataclasses import dataclass, field
from pathlib import Path

from coordinator_sim.ingest.kinds import Kind
from coordinator_sim.log.format.salvage import Skipped
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.sources_read import SourceFile


@dataclass(slots=True)
class SegmentCounts:
    """Counts of a segment's batches, records and defects."""

    partition: int | None = None
    """Of `__consumer_offsets`; None where neither folder nor file name it."""
    batches: int = 0
    """Good batches."""
    records: int = 0
    """Records of the good batches, markers of transactions left out."""
    first_offset: int = -1
    last_offset: int = -1
    skipped: list[Skipped] = field(default_factory=list)
    """Bytes that hold no good batch."""
    unread: dict[str, int] = field(default_factory=dict)
    """Why records of good batches could not be read -> how many."""
    other_types: dict[int, int] = field(default_factory=dict)
    """Type of records that are of no classic group -> how many."""
    aborted: int = 0
    """Commits of transactions that were aborted: they never counted."""
    unfinished: int = 0
    """Commits of transactions whose end is not in the log: it is not known whether they count."""
    held_back: int = 0
    """Control records, which are no record of a group."""

    @property
    def coverage(self) -> float | None:
        """Share of the segment's offsets that are there; less than 1 after compaction."""
        if not self.offsets:
            return None
        return (self.records + self.held_back) / self.offsets

    @property
    def offsets(self) -> int:
        """How many offsets there are from the first to the last."""
        return 0 if self.first_offset < 0 else self.last_offset - self.first_offset + 1

    @property
    def missing_offsets(self) -> int:
        """The number of offsets in the segment's range that have no record."""
        return self.offsets - self.records - self.held_back

    @property
    def skipped_bytes(self) -> int:
        """Size of what holds no good batch."""
        return sum(part.size for part in self.skipped)


@dataclass(slots=True)
class Import:
    """A file of an import: its path, kind, counts and problem.

    A copy of another file is not read; a file that overlaps others adds only what they lack.

    Args:
        path: Path of the file that is read.
        kind: Its kind.
        summary: Counts of its lines or records, and of its events.
        problem: Why the file could not be used, or only in part.
        copy_of: The file with the same contents.
        more: A further kind of lines in the same file: a log with requests in it.
        segment: Counts of a segment; None for other kinds.
        notes: Remarks on the reading, for the user.
        day_first: Whether the day comes before the month in dates such as 03/04/2024.
        named: The name that the user gave, if that is no path: the URI that `path` is a copy of.
    """

    path: Path
    kind: Kind = Kind.LOG
    summary: IngestSummary = field(default_factory=IngestSummary)
    problem: str | None = None
    copy_of: str | None = None
    more: Kind | None = None
    segment: SegmentCounts | None = None
    notes: list[str] = field(default_factory=list)
    named: str = ""
    day_first: bool = False

    @property
    def name(self) -> str:
        """The file as a user knows it: a path, or a URI."""
        return self.named or str(self.path)

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Every kind of lines in the file."""
        return (self.kind,) if self.more is None else (self.kind, self.more)

    @property
    def as_read(self) -> SourceFile:
        """The row of the trace that describes this file."""
        summary, segment = self.summary, self.segment
        offsets = None if segment is None else segment.offsets
        return SourceFile(
            path=self.name,
            kind=self.kind.value,
            lines=summary.lines,
            parsed=summary.parsed,
            known=summary.known,
            unparsed=summary.unparsed,
            events=summary.events,
            repeated=summary.repeated,
            offsets=offsets,
            missing_offsets=None if segment is None else segment.missing_offsets,
            skipped_bytes=None if segment is None else segment.skipped_bytes,
            copy_of=self.copy_of,
            problem=self.problem,
        )
