"""The compressions of record batches, as Kafka's Java clients and brokers frame them.

Source: kafka trunk, clients/.../common/compress: GzipCompression, SnappyCompression (xerial's
snappy-java), Lz4BlockInputStream and Lz4BlockOutputStream, ZstdCompression.
"""

import struct
import zlib
from enum import IntEnum, unique
from typing import Final

import cramjam
import lz4.frame
import zstandard

from coordinator_sim.errors import WireFormatError


@unique
class Compression(IntEnum):
    """How the records of a batch are compressed: bits 0 to 2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


MAX_DECOMPRESSED_BYTES: Final = 256 * 1024 * 1024
"""Of one batch, unless told otherwise.

DEVIATION: a batch that grows beyond is refused as one that does not decompress, since all of it is
held at once; Kafka streams records and limits single ones. 256 times the default
`max.message.bytes`.
"""
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
"""Version and lowest compatible version. Source: snappy-java, SnappyCodec."""
_XERIAL_BLOCK: Final = 32 * 1024
_GZIP_WINDOW: Final = 31
"""zlib's largest window, plus 16 for gzip's header and trailer."""

_LZ4_FLAGS: Final = 4
"""Where an LZ4 frame has its FLG byte; BD and then the header checksum follow."""
_LZ4_CONTENT_SIZE: Final = 0x08
_LZ4_DICTIONARY: Final = 0x01

_TOO_LARGE: Final = "the content is larger than is held at once"
_ZSTD_STEP: Final = 1024
"""Of a frame that is decompressed before its growth is looked at: at most 32 MiB (measured)."""
_MASK: Final = 0xFFFFFFFF
_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1

# One context for all: making one costs more than a batch (measured, 24 against 2 us).
_ZSTD_WRITER: Final = zstandard.ZstdCompressor()
_ZSTD_READER: Final = zstandard.ZstdDecompressor()


def compress(codec: Compression, data: bytes, magic: int = 2) -> bytes:
    """Records as they stand in a batch or in a wrapper message.

    Args:
        codec: How to compress.
        data: The records, one after another.
        magic: Of the batch. In magic 0 an LZ4 frame has the checksum that old clients expect.
    """
    match codec:
        case Compression.NONE:
            return data
        case Compression.GZIP:
            writer = zlib.compressobj(wbits=_GZIP_WINDOW)
            return writer.compress(data) + writer.flush()
        case Compression.SNAPPY:
            return _snappy_bytes(data)
        case Compression.LZ4:
            return _lz4_bytes(data, magic)
        case Compression.ZSTD:
            return _ZSTD_WRITER.compress(data)


def decompress(
    codec: Compression, data: bytes, magic: int = 2, *, limit: int = MAX_DECOMPRESSED_BYTES
) -> bytes:
    """What `compress` was given, also from frames that other clients write.

    Args:
        codec: How it is compressed.
        data: The records as they stand in a batch or in a wrapper message.
        magic: Of the batch.
        limit: Of the answer in bytes; a bomb does not get to fill the memory.

    Raises:
        WireFormatError: The data is no frame of that codec, is cut short, or grows too large.
    """
    try:
        match codec:
            case Compression.NONE:
                return data
            case Compression.GZIP:
                return _gunzip(data, limit)
            case Compression.SNAPPY:
                return _unsnap(data, limit)
            case Compression.LZ4:
                return _unlz4(data, magic, limit)
            case Compression.ZSTD:
                return _unzstd(data, limit)
    except (zlib.error, cramjam.DecompressionError, RuntimeError, zstandard.ZstdError) as error:
        raise WireFormatError(f"{codec.name.lower()} records do not decompress: {error}", 0) from (
            error
        )


def _gunzip(data: bytes, limit: int) -> bytes:
    """All members one after another, as GZIPInputStream reads them."""
    parts = []
    while data:
        reader = zlib.decompressobj(wbits=_GZIP_WINDOW)
        part = reader.decompress(data, limit + 1)
        limit -= len(part)
        if limit < 0:
            raise zlib.error(_TOO_LARGE)
        parts.append(part)
        if not reader.eof:
            raise zlib.error("the stream is cut short")
        data = reader.unused_data
    return b"".join(parts)


def _unzstd(data: bytes, limit: int) -> bytes:
    """One frame; Java's writer does not say the size of the content in its header."""
    reader = _ZSTD_READER.decompressobj()
    parts: list[bytes] = []
    for start in range(0, len(data), _ZSTD_STEP):
        part = reader.decompress(data[start : start + _ZSTD_STEP])
        limit -= len(part)
        if limit < 0:
            raise zstandard.ZstdError(_TOO_LARGE)
        parts.append(part)
        if reader.eof:
            return b"".join(parts)
    raise zstandard.ZstdError("the frame is cut short")


# -- snappy ----------------------------------------------------------------------------------


def _snappy_bytes(data: bytes) -> bytes:
    """Blocks of 32 KiB behind xerial's header. Source: SnappyOutputStream."""
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _unsnap(data: bytes, limit: int) -> bytes:
    """Blocks behind xerial's header, or one raw block, as SnappyInputStream takes both."""
    if not data.startswith(_XERIAL_MAGIC):
        return _unsnap_block(data, limit)
    parts = []
    position = len(_XERIAL_HEADER)
    if len(data) < position:
        raise cramjam.DecompressionError("the header is cut short")
    while position < len(data):
        if position + 4 > len(data):
            raise cramjam.DecompressionError("a block's size is cut short")
        (size,) = struct.unpack_from(">I", data, position)
        position += 4
        if data[position - 4 :].startswith(_XERIAL_MAGIC):
            # Streams that were joined: SnappyInputStream passes over a header between blocks.
            position += len(_XERIAL_HEADER) - 4
            continue
        if position + size > len(data):
            raise cramjam.DecompressionError(f"a block of {size} bytes is cut short")
        part = _unsnap_block(data[position : position + size], limit)
        limit -= len(part)
        parts.append(part)
        position += size
    return b"".join(parts)


def _unsnap_block(data: bytes, limit: int) -> bytes:
    """A block begins with its content's size."""
    if int(cramjam.snappy.decompress_raw_len(data)) > limit:
        raise cramjam.DecompressionError(_TOO_LARGE)
    return bytes(cramjam.snappy.decompress_raw(data))


# -- LZ4 -------------------------------------------------------------------------------------


def _lz4_bytes(data: bytes, magic: int) -> bytes:
    """A frame of independent 64 KiB blocks without checksum or size.

    Source: Lz4BlockOutputStream; its reader refuses linked blocks.
    """
    frame = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return _with_header_checksum(frame, broken=True) if magic == 0 else bytes(frame)


def _unlz4(data: bytes, magic: int, limit: int) -> bytes:
    if magic == 0 and len(data) > _LZ4_FLAGS + 2:
        data = _with_header_checksum(data, broken=False)
    reader = lz4.frame.LZ4FrameDecompressor()
    content = bytes(reader.decompress(data, max_length=limit + 1))
    if len(content) > limit:
        raise RuntimeError(_TOO_LARGE)
    if not reader.eof:
        raise RuntimeError("the frame is cut short")
    return content


def _with_header_checksum(frame: bytes, *, broken: bool) -> bytes:
    """The frame with the checksum of its header right, or wrong as KAFKA-3160 has it.

    QUIRK: messages of magic 0 hash the frame's magic number too; readers of magic 0 ignore it.
    """
    flags = frame[_LZ4_FLAGS]
    sized = 8 if flags & _LZ4_CONTENT_SIZE else 0
    end = _LZ4_FLAGS + 2 + sized + (4 if flags & _LZ4_DICTIONARY else 0)
    hashed = frame[0 if broken else _LZ4_FLAGS : end]
    checksum = xxh32_of_short(hashed) >> 8 & 0xFF
    return bytes(frame[:end]) + bytes((checksum,)) + bytes(frame[end + 1 :])


def xxh32_of_short(data: bytes) -> int:
    """XXH32 with seed 0 of at most 15 bytes, which is all that a frame's header needs.

    Source: the xxHash specification, section XXH32, steps for inputs below 16 bytes.
    """
    value = _PRIME_5 + len(data)
    words = len(data) // 4 * 4
    for start in range(0, words, 4):
        (word,) = struct.unpack_from("<I", data, start)
        value = _rotated(value + word * _PRIME_3, 17) * _PRIME_4
    for byte in data[words:]:
        value = _rotated(value + byte * _PRIME_5, 11) * _PRIME_1
    value &= _MASK
    value = (value ^ value >> 15) * _PRIME_2 & _MASK
    value = (value ^ value >> 13) * _PRIME_3 & _MASK
    return value ^ value >> 16


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK
