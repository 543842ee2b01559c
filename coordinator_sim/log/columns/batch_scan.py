"""Finds the batches of a segment's bytes: headers and checksums, nothing decoded.

A batch with a wrong CRC is left out and reported, and the scan goes on behind it, as `log dump`
does. A header that cannot be ends the scan.
"""

import struct
from typing import Any, Final, Protocol

import crc32c
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC, HEADER_SIZE, LOG_OVERHEAD
from coordinator_sim.log.format.segments import Damage
from coordinator_sim.log.format.stored_batches import MAGIC_AT, StoredBatch, next_batch

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

PADDING: Final = bytes(256)
"""Zeros behind the bytes, so that a field or a key may be read at any position of them."""

_HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "u1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp_ms", ">i8"),
        ("max_timestamp_ms", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("count", ">i4"),
    ]
)
_LENGTH: Final = struct.Struct(">i")
_LENGTH_AT: Final = 8
_CHECKED_FROM: Final = 21
_NO_CRC: Final = -1
CUT_SHORT: Final = "the last batch is cut short"
ZEROS: Final = "the tail is filled with zeros"


class SegmentSource(Protocol):
    """The bytes of one segment, wherever they are."""

    @property
    def size(self) -> int:
        """Number of bytes."""
        ...

    def read(self, position: int, count: int, /) -> bytes:
        """Return `count` bytes of the segment from a position on; fewer only at its end."""
        ...


class SegmentInMemory(Struct, frozen=True):
    """A segment whose bytes are in memory.

    Args:
        data: All bytes of the file.
    """

    data: bytes

    @property
    def size(self) -> int:
        """Number of bytes."""
        return len(self.data)

    def read(self, position: int, count: int, /) -> bytes:
        """Return `count` bytes of the segment from a position on; fewer only at its end."""
        return self.data[position : position + count]


class BatchTable(Struct, frozen=True, kw_only=True):
    """Whole batches with a correct CRC, in the order of the log.

    Args:
        data: Bytes that hold them, and `PADDING` behind.
        origin: Position of these bytes in the segment.
        positions: Start of each batch in `data`.
        headers: Header of each; that of an entry before magic 2 means nothing but its magic.
        damage: Batches with a wrong CRC among them, which are left out.
        end: Position in `data` behind the last batch that was looked at.
        error: Why what is there cannot be a batch; None where the bytes merely end.
    """

    data: bytes
    origin: int
    positions: Ints
    headers: NDArray[Any]
    damage: tuple[Damage, ...]
    end: int
    error: str | None

    def stored(self, index: int) -> StoredBatch:
        """One of the batches, for the plain reader."""
        position = int(self.positions[index])
        (length,) = _LENGTH.unpack_from(self.data, position + _LENGTH_AT)
        return StoredBatch(self.data, position, LOG_OVERHEAD + length)

    def column(self, name: str) -> Ints:
        """One field of all headers."""
        return self.headers[name].astype(np.int64)


def gathered(data: bytes, at: Ints, kind: str) -> Ints:
    """Big-endian numbers at any positions of padded bytes; `kind` is numpy's, such as `>i8`."""
    size = int(kind[-1])
    every: NDArray[Any] = np.ndarray((len(data) - size + 1,), kind, data, strides=(1,))
    return every[at].astype(np.int64)


def scan_batches(data: bytes, origin: int, stop: int) -> BatchTable:
    """Find the batches that begin before a position.

    Args:
        data: Bytes that begin with a batch, and `PADDING` behind.
        origin: Position of these bytes in the segment.
        stop: Position in `data` before which batches begin.
    """
    limit = len(data) - len(PADDING)
    view = memoryview(data)[:limit]
    length_at, checksum = _LENGTH.unpack_from, crc32c.crc32c
    position, error = 0, None
    positions: list[int] = []
    checksums: list[int] = []
    while position < stop:
        if data[position + MAGIC_AT] == CURRENT_MAGIC and position + HEADER_SIZE <= limit:
            end = position + LOG_OVERHEAD + length_at(data, position + _LENGTH_AT)[0]
            if position + HEADER_SIZE <= end <= limit:
                positions.append(position)
                checksums.append(checksum(view[position + _CHECKED_FROM : end]))
                position = end
                continue
        try:
            batch = next_batch(view, position)
        except WireFormatError as impossible:
            error = str(impossible.args[0])
            break
        if batch is None:
            break
        positions.append(position)
        checksums.append(_NO_CRC if batch.is_valid else _NO_CRC - 1)
        position += batch.size
    return _checked(data, origin, positions, checksums, (position, error))


def _checked(
    data: bytes,
    origin: int,
    positions: list[int],
    checksums: list[int],
    ended: tuple[int, str | None],
) -> BatchTable:
    at = np.array(positions, np.int64)
    found = np.array(checksums, np.int64)
    every: NDArray[Any] = np.ndarray(
        (len(data) - HEADER_SIZE + 1,), f"V{HEADER_SIZE}", data, strides=(1,)
    )
    headers = every[at].view(_HEADER)
    good = np.where(found < 0, found == _NO_CRC, found == headers["crc"])
    table = BatchTable(
        data=data,
        origin=origin,
        positions=at,
        headers=headers,
        damage=(),
        end=ended[0],
        error=ended[1],
    )
    if good.all():
        return table
    bad = [table.stored(int(index)) for index in np.flatnonzero(~good)]
    return BatchTable(
        data=data,
        origin=origin,
        positions=at[good],
        headers=headers[good],
        damage=tuple(
            Damage(
                position=origin + batch.position,
                invalid_bytes=batch.size,
                reason=f"batch at offset {batch.last_offset}: wrong CRC",
            )
            for batch in bad
        ),
        end=ended[0],
        error=ended[1],
    )
