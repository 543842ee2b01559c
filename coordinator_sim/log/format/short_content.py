"""Compressed records of a usual batch, decompressed in one call of a codec's library.

A batch of a dozen records costs a codec a microsecond, and reading it piece by piece costs several.
Each function knows the usual form alone: what comes back is what the general reader would give, and
None leaves the data to that reader, which also says what is wrong with it.
"""

import zlib
from typing import Final

import cramjam
import lz4.frame
import zstandard

MAX_CONTENT: Final = 256 * 1024
"""Bytes of content that Snappy and gzip give at once, at most."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE: Final = 16
_BLOCK_AT: Final = 20
_GZIP_WINDOW: Final = 31
_ZSTD_CHECKSUM: Final = 0x04
_ZSTD_FLAGS_AT: Final = 4
_ZSTD_RLE: Final = 1

# One shared context: creating one costs more than a batch. Each use ends before the next begins.
_ZSTD_READER: Final = zstandard.ZstdDecompressor()


def lz4_content(data: bytes) -> bytes | None:
    """The content of one frame, at most 255 times its size; bytes after it are ignored."""
    try:
        return bytes(lz4.frame.decompress(data))
    except RuntimeError:
        return None


def zstd_content(data: bytes) -> bytes | None:
    """The content of one frame of one block, at most 128 KiB, with nothing behind it.

    Source: RFC 8878, section 3.1.1.
    """
    try:
        start = zstandard.frame_header_size(data)
        header = int.from_bytes(data[start : start + 3], "little")
        size = 1 if header >> 1 & 3 == _ZSTD_RLE else header >> 3
        checksum = 4 if data[_ZSTD_FLAGS_AT] & _ZSTD_CHECKSUM else 0
        if not header & 1 or start + 3 + size + checksum != len(data):
            return None
        reader = _ZSTD_READER.decompressobj()
        content = reader.decompress(data)
    except (IndexError, zstandard.ZstdError):
        return None
    return content if reader.eof else None


def snappy_content(data: bytes) -> bytes | None:
    """The content of one block behind xerial's header."""
    size = int.from_bytes(data[_XERIAL_HEADER_SIZE:_BLOCK_AT], "big")
    block = data[_BLOCK_AT:]
    if not data.startswith(_XERIAL_MAGIC) or len(block) != size:
        return None
    try:
        if cramjam.snappy.decompress_raw_len(block) > MAX_CONTENT:
            return None
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError:
        return None


def gzip_content(data: bytes) -> bytes | None:
    """The content of one member, with nothing behind it."""
    reader = zlib.decompressobj(wbits=_GZIP_WINDOW)
    try:
        content = reader.decompress(data, MAX_CONTENT)
    except zlib.error:
        return None
    return content if reader.eof and not reader.unused_data else None
