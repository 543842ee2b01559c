"""Where the bytes of one partition's log are kept: what a log asks of its store.

`PartitionLog` decides (offsets, producers, epochs, what is kept how long); a store only holds
segments of whole record batches and finds them again. There is one in memory and one in files.
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct


class StoredSpan(Struct, frozen=True, kw_only=True, gc=False):
    """One batch as a store needs to know it, without looking into its bytes.

    Args:
        base_offset: Of its first record.
        last_offset: Of its last.
        max_timestamp_ms: Of its records; -1 where there is none.
        leader_epoch: Of the leader that appended it.
    """

    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int


class SegmentInfo(Struct, frozen=True, kw_only=True, gc=False):
    """One segment.

    Args:
        base_offset: That its file is named after.
        next_offset: Past its last record.
        size_bytes: Of its batches.
        max_timestamp_ms: Of its records; -1 where there is none.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    max_timestamp_ms: int


class SegmentStore(Protocol):
    """The segments of one partition's log, oldest first.

    Verbs that write raise `OSError` where the medium does, and have then changed nothing that a
    later read shows.
    """

    def append(self, data: bytes, spans: Sequence[StoredSpan], now_ms: int) -> None:
        """Put whole batches at the end, one span each, rolling segments where that is due."""
        ...

    def read(self, offset: int, max_bytes: int, *, before_offset: int) -> bytes:
        """Batches from the one that holds `offset`, or else the next one, on.

        Args:
            offset: Where to begin.
            max_bytes: Of the answer; the first batch is whole all the same.
            before_offset: Batches that begin here or later stay away.
        """
        ...

    def first_at_or_after(self, timestamp_ms: int, *, from_offset: int) -> bytes:
        """The first batch whose newest record is not older than that; empty when there is none."""
        ...

    def segments(self) -> Sequence[SegmentInfo]:
        """All of them, the active one last; at least one."""
        ...

    def roll(self, base_offset: int) -> None:
        """Begin a new active segment."""
        ...

    def drop_before(self, offset: int) -> None:
        """Delete the segments that have nothing at or after that offset, the active one never."""
        ...

    def truncate_to(self, offset: int) -> None:
        """Delete every batch that has a record at or after that offset."""
        ...

    def replace(self, base_offset: int, data: bytes, spans: Sequence[StoredSpan]) -> None:
        """Let one segment that is not active hold these batches instead, as the cleaner wants."""
        ...

    def flush(self) -> None:
        """Return when the medium has it: fsync."""
        ...

    def delete(self) -> None:
        """The partition is gone."""
        ...

    def close(self) -> None:
        """Flush and let go."""
        ...
