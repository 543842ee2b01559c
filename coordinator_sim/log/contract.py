"""The store of one partition's log: the interface that a log needs, and its values.

`PartitionLog` decides on offsets, producers, epochs and retention; a store only holds segments of
whole record batches and finds them again. There is one store in memory and one in files.
"""

from collections.abc import Hashable, Sequence
from typing import Protocol

from msgspec import Struct


class StoredSpan(Struct, frozen=True, kw_only=True, gc=False):
    """The facts of one batch that a store needs, so that it need not parse the bytes.

    Args:
        base_offset: Offset of the first record.
        last_offset: Offset of the last record.
        max_timestamp_ms: Largest timestamp of the records; -1 if there is none.
        leader_epoch: Epoch of the leader that appended the batch.
    """

    base_offset: int
    last_offset: int
    max_timestamp_ms: int
    leader_epoch: int


Keys = tuple[Hashable, ...]
"""Keys of a batch's records, as compaction compares them."""


class SegmentInfo(Struct, frozen=True, kw_only=True, gc=False):
    """One segment.

    Args:
        base_offset: Base offset, which names the file.
        next_offset: Offset after the last record.
        size_bytes: Size of all batches.
        max_timestamp_ms: Largest timestamp of the records; -1 if there is none.
    """

    base_offset: int
    next_offset: int
    size_bytes: int
    max_timestamp_ms: int


class SegmentSettings(Struct, frozen=True, kw_only=True, gc=False):
    """Settings of a topic that decide when a store rolls segments and flushes.

    Args:
        segment_bytes: `segment.bytes`: a segment is rolled before it grows beyond this size.
        segment_ms: `segment.ms`: age of the first batch, by the newest, after which to roll.
        index_interval_bytes: `index.interval.bytes`: bytes of batches between index entries.
        segment_index_bytes: `segment.index.bytes`: a full index also rolls the segment.
        flush_messages: `flush.messages`: an append that reaches so many unflushed records flushes.
        flush_ms: `flush.ms`: how long records may stay unflushed.

    Source: kafka trunk, storage/.../internals/log/LogConfig.java (names and defaults).
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    index_interval_bytes: int = 4096
    segment_index_bytes: int = 10 << 20
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1


class EpochStart(Struct, frozen=True, gc=False, order=True):
    """The first offset of a leader epoch."""

    leader_epoch: int
    start_offset: int


class AbortedTransaction(Struct, frozen=True, gc=False):
    """One entry of a transaction index. Source: AbortedTxn.java.

    Args:
        first_offset: Offset of the first record.
        last_offset: Offset of the abort marker.
        last_stable_offset: Last stable offset of the log after the abort.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerEntry(Struct, frozen=True, kw_only=True, gc=False):
    """One producer of a snapshot, with its newest batch. Source: ProducerSnapshot.json.

    Args:
        last_sequence: Last sequence of that batch; -1 without one.
        last_offset: Last offset of that batch; -1 without one.
        offset_delta: Last minus first offset of that batch.
        timestamp_ms: Newest timestamp of the producer; -1 without one.
        coordinator_epoch: Coordinator epoch of the newest marker; -1 without one.
        current_txn_first_offset: First offset of the open transaction; -1 without one.
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
    """The state that a store keeps beside the batches; it covers only the log before `offset`.

    A log that opens, or was truncated, starts from this and reads the batches from `offset` on;
    it passes what it learns there to `keep_epochs` and `keep_aborted` again.

    Args:
        offset: Offset of the producers' snapshot; the log's start without one.
        producers: Producers as of that offset.
        epochs: Leader epochs, in order.
        aborted: Aborted transactions in order of their last offsets, all below `offset`.
        log_start_offset: Log start that was kept last, or that of the first segment.
    """

    offset: int
    log_start_offset: int
    producers: tuple[ProducerEntry, ...] = ()
    epochs: tuple[EpochStart, ...] = ()
    aborted: tuple[AbortedTransaction, ...] = ()


class SegmentStore(Protocol):
    """The segments of one partition's log, oldest first.

    Methods that write raise `OSError` when the disk fails; later reads then show no change.
    """

    def make_room(self, size_bytes: int, spans: Sequence[StoredSpan], now_ms: int) -> int | None:
        """Roll the segment if these batches need a new one; return its base offset, or None.

        A log calls this for batches that it then refuses; `append` does the same by itself.
        """
        ...

    def append(
        self, data: bytes, spans: Sequence[StoredSpan], now_ms: int, keys: Keys = ()
    ) -> int | None:
        """Append whole batches.

        Args:
            data: The batches.
            spans: One span per batch.
            now_ms: The present of the log's timestamps.
            keys: Keys of a single batch, which may be forgotten once all of them came again.

        Returns:
            The base offset of the new segment if the append rolled one, else None. The log then
            passes the producers' state before this append to `keep_producers`.
        """
        ...

    def forget_superseded(self, before_offset: int) -> int:
        """Drop the batches whose keys all came again before an offset.

        Returns:
            How many batches are left; 0 if a cleaner does this instead.
        """
        ...

    def read(self, offset: int, max_bytes: int, *, before_offset: int) -> bytes:
        """Read batches of one segment, from the batch that holds `offset`, or else the next one.

        Args:
            offset: Where to begin.
            max_bytes: Limit of the result; the first batch is returned whole in any case.
            before_offset: Batches that begin here or later are left out.
        """
        ...

    def first_at_or_after(self, timestamp_ms: int, *, from_offset: int) -> bytes:
        """The first batch whose newest record is not older than a timestamp; empty if none is."""
        ...

    def segments(self) -> Sequence[SegmentInfo]:
        """All segments, the active one last; at least one."""
        ...

    def roll(self, base_offset: int) -> None:
        """Roll: begin a new active segment."""
        ...

    def configure(self, settings: SegmentSettings) -> None:
        """Use other settings from now on."""
        ...

    def kept(self) -> KeptState:
        """The state kept beside the batches; drops aborted transactions from its `offset` on."""
        ...

    def keep_producers(self, offset: int, producers: Sequence[ProducerEntry]) -> None:
        """Keep a snapshot of the producers' state after the batches before an offset."""
        ...

    def keep_epochs(self, epochs: Sequence[EpochStart]) -> None:
        """Keep these leader epochs in place of the earlier ones."""
        ...

    def keep_aborted(self, transaction: AbortedTransaction) -> None:
        """Keep one more aborted transaction, whose marker is the newest batch."""
        ...

    def aborted(self, from_offset: int, before_offset: int) -> Sequence[AbortedTransaction]:
        """Aborted transactions with offsets in a range, which a fetch there must report."""
        ...

    def keep_log_start(self, offset: int) -> None:
        """Keep the log start, which may lie inside a segment."""
        ...

    def drop_before(self, offset: int) -> None:
        """Delete the segments that end before an offset, but never the active one."""
        ...

    def truncate_to(self, offset: int) -> None:
        """Delete every batch that has a record at or after an offset."""
        ...

    def replace(
        self,
        base_offsets: Sequence[int],
        data: bytes,
        spans: Sequence[StoredSpan],
        aborted: Sequence[AbortedTransaction] | None = None,
    ) -> None:
        """Replace several segments by one with these batches, for the cleaner.

        Args:
            base_offsets: Base offsets of the replaced segments, adjacent and none active; the
                new one gets the name of the first.
            data: Whole batches, perhaps none.
            spans: One span per batch.
            aborted: The aborted transactions with markers in these segments that stay; None for
                all of them.
        """
        ...

    def flush(self) -> None:
        """Return when all batches are on disk (fsync)."""
        ...

    def delete(self) -> None:
        """Delete the partition's data."""
        ...

    def close(self) -> None:
        """Flush, and close all files."""
        ...
