"""Reads the header of a batch in a segment's bytes, without building objects.

Source: kafka trunk, clients/.../common/record: DefaultRecordBatch (offsets of fields),
AbstractLegacyRecordBatch, FileLogInputStream.
"""

import struct
from typing import Final

from coordinator_sim.log.format.record_batches import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MIN_LEGACY_SIZE,
)

HEADER_BYTES: Final = 43
"""Size of a magic 2 header up to the largest timestamp; entries of magic 0 and 1 may be shorter."""

_HEADER: Final = struct.Struct(">qiibIhiqq")
_LEGACY_FRONT: Final = struct.Struct(">qi")
_LEGACY_TIMESTAMP: Final = struct.Struct(">q")
_LEGACY_TIMESTAMP_AT: Final = 18
_MAGIC_AT: Final = 16
_MIN_SIZE: Final = LOG_OVERHEAD + MIN_LEGACY_SIZE

Header = tuple[int, int, int, int]
"""Size, base offset, last offset, newest timestamp (-1 none)."""


def header_at(data: bytes, at: int) -> Header | None:
    """The header of the batch at a position; None if the bytes end before the header does.

    Before magic 2 the base offset is set to the last offset: only the records know it.
    """
    left = len(data) - at
    if left < _MIN_SIZE:
        return None
    if data[at + _MAGIC_AT] < CURRENT_MAGIC:
        return _legacy_header(data, at)
    if left < HEADER_BYTES:
        return None
    base, length, _, _, _, _, delta, _, timestamp_ms = _HEADER.unpack_from(data, at)
    size = LOG_OVERHEAD + length
    return (size, base, base + delta, timestamp_ms) if size >= HEADER_SIZE else None


def batch_size(data: bytes, at: int) -> int:
    """The size of the batch at a position, header included."""
    return LOG_OVERHEAD + int.from_bytes(data[at + 8 : at + LOG_OVERHEAD], "big")


def _legacy_header(data: bytes, at: int) -> Header | None:
    last, length = _LEGACY_FRONT.unpack_from(data, at)
    if length < MIN_LEGACY_SIZE:
        return None
    timestamp_ms = -1
    if data[at + _MAGIC_AT]:
        (timestamp_ms,) = _LEGACY_TIMESTAMP.unpack_from(data, at + _LEGACY_TIMESTAMP_AT)
    return LOG_OVERHEAD + length, last, last, timestamp_ms
