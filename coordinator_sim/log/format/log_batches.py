"""Batches of the offsets log between the coordinator's plain data and the bytes of a log.

The most frequent batch of the offsets log, a commit of plain offsets, packed by hand.

The packer knows the usual form: offsets without metadata in a value of version 3 or 4, fewer than
65 records. For what is not, it gives up, and the general writer writes the batch. The bytes are
the same.

Source: kafka 4.4, CoordinatorRuntime.maybeAllocateNewBatch and completeTransaction; kafka 3.9,
GroupMetadataManager.storeGroup, storeOffsets and doLoadGroupsAndOffsets; as `record_batches` and
`offsets_records`.
"""

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.log.format.compression import Compression
from coordinator_sim.log.format.offsets_records import decode_record, encode_record
from coordinator_sim.log.format.record_batches import (
    CURRENT_MAGIC,
    NO_ID,
    TRANSACTIONAL,
    Record,
    RecordBatch,
    batch_of,
    encode_record_batch,
    frame_records,
    varint_bytes,
)
from coordinator_sim.log.format.segments import EncodedBatch, SegmentReader
from coordinator_sim.log.format.stored_batches import StoredBatch
from coordinator_sim.messages.codec.classic_types import string_bytes
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.records import EndTransactionMarker, LogBatch, LogKey
from coordinator_sim.messages.schema import ZERO_UUID

_MOST_RECORDS: Final = 64
"""So many have an offset delta of one byte."""
_DELTAS: Final = tuple(bytes((2 * index,)) for index in range(_MOST_RECORDS))
_KEY_START: Final = b"\x00\x01"
"""Version 1 of an offset's key."""
_AT_BATCH_TIME: Final = b"\x00\x00"
"""No attributes, and no time after the batch's."""
_ID_TAG: Final = b"\x01\x00\x10"

_CLASSIC_VALUE: Final = 3
"""Version of a value with a leader epoch."""
_FLEXIBLE_VALUE: Final = 4
"""Version of a value with the topic's id."""
_FIXED_SIZE: Final = 22
"""Of a value: its version, offset, leader epoch and timestamp."""


class _Shape(Struct, frozen=True):
    """What the records of one topic's commits have in common.

    Args:
        pack: Packs a whole record.
        front: What stands before the record's offset delta.
        key: What stands from there to the key's partition.
        value: What stands from there to the offset.
        metadata: How no metadata is said, between the leader epoch and the commit's timestamp.
        end: What follows the timestamp.
    """

    pack: Callable[..., bytes]
    front: bytes
    key: bytes
    value: bytes
    metadata: bytes
    end: bytes


def usual_commit_records(batch: LogBatch) -> bytes | None:
    """The records of a batch in its usual form, of magic 2; None: ask the general writer."""
    if not 0 < len(batch.records) <= _MOST_RECORDS or batch.record_times_ms:
        return None
    rows: list[bytes] = []
    group_id = topic = ""
    topic_id = b""
    version = time_ms = -1
    for record, delta in zip(batch.records, _DELTAS, strict=False):
        named, value = record.key, record.value
        if type(named) is not OffsetCommitKey or type(value) is not OffsetCommitValue:
            return None
        if value.metadata or record.legacy_key:
            return None
        if (
            named.topic is not topic
            or named.group is not group_id
            or record.value_version != version
            or value.topic_id is not topic_id
            or value.commit_timestamp != time_ms
        ):
            group_id, topic, version = named.group, named.topic, record.value_version
            topic_id, time_ms = value.topic_id, value.commit_timestamp
            shape = _shape(group_id, topic, version, topic_id)
            if shape is None:
                return None
            pack, front, key, start = shape.pack, shape.front, shape.key, shape.value
            end = shape.metadata + time_ms.to_bytes(8, "big", signed=True) + shape.end
        rows.append(
            pack(front, delta, key, named.partition, start, value.offset, value.leader_epoch, end)
        )
    return b"".join(rows)


@lru_cache(maxsize=16_384)
def _shape(group_id: str, topic: str, version: int, topic_id: bytes) -> _Shape | None:
    """The form of a topic's records; None for a version that has another."""
    if version not in {_CLASSIC_VALUE, _FLEXIBLE_VALUE}:
        return None
    metadata, end = b"\x00\x00", b""
    if version == _FLEXIBLE_VALUE:
        metadata, end = b"\x01", b"\x00" if topic_id == ZERO_UUID else _ID_TAG + topic_id
    named = _KEY_START + string_bytes(group_id) + string_bytes(topic)
    key = varint_bytes(len(named) + 4) + named
    value_size = _FIXED_SIZE + len(metadata) + len(end)
    value = varint_bytes(value_size) + version.to_bytes(2, "big")
    size = len(_AT_BATCH_TIME) + 1 + len(key) + 4 + 1 + value_size + 1
    front = varint_bytes(size) + _AT_BATCH_TIME
    # No headers follow the value.
    end += b"\x00"
    row = f">{len(front)}ss{len(key)}si{len(value)}sqi{len(metadata) + 8 + len(end)}s"
    return _Shape(struct.Struct(row).pack, front, key, value, metadata, end)


_CONTROL_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")
_ABORT: Final = 0
_COMMIT: Final = 1
MAX_PIECE: Final = 10_000
"""Records that are handed to a coordinator at a time, at most: some megabytes."""


class BatchForm(Struct, frozen=True, kw_only=True):
    """How a broker puts its batches into the log.

    Args:
        magic: `log.message.format.version`; transactions need 2.
        compression: `offsets.topic.compression.codec`.
        leader_epoch: Of the partition's leader.
        sequenced: Which batches carry base sequence 0: all but markers, as the Java coordinator
            writes them, or those of offset commits alone, as the Scala one does.
    """

    magic: int = CURRENT_MAGIC
    compression: Compression = Compression.NONE
    leader_epoch: int = 0
    sequenced: bool = True


DEFAULT_FORM: Final = BatchForm()


def form_of(profile: Profile) -> BatchForm:
    """The batch format that a broker of a profile writes with default settings."""
    return BatchForm(magic=profile.log_magic, sequenced=profile.log_sequences_every_batch)


def encode_batch(batch: LogBatch, form: BatchForm = DEFAULT_FORM) -> bytes:
    """A batch of the coordinator as the log of its partition holds it.

    Args:
        batch: With at least one record or a marker.
        form: What the broker adds.

    Raises:
        ValueError: It has neither records nor a marker, or magic and transaction do not fit.
    """
    if form.magic < CURRENT_MAGIC and (batch.transactional or batch.marker is not None):
        raise ValueError(f"magic {form.magic} has no transactions; 2 has")
    if batch.marker is not None:
        return encode_record_batch(_marker_batch(batch, batch.marker, form))
    if not batch.records:
        raise ValueError(f"the batch at offset {batch.base_offset} has no record to write")
    if form.magic == CURRENT_MAGIC and not form.compression:
        usual = usual_commit_records(batch)
        if usual is not None:
            return _framed(batch, form, usual)
    times_ms = batch.record_times_ms if form.magic else (NO_ID,) * len(batch.records)
    records = []
    for index, record in enumerate(batch.records):
        key, value = encode_record(record)
        at_ms = times_ms[index] if times_ms else batch.timestamp_ms
        offset = batch.base_offset + index
        records.append(Record(offset=offset, timestamp_ms=at_ms, key=key, value=value))
    stored = batch_of(
        tuple(records),
        magic=form.magic,
        compression=form.compression,
        leader_epoch=form.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=0 if form.sequenced or _commits_offsets(batch) else NO_ID,
        transactional=batch.transactional,
    )
    return encode_record_batch(stored)


def _framed(batch: LogBatch, form: BatchForm, records: bytes) -> bytes:
    """The bytes of offset commits, all of the batch's time, as their batch."""
    about = (
        TRANSACTIONAL if batch.transactional else 0,
        len(batch.records) - 1,
        batch.timestamp_ms,
        batch.timestamp_ms,
        batch.producer_id,
        batch.producer_epoch,
        0,
        len(batch.records),
    )
    return frame_records(records, batch.base_offset, form.leader_epoch, about)


def encode_log(
    batches: Iterable[LogBatch], form: BatchForm = DEFAULT_FORM
) -> Iterator[EncodedBatch]:
    """All batches of one partition, ready for `roll_segments`; empty ones are left out."""
    for batch in batches:
        if batch.records or batch.marker is not None:
            yield EncodedBatch(batch.base_offset, batch.next_offset, encode_batch(batch, form))


def decode_batches(data: bytes | memoryview, partition: int) -> Iterator[LogBatch]:
    """The batches of a segment as a coordinator loads them.

    Gaps that compaction left are kept: a batch is handed out in pieces without gaps, and a piece
    without records says how far it reached. Timestamps are those of the batches' first records.

    Args:
        data: The bytes of a segment, or several joined.
        partition: Of `__consumer_offsets`.

    Raises:
        CorruptSegmentError: The bytes stop being batches; all before were handed out.
        WireFormatError: A record is none of the offsets log, or of an unknown version.
    """
    reader = SegmentReader(data)
    keys: dict[bytes, LogKey] = {}
    for stored in reader:
        yield from log_batches_of(stored, partition, keys)
    reader.require_whole()


def log_batches_of(
    stored: StoredBatch, partition: int, keys: dict[bytes, LogKey] | None = None
) -> Iterator[LogBatch]:
    """One stored batch as the coordinator's plain data, in pieces without gaps.

    A piece has at most `MAX_PIECE` records, and no more of them are in memory at a time.

    Args:
        stored: As it lies in the log.
        partition: Of `__consumer_offsets`.
        keys: Keys decoded before, shared by the batches of a log for speed.

    Raises:
        WireFormatError: A record is none of the offsets log, or of an unknown version.
    """
    if stored.control:
        yield _control_batch(stored, partition)
        return
    reached = NO_ID
    for piece in _without_gaps(stored.streamed()):
        reached = piece[-1].offset + 1
        yield _piece(stored, piece, partition, keys)
    if reached < stored.next_offset:
        yield LogBatch(
            partition=partition,
            base_offset=stored.next_offset,
            timestamp_ms=stored.max_timestamp_ms,
            records=(),
        )


def _commits_offsets(batch: LogBatch) -> bool:
    """Whether the Scala coordinator writes it in storeOffsets: no group, no tombstone."""
    return all(
        isinstance(record.key, OffsetCommitKey) and record.value is not None
        for record in batch.records
    )


def _marker_batch(batch: LogBatch, marker: EndTransactionMarker, form: BatchForm) -> RecordBatch:
    """Source: MemoryRecords.withEndTransactionMarker, EndTransactionMarker."""
    record = Record(
        offset=batch.base_offset,
        timestamp_ms=batch.timestamp_ms,
        key=_CONTROL_KEY.pack(0, _COMMIT if marker.committed else _ABORT),
        value=_MARKER_VALUE.pack(0, marker.coordinator_epoch),
    )
    return batch_of(
        (record,),
        leader_epoch=form.leader_epoch,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        transactional=True,
        control=True,
    )


def control_type(record: Record) -> int:
    """The type of a control record: 0 ABORT, 1 COMMIT, others end no transaction.

    Raises:
        WireFormatError: Its key is cut short.
    """
    key = record.key or b""
    if len(key) < _CONTROL_KEY.size:
        raise WireFormatError(f"control record: a key of {len(key)} bytes", 0)
    _, kind = _CONTROL_KEY.unpack_from(key)
    return int(kind)


def read_marker(record: Record) -> EndTransactionMarker | None:
    """The marker that a control record is; None for one of another type.

    Raises:
        WireFormatError: Key or value are cut short.
    """
    kind = control_type(record)
    value = record.value or b""
    if kind not in (_ABORT, _COMMIT):
        return None
    if len(value) < _MARKER_VALUE.size:
        raise WireFormatError(f"control record: a marker of {len(value)} bytes", 0)
    _, epoch = _MARKER_VALUE.unpack_from(value)
    return EndTransactionMarker(committed=kind == _COMMIT, coordinator_epoch=epoch)


def marker_of(batch: StoredBatch) -> EndTransactionMarker | None:
    """The marker that a control batch is; None where cleaning emptied it, or for another type.

    Its first record alone is read.

    Raises:
        WireFormatError: That record does not parse.
    """
    first = next((record for record in batch.streamed() if record is not None), None)
    return None if first is None else read_marker(first)


def _control_batch(batch: StoredBatch, partition: int) -> LogBatch:
    marker = marker_of(batch)
    return LogBatch(
        partition=partition,
        base_offset=batch.last_offset,
        timestamp_ms=batch.max_timestamp_ms,
        records=(),
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        transactional=batch.transactional,
        marker=marker,
        control=True,
    )


def _piece(
    batch: StoredBatch,
    records: list[Record],
    partition: int,
    keys: dict[bytes, LogKey] | None,
) -> LogBatch:
    times_ms = tuple(record.timestamp_ms for record in records)
    return LogBatch(
        partition=partition,
        base_offset=records[0].offset,
        timestamp_ms=times_ms[0],
        record_times_ms=() if len(set(times_ms)) == 1 else times_ms,
        records=tuple(decode_record(_key_of(record), record.value, keys) for record in records),
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        transactional=batch.transactional,
    )


def _key_of(record: Record) -> bytes:
    if record.key is None:
        raise WireFormatError(f"offsets record at offset {record.offset}: it has no key", 0)
    return record.key


def _without_gaps(records: Iterator[Record | None]) -> Iterator[list[Record]]:
    """Runs of records whose offsets follow each other, long ones in pieces."""
    run: list[Record] = []
    following = full = NO_ID
    for record in records:
        if record is None:
            continue
        offset = record.offset
        if offset != following or offset == full:
            if run:
                yield run
            run = []
            full = offset + MAX_PIECE
        run.append(record)
        following = offset + 1
    if run:
        yield run
