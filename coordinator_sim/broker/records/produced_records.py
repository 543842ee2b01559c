"""Checks of a Produce request's records before the log is asked, without decompressing them.

Source: kafka trunk, ProduceRequest.validateRecords; RequestUtils.hasTransactionalRecords;
ByteBufferLogInputStream.nextBatch.
"""

import struct
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC, LOG_OVERHEAD, TRANSACTIONAL
from coordinator_sim.log.format.steps import Steps

_UP_TO_MAGIC: Final = 17
_MIN_SIZE: Final = 14
"""Smallest size of an entry after its offset and size. Source: LegacyRecord.RECORD_OVERHEAD_V0."""
_SIZE: Final = struct.Struct(">i")
_SIZE_AT: Final = 8
_MAGIC: Final = struct.Struct(">b")
_MAGIC_AT: Final = 16
_PRODUCER: Final = struct.Struct(">qh")
_PRODUCER_AT: Final = 43
_ATTRIBUTES: Final = struct.Struct(">h")
_ATTRIBUTES_AT: Final = 21
_HEADER_SIZE: Final = 61
_CODEC: Final = 7
_ZSTD: Final = 4

_FIRST_HEADS: Final = 2
_HEADS_A_STEP: Final = 500
_COST_OF_HEAD: Final = 2

_BATCHES_SINCE: Final = 3
"""From this version on, Produce carries exactly one batch of the current format."""
_ZSTD_SINCE: Final = 7


class BatchHead(Struct, frozen=True, gc=False):
    """The head of a batch; only the current format has producer fields."""

    magic: int
    codec: int = 0
    is_transactional: bool = False
    producer_id: int = -1
    producer_epoch: int = -1


class Walk(Struct, frozen=True):
    """Result of walking through the records of a partition.

    Args:
        heads: Heads of the first two whole batches, in order, and of the last transactional batch
            after them; a torn batch at the end is left out.
        fault: Why the walk ended early, in Kafka's words; None when it did not.
    """

    heads: tuple[BatchHead, ...]
    fault: str | None = None


def walk(records: bytes) -> Steps[Walk]:
    """Walk from batch to batch; return the heads that matter and the first fault."""
    heads: list[BatchHead] = []
    fault = None
    count = 0
    position, end = 0, len(records)
    while fault is None and end - position >= LOG_OVERHEAD:
        (size,) = _SIZE.unpack_from(records, position + _SIZE_AT)
        if size < _MIN_SIZE:
            fault = f"Record size {size} is less than the minimum record overhead ({_MIN_SIZE})"
        elif end - position < _UP_TO_MAGIC:
            break
        else:
            (magic,) = _MAGIC.unpack_from(records, position + _MAGIC_AT)
            if not 0 <= magic <= CURRENT_MAGIC:
                fault = f"Invalid magic found in record: {magic}"
            elif end - position < LOG_OVERHEAD + size:
                break
            else:
                _note(heads, _head(records, position, magic))
                position += LOG_OVERHEAD + size
                count += 1
                if count % _HEADS_A_STEP == 0:
                    yield _HEADS_A_STEP * _COST_OF_HEAD
    return Walk(tuple(heads), fault)


def _note(heads: list[BatchHead], head: BatchHead) -> None:
    """Keep the head of a batch if `Walk.heads` needs it."""
    if len(heads) < _FIRST_HEADS:
        heads.append(head)
    elif head.is_transactional and head.producer_id >= 0:
        heads[_FIRST_HEADS:] = [head]


def first_magic(records: bytes) -> int:
    """The magic number of the first batch; -1 when there is none."""
    return records[_MAGIC_AT] if len(records) > _MAGIC_AT else -1


def _head(records: bytes, position: int, magic: int) -> BatchHead:
    if magic < CURRENT_MAGIC or len(records) - position < _HEADER_SIZE:
        return BatchHead(magic)
    (attributes,) = _ATTRIBUTES.unpack_from(records, position + _ATTRIBUTES_AT)
    producer_id, epoch = _PRODUCER.unpack_from(records, position + _PRODUCER_AT)
    is_transactional = bool(attributes & TRANSACTIONAL)
    return BatchHead(magic, attributes & _CODEC, is_transactional, producer_id, epoch)


def edge_error(version: int, met: Walk) -> ErrorCode:
    """The error of records that can be found without the log.

    Args:
        version: Version of Produce, which decides the formats allowed.
        met: Result of walking through the records.
    """
    if version < _BATCHES_SINCE:
        return ErrorCode.NONE
    if not met.heads and met.fault is None:
        return ErrorCode.INVALID_RECORD
    if met.heads and met.heads[0].magic != CURRENT_MAGIC:
        return ErrorCode.INVALID_RECORD
    if met.heads and version < _ZSTD_SINCE and met.heads[0].codec == _ZSTD:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    if met.fault is not None:
        return ErrorCode.CORRUPT_MESSAGE
    return ErrorCode.NONE if len(met.heads) == 1 else ErrorCode.INVALID_RECORD
