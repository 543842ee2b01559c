"""Where the bytes of one partition's log are kept: what a log asks of its store.

`PartitionLog` decides (offsets, producers, epochs, what is kept how long); a store only holds
segments of whole record batches and finds them again. There is one in memory and one in files.
"""

from collections.abc import Hashable, Sequence
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


Keys = tuple[Hashable, ...]
"""Of a batch's records, as compaction compares them."""


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


class SegmentSettings(Struct, frozen=True, kw_only=True, gc=False):
    """When a store begins another segment and flushes; Kafka's settings of a topic.

    Args:
        segment_bytes: `segment.bytes`: a segment is closed before it grows beyond.
        segment_ms: `segment.ms`: or when its first batch is that much older than the newest.
        index_interval_bytes: `index.interval.bytes`: of batches between two entries of an index.
        segment_index_bytes: `segment.index.bytes`: an index that is full closes its segment.
        flush_messages: `flush.messages`: records that may be unflushed, less one.
        flush_ms: `flush.ms`: how long.

    Source: kafka trunk, storage/.../internals/log/LogConfig.java (names and defaults).
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1


class EpochStart(Struct, frozen=True, gc=False, order=True):
    """The first offset that a leader of this epoch appended at."""

    leader_epoch: int
    start_offset: int


class AbortedTransaction(Struct, frozen=True, gc=False):
    """One entry of a transaction index. Source: AbortedTxn.java.

    Args:
        first_offset: Of its records.
        last_offset: Of the marker that aborted it.
        last_stable_offset: Of the log, once it was aborted.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerEntry(Struct, frozen=True, kw_only=True, gc=False):
    """One producer of a snapshot, with its newest batch. Source: ProducerSnapshot.json.

    Args:
        last_sequence: Of that batch; -1 when there is none.
        last_offset: Of its last record; -1 when there is none.
        offset_delta: From its first record to its last.
        timestamp_ms: Its newest; -1 when there is none.
        coordinator_epoch: Of the newest marker; -1 when there is none.
        current_txn_first_offset: Of the open transaction; -1 when there is none.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp_ms: int
    coordinator_epoch: int
    current_txn_first_offset: int


class KeptState(Struct, frozen=True, kw_only=True):
    """What a store keeps beside the batches: true of the log before `offset`, and of that alone.

    A log that opens, or was truncated, starts from this and looks at the batches from `offset`
    on; what it learns there it hands to `keep_epochs` and `keep_aborted` again.

    Args:
        offset: Of the producers' snapshot; the log's start where there is none.
        producers: As they were there.
        epochs: Of leaders, in order.
        aborted: In order of their last offsets, all below `offset`.
        log_start_offset: That was kept last, or the first segment's.
    """

    offset: int
    log_start_offset: int
    producers: tuple[ProducerEntry, ...] = ()
    epochs: tuple[EpochStart, ...] = ()
    aborted: tuple[AbortedTransaction, ...] = ()


class SegmentStore(Protocol):
    """The segments of one partition's log, oldest first.

    Verbs that write raise `OSError` where the medium does, and have then changed nothing that a
    later read shows.
    """

    def make_room(self, size_bytes: int, spans: Sequence[StoredSpan], now_ms: int) -> int | None:
        """Begin a new segment where these batches would need one; its base offset, or None.

        A log asks so of what it then refuses; `append` does the same by itself.
        """
        ...

    def append(
        self, data: bytes, spans: Sequence[StoredSpan], now_ms: int, keys: Keys = ()
    ) -> int | None:
        """Put whole batches at the end, one span each.

        Args:
            data: The batches.
            spans: Of each.
            now_ms: The present of the log's timestamps.
            keys: Of a single batch that may be forgotten once they all came again.

        Returns:
            The base offset of the new segment, where one was due first, else None. Whoever owns
            producers then hands `keep_producers` their state before this append.
        """
        ...

    def forget_superseded(self, before_offset: int) -> int:
        """Drop the batches whose keys all came again before that offset.

        Returns:
            How many batches are left; 0 where a cleaner does that.
        """
        ...

    def read(self, offset: int, max_bytes: int, *, before_offset: int) -> bytes:
        """Batches of one segment, from the one that holds `offset`, or else the next one, on.

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

    def configure(self, settings: SegmentSettings) -> None:
        """Go by these from now on."""
        ...

    def kept(self) -> KeptState:
        """What is kept beside the batches; entries at or after its `offset` are forgotten."""
        ...

    def keep_producers(self, offset: int, producers: Sequence[ProducerEntry]) -> None:
        """Keep a snapshot of the producers, as the batches before that offset leave them."""
        ...

    def keep_epochs(self, epochs: Sequence[EpochStart]) -> None:
        """Keep these epochs of leaders instead of those before."""
        ...

    def keep_aborted(self, transaction: AbortedTransaction) -> None:
        """Keep one more aborted transaction, whose marker is the newest batch."""
        ...

    def aborted(self, from_offset: int, before_offset: int) -> Sequence[AbortedTransaction]:
        """Those that touch offsets in this range: what a fetch there has to leave out."""
        ...

    def keep_log_start(self, offset: int) -> None:
        """Keep where the log starts, inside a segment maybe."""
        ...

    def drop_before(self, offset: int) -> None:
        """Delete the segments that have nothing at or after that offset, the active one never."""
        ...

    def truncate_to(self, offset: int) -> None:
        """Delete every batch that has a record at or after that offset."""
        ...

    def replace(
        self,
        base_offsets: Sequence[int],
        data: bytes,
        spans: Sequence[StoredSpan],
        aborted: Sequence[AbortedTransaction] | None = None,
    ) -> None:
        """Let one segment hold these batches instead of several, as the cleaner wants.

        Args:
            base_offsets: Of the segments that go, in a row and none active; the new one takes
                the name of the first.
            data: Whole batches, perhaps none.
            spans: One a batch.
            aborted: What stays of the index of aborted transactions whose markers were in these
                segments; None for all of it.
        """
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
