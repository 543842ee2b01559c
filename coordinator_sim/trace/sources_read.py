"""What an import read of each file, and how far the clocks of its sources are apart."""

from msgspec import Struct

from coordinator_sim.trace.events import Source


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file of an import, and how much of it was understood.

    Args:
        path: The file.
        kind: Its kind, by the name that `ingest` shows.
        lines: Lines of a text, records of a segment, messages of a capture.
        parsed: Lines with a fact about a group.
        known: Lines of a known form that hold no such fact.
        unparsed: Lines that could not be read.
        events: Events of the trace that name this file.
        repeated: Events and records that another file has, too.
        offsets: Offsets from a segment's first to its last; None for other kinds.
        missing_offsets: Offsets of that range that the segment lacks, as after compaction.
        skipped_bytes: Bytes of a segment that hold no good batch.
        copy_of: The file with the same contents; None for none.
        problem: Why the file was not used, or only in part; None for none.
    """

    path: str
    kind: str
    lines: int = 0
    parsed: int = 0
    known: int = 0
    unparsed: int = 0
    events: int = 0
    repeated: int = 0
    offsets: int | None = None
    missing_offsets: int | None = None
    skipped_bytes: int | None = None
    copy_of: str | None = None
    problem: str | None = None


class Skew(Struct, frozen=True):
    """Two sources, and how much later the second one tells what both tell.

    Args:
        median_us: Half of the facts are told later than this, in microseconds.
        widest_us: Largest distance from the median.
        facts: How many facts both tell.
    """

    first: Source
    second: Source
    median_us: int
    widest_us: int
    facts: int
