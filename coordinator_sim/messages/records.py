"""Records of the `__consumer_offsets` log as plain data; `log.format` turns them into bytes.

Source: kafka trunk, group-coordinator/src/main/resources/common/message, GroupMetadata* and
OffsetCommit* schemas.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.messages.consumer_group_records import ConsumerGroupKey, ConsumerGroupValue
from coordinator_sim.messages.group_records import GroupKey, GroupValue
from coordinator_sim.messages.share_group_records import ShareGroupKey, ShareGroupValue
from coordinator_sim.messages.streams_group_records import StreamsGroupKey, StreamsGroupValue

NO_PRODUCER_ID: Final = -1
"""The producer of records outside any transaction. Source: RecordBatch.NO_PRODUCER_ID."""


class OpaqueKey(Struct, frozen=True, gc=False):
    """A key whose bytes are not read; a load passes over it.

    Versions 3 to 23 belong to the newer group types: readers of files leave those of consumer
    groups as they are too, until `log.format.consumer_records` reads them for a coordinator. A
    higher version is left over from an upgrade that was taken back.

    Args:
        version: The key's version, which says the record's type; never 0, 1 or 2.
        body: What follows the version.
    """

    version: int
    body: bytes


class OpaqueValue(Struct, frozen=True, gc=False):
    """The value under an `OpaqueKey`, its version included."""

    data: bytes


LogKey = GroupKey | ConsumerGroupKey | ShareGroupKey | StreamsGroupKey | OpaqueKey
LogValue = GroupValue | ConsumerGroupValue | ShareGroupValue | StreamsGroupValue | OpaqueValue


class LogRecord(Struct, frozen=True, gc=False):
    """One record: a value of None is a tombstone.

    Args:
        key: What the record is about.
        value: What it says; None is a tombstone.
        value_version: The schema's version; of no meaning for a tombstone.
        legacy_key: The offset key has version 0, as brokers up to 0.8.2 wrote it. It names the
            same offset as version 1, but compaction compares bytes and keeps the last of each.
    """

    key: LogKey
    value: LogValue | None
    value_version: int = 0
    legacy_key: bool = False


class EndTransactionMarker(Struct, frozen=True, kw_only=True, gc=False):
    """The one record of a control batch: how the transaction of its producer ended."""

    committed: bool
    coordinator_epoch: int = 0


class LogBatch(Struct, frozen=True, kw_only=True, gc=False):
    """Records appended together, as a driver stores them and a load replays them.

    Args:
        partition: Partition of `__consumer_offsets`.
        base_offset: Offset of the first record; the others follow without gaps.
        timestamp_ms: Of the first record, and of all unless `record_times_ms` says otherwise.
        producer_id: Of a transaction; -1 for plain records.
        transactional: Whether the records count only once a COMMIT marker of the producer follows.
        marker: Of a control batch, which has no other records and takes one offset.
        control: Whether this is a control batch. One without a marker was emptied by the log
            cleaner, or ends no transaction.
        record_times_ms: Of records that were written at different instants, one each; else empty.
    """

    partition: int
    base_offset: int
    timestamp_ms: int
    records: tuple[LogRecord, ...]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    transactional: bool = False
    marker: EndTransactionMarker | None = None
    control: bool = False
    record_times_ms: tuple[int, ...] = ()

    def time_of(self, index: int) -> int:
        """The timestamp of the record at that place of the batch, in milliseconds."""
        return self.record_times_ms[index] if self.record_times_ms else self.timestamp_ms

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last one."""
        takes_one = self.control or self.marker is not None
        return self.base_offset + (1 if takes_one else len(self.records))
