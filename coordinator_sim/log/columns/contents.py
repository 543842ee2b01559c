"""The records of many batches in one run of bytes, decompressed where they need it."""

from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.columns.batch_scan import PADDING, BatchTable, Flags, Ints
from coordinator_sim.log.format.compression import Compression, ContentBounds, decompress
from coordinator_sim.log.format.record_batches import CURRENT_MAGIC, HEADER_SIZE, LOG_OVERHEAD

MAX_CONTENT: Final = ContentBounds(max_bytes=64 * 1024 * 1024)
"""Limit of one batch's content, and of all batches of a chunk that are read together.

DEVIATION: Kafka has none. A broker takes a megabyte as a batch by default, before decompression.
"""
_CODEC_MASK: Final = 0x07
_CODECS: Final = tuple(Compression)


class Contents(Struct, frozen=True, kw_only=True):
    """Decompressed records of batches.

    Args:
        data: The records, with `PADDING` behind.
        starts: Position of each batch's first record.
        ends: Position after its last one.
        odd: Batches that are left to the plain reader; start and end are 0.
    """

    data: bytes
    starts: Ints
    ends: Ints
    odd: Flags


def contents_of(table: BatchTable, span: slice) -> Contents:
    """The records of some batches of a table."""
    headers = table.headers[span]
    codecs = headers["attributes"].astype(np.int64) & _CODEC_MASK
    odd = (headers["magic"] != CURRENT_MAGIC) | (codecs > Compression.ZSTD)
    starts = table.positions[span] + HEADER_SIZE
    ends = table.positions[span] + LOG_OVERHEAD + headers["length"].astype(np.int64)
    if not codecs[~odd].any():
        starts[odd] = ends[odd] = 0
        return Contents(data=table.data, starts=starts, ends=ends, odd=odd)
    return _decompressed(table.data, starts, ends, (codecs, odd))


def _decompressed(
    data: bytes, starts: Ints, ends: Ints, forms: tuple[NDArray[Any], Flags]
) -> Contents:
    codecs, odd = forms
    parts: list[bytes] = []
    sizes = []
    left = MAX_CONTENT.max_bytes
    rows = zip(
        codecs.tolist(), starts.tolist(), ends.tolist(), odd.tolist(), range(len(odd)), strict=True
    )
    for codec, start, end, is_odd, index in rows:
        part = b""
        if not is_odd and start < end and left > 0:
            part = data[start:end]
            if codec:
                try:
                    part = decompress(_CODECS[codec], part, bounds=MAX_CONTENT)
                except WireFormatError:
                    odd[index] = True
                    part = b""
        elif not is_odd and start < end:
            odd[index] = True
        left -= len(part)
        parts.append(part)
        sizes.append(len(part))
    stops = np.cumsum(np.array(sizes, np.int64))
    parts.append(PADDING)
    return Contents(data=b"".join(parts), starts=stops - sizes, ends=stops, odd=odd)
