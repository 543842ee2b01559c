"""The compressions of record batches, as Kafka's Java clients and brokers frame them.

Compressed records of a usual batch, decompressed in one call of a codec's library.

A batch of a dozen records costs a codec a microsecond, and reading it piece by piece costs several.
Each function knows the usual form alone: what comes back is what the general reader would give, and
None leaves the data to that reader, which also says what is wrong with it.

Source: kafka trunk, clients/.../common/compress: GzipCompression, SnappyCompression (xerial's
snappy-java), Lz4BlockInputStream and Lz4BlockOutputStream, ZstdCompression.
"""

import struct
import zlib
from collections.abc import Iterator
from enum import IntEnum, unique
from typing import Final, Protocol

import cramjam
import lz4.frame
import zstandard
from msgspec import Struct

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.steps import Steps, chunk_cost

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


@unique
class Compression(IntEnum):
    """How the records of a batch are compressed: bits 0 to 2 of its attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class _Stream(Protocol):
    """A streaming compressor of a library."""

    def compress(self, data: bytes, /) -> bytes: ...

    def flush(self) -> bytes: ...


class ContentBounds(Struct, frozen=True, gc=False):
    """Limits of one batch's content, so that a decompression bomb exhausts neither time nor memory.

    DEVIATION: Kafka has no such bounds: it reads as long as the content lasts. Real producers stay
    far below the defaults.

    Args:
        max_bytes: Limit of the decompressed content; by default 256 times `max.message.bytes`,
            while real records shrink to a tenth or a hundredth.
        max_blocks: Limit of Snappy blocks, or gzip members. Java's Snappy writer needs 8,192
            blocks for the largest content, and a gzip writer one member.
    """

    max_bytes: int = 256 * 1024 * 1024
    max_blocks: int = 1_000_000


DEFAULT_BOUNDS: Final = ContentBounds()
_SHORT_CONTENT: Final = (bytes, gzip_content, snappy_content, lz4_content, zstd_content)
"""How usual content of each codec is decompressed at once, by the codec's number."""
NO_BOUNDS: Final = ContentBounds(max_bytes=2**63, max_blocks=2**63)
"""No limits, for batches that are in a log already and are read in small pieces."""
CHUNK_BYTES: Final = 256 * 1024
"""Largest piece of content at a time: some hundred microseconds of any codec."""


class ContentTooLarge(WireFormatError):
    """Content exceeds its bounds; the message names bound and value."""


_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
"""Version and lowest compatible version. Source: snappy-java, SnappyCodec."""
_XERIAL_BLOCK: Final = 32 * 1024
_SIZE: Final = struct.Struct(">I")
"""zlib's largest window, plus 16 for gzip's header and trailer."""

_LZ4_FLAGS: Final = 4
"""Position of the FLG byte in an LZ4 frame; BD and then the header checksum follow."""
_LZ4_CONTENT_SIZE: Final = 0x08
_LZ4_DICTIONARY: Final = 0x01

_FEED_BYTES: Final = 16 * 1024
"""Compressed bytes that a codec gets at a time: unused bytes are copied each time."""
_MEMBER_BYTES: Final = 1024
"""Bytes of a gzip member that are read first: after a short member the rest is read again."""
_WRITING_COST: Final = 8
"""Cost of compressing relative to decompressing."""
_ZSTD_SKIPPABLE: Final = 0x184D2A50
_ZSTD_RAW: Final = 0
_ZSTD_BLOCK_BYTES: Final = 128 * 1024
"""Largest content of a block. Source: RFC 8878, section 3.1.1.2.4."""
_ZSTD_STEP_BLOCKS: Final = 32
"""Largest number of blocks per step, so that empty blocks cost what `chunk_cost` counts."""
_ZSTD_SHORTEST: Final = 4
"""Remaining bytes below this begin no other frame."""
_MASK: Final = 0xFFFFFFFF
_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1

# One shared context: creating one costs more than a batch (measured, 24 against 2 us).
_ZSTD_WRITER: Final = zstandard.ZstdCompressor()
_IDLE_ZSTD_READERS: Final[list[zstandard.ZstdDecompressor]] = []
"""Free contexts: a stream uses one from start to end, and streams may be read in turns."""


def compress(codec: Compression, data: bytes, magic: int = 2) -> bytes:
    """Compress records for a batch or a wrapper message.

    Args:
        codec: The codec.
        data: The records, one after another.
        magic: Magic of the batch. In magic 0 an LZ4 frame has the checksum that old clients
            expect.
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
    codec: Compression, data: bytes, magic: int = 2, *, bounds: ContentBounds = DEFAULT_BOUNDS
) -> bytes:
    """Decompress all records at once, also from frames that other clients write.

    Raises:
        ContentTooLarge: The content exceeds the bounds.
        WireFormatError: The data is no frame of the codec, or is truncated.
    """
    if codec is Compression.NONE:
        return data
    if len(data) <= _FEED_BYTES and magic:
        content = _SHORT_CONTENT[codec](data)
        if content is not None and len(content) <= bounds.max_bytes:
            return content
    return b"".join(decompressed_chunks(codec, data, magic, bounds=bounds))


def decompressed_chunks(
    codec: Compression, data: bytes, magic: int = 2, *, bounds: ContentBounds = DEFAULT_BOUNDS
) -> Iterator[bytes]:
    """Decompress piece by piece; time and memory are proportional to data and content.

    A piece has at most `CHUNK_BYTES`; without compression the data is one piece. Pieces may be
    empty: each block and member is a step of its own. A raw Snappy block can only be decompressed
    at once: up to 21 times its size.

    Args:
        codec: The codec.
        data: The records of a batch or a wrapper message.
        magic: Magic of the batch.
        bounds: Limits of the content.

    Raises:
        ContentTooLarge: The content exceeds the bounds; earlier pieces have been yielded.
        WireFormatError: The data is no frame of the codec, or is truncated.
    """
    match codec:
        case Compression.NONE:
            return iter((data,))
        case Compression.GZIP:
            chunks = _gzip_chunks(data, bounds)
        case Compression.SNAPPY:
            chunks = _snappy_chunks(data, bounds)
        case Compression.LZ4:
            chunks = _lz4_chunks(data, magic)
        case Compression.ZSTD:
            chunks = _zstd_chunks(data)
    return _bounded(codec, chunks, bounds.max_bytes)


def _bounded(codec: Compression, chunks: Iterator[bytes], max_bytes: int) -> Iterator[bytes]:
    left = max_bytes
    try:
        for chunk in chunks:
            left -= len(chunk)
            if left < 0:
                raise _too_large(codec, f"more than {max_bytes} bytes of content")
            yield chunk
    except (zlib.error, cramjam.DecompressionError, RuntimeError, zstandard.ZstdError) as error:
        raise WireFormatError(f"{codec.name.lower()} records do not decompress: {error}", 0) from (
            error
        )


def _too_large(codec: Compression, what: str) -> ContentTooLarge:
    return ContentTooLarge(f"{codec.name.lower()} records are larger than allowed: {what}", 0)


def _gzip_chunks(data: bytes, bounds: ContentBounds) -> Iterator[bytes]:
    """All members one after another, as GZIPInputStream reads them."""
    view = memoryview(data)
    position = count = 0
    while position < len(view):
        count += 1
        if count > bounds.max_blocks:
            raise _too_large(Compression.GZIP, f"more than {bounds.max_blocks} members")
        reader = zlib.decompressobj(wbits=_GZIP_WINDOW)
        feed = _MEMBER_BYTES
        while not reader.eof:
            given: bytes | memoryview = reader.unconsumed_tail
            if not given:
                given = view[position : position + feed]
                position += len(given)
                feed = _FEED_BYTES
            part = reader.decompress(given, CHUNK_BYTES)
            if not (given or part or reader.eof):
                raise zlib.error("the stream is cut short")
            yield part
        position -= len(reader.unused_data)


class ContentWriter:
    """Compresses content that comes piece by piece; `compress` takes it as a whole.

    Args:
        codec: The codec.
        magic: Magic of the batch, see `compress`.

    Attributes:
        size: Bytes written so far; the latest pieces may not be counted yet.
    """

    __slots__ = ("_codec", "_left", "_magic", "_parts", "_stream", "size")

    def __init__(self, codec: Compression, magic: int = 2) -> None:
        self._codec = codec
        self._magic = magic
        self._parts: list[bytes] = []
        self._left = b""
        self.size = 0
        self._stream: _Stream | None = None
        match codec:
            case Compression.GZIP:
                self._stream = zlib.compressobj(wbits=_GZIP_WINDOW)
            case Compression.ZSTD:
                self._stream = zstandard.ZstdCompressor().compressobj()
            case Compression.LZ4:
                writer = lz4.frame.LZ4FrameCompressor(
                    block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False
                )
                self._keep(bytes(writer.begin()))
                self._stream = writer
            case Compression.SNAPPY:
                self._keep(_XERIAL_HEADER)

    def write(self, data: bytes) -> Steps[None]:
        """Compress a piece, a chunk at a time."""
        for start in range(0, len(data), CHUNK_BYTES):
            piece = data[start : start + CHUNK_BYTES]
            if self._stream is not None:
                self._keep(self._stream.compress(piece))
            elif self._codec is Compression.SNAPPY:
                self._put_blocks(self._left + piece, is_end=False)
            else:
                self._keep(piece)
            yield _WRITING_COST * chunk_cost(piece)

    def finish(self) -> bytes:
        """Finish, and return the compressed content."""
        if self._stream is not None:
            self._keep(self._stream.flush())
        elif self._codec is Compression.SNAPPY:
            self._put_blocks(self._left, is_end=True)
        content = b"".join(self._parts)
        if self._codec is Compression.LZ4 and self._magic == 0:
            return _with_header_checksum(content, broken=True)
        return content

    def _put_blocks(self, data: bytes, *, is_end: bool) -> None:
        whole = len(data) if is_end else len(data) // _XERIAL_BLOCK * _XERIAL_BLOCK
        for part in _snappy_blocks(data[:whole]):
            self._keep(part)
        self._left = data[whole:]

    def _keep(self, part: bytes) -> None:
        self._parts.append(part)
        self.size += len(part)


# -- zstd ------------------------------------------------------------------------------------


def _zstd_chunks(data: bytes) -> Iterator[bytes]:
    """All frames in order; trailing bytes too short for a frame are ignored.

    Java's writer does not put the content's size into a frame's header. The decompressor gets a few
    blocks at a time, as it cannot be stopped within its input.

    Source: zstd-jni, ZstdInputStreamNoFinalizer.readInternal; RFC 8878, section 3.1.1.
    """
    view = memoryview(data)
    reader = _IDLE_ZSTD_READERS.pop() if _IDLE_ZSTD_READERS else zstandard.ZstdDecompressor()
    try:
        position = 0
        while len(view) - position >= _ZSTD_SHORTEST or not position:
            magic, size = (
                int.from_bytes(view[start : start + 4], "little")
                for start in (position, position + 4)
            )
            if magic & ~0xF == _ZSTD_SKIPPABLE:
                position += 8 + size
                yield b""
                continue
            frame = reader.decompressobj()
            for end in _zstd_steps(view, position):
                part = frame.decompress(view[position:end])
                position = end
                yield from _sliced(part)
            if not frame.eof:
                raise zstandard.ZstdError("the frame is cut short")
    finally:
        _IDLE_ZSTD_READERS.append(reader)


def _zstd_steps(view: memoryview, position: int) -> Iterator[int]:
    """The ends of a frame's steps, each of blocks with at most twice `CHUNK_BYTES` of content.

    The codec reports damage: the last step of a truncated frame is truncated, too.
    """
    start = position
    position += zstandard.frame_header_size(view[start:])
    has_checksum = bool(view[start + 4] & _ZSTD_CHECKSUM)
    is_last = False
    while not is_last and position + 3 <= len(view):
        content = 0
        for _ in range(_ZSTD_STEP_BLOCKS):
            header = int.from_bytes(view[position : position + 3], "little")
            is_last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            position += 3 + (1 if kind == _ZSTD_RLE else size)
            content += size if kind in (_ZSTD_RAW, _ZSTD_RLE) else _ZSTD_BLOCK_BYTES
            if is_last or content >= CHUNK_BYTES or position + 3 > len(view):
                break
        if is_last and has_checksum:
            position += 4
        yield min(position, len(view))
    if not is_last:
        yield len(view)


def _sliced(content: bytes) -> Iterator[bytes]:
    """Split content into pieces of at most `CHUNK_BYTES`."""
    if len(content) <= CHUNK_BYTES:
        yield content
        return
    for start in range(0, len(content), CHUNK_BYTES):
        yield content[start : start + CHUNK_BYTES]


# -- snappy ----------------------------------------------------------------------------------


def _snappy_bytes(data: bytes) -> bytes:
    """Blocks of 32 KiB behind xerial's header. Source: SnappyOutputStream."""
    return b"".join((_XERIAL_HEADER, *_snappy_blocks(data)))


def _snappy_blocks(data: bytes) -> Iterator[bytes]:
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK]))
        yield _SIZE.pack(len(block)) + block


def _snappy_chunks(data: bytes, bounds: ContentBounds) -> Iterator[bytes]:
    """Blocks behind xerial's header, or one raw block, as SnappyInputStream takes both."""
    if not data.startswith(_XERIAL_MAGIC):
        yield from _unsnapped(data, bounds.max_bytes)
        return
    left = bounds.max_bytes
    count = 0
    position, end = len(_XERIAL_HEADER), len(data)
    if end < position:
        raise cramjam.DecompressionError("the header is cut short")
    while position < end:
        if position + 4 > end:
            raise cramjam.DecompressionError("a block's size is cut short")
        count += 1
        if count > bounds.max_blocks:
            raise _too_large(Compression.SNAPPY, f"more than {bounds.max_blocks} blocks")
        if data.startswith(_XERIAL_MAGIC, position):
            # Concatenated streams: SnappyInputStream skips a header between blocks.
            position += len(_XERIAL_HEADER)
            yield b""
            continue
        (size,) = _SIZE.unpack_from(data, position)
        position += _SIZE.size
        if position + size > end:
            raise cramjam.DecompressionError(f"a block of {size} bytes is cut short")
        for part in _unsnapped(data[position : position + size], left):
            left -= len(part)
            yield part
        position += size


def _unsnapped(block: bytes, max_bytes: int) -> Iterator[bytes]:
    """The content of a block, which begins with its size."""
    size = int(cramjam.snappy.decompress_raw_len(block))
    if size > max_bytes:
        raise _too_large(Compression.SNAPPY, f"{size} bytes of a block where {max_bytes} are left")
    return _sliced(bytes(cramjam.snappy.decompress_raw(block)))


# -- LZ4 -------------------------------------------------------------------------------------


def _lz4_bytes(data: bytes, magic: int) -> bytes:
    """A frame of independent 64 KiB blocks without checksum or size.

    Source: Lz4BlockOutputStream; its reader refuses linked blocks.
    """
    frame = lz4.frame.compress(
        data, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return _with_header_checksum(frame, broken=True) if magic == 0 else bytes(frame)


def _lz4_chunks(data: bytes, magic: int) -> Iterator[bytes]:
    """One frame; bytes after it are ignored, as by Kafka's reader."""
    if magic == 0 and len(data) > _LZ4_FLAGS + 2:
        data = _with_header_checksum(data, broken=False)
    view = memoryview(data)
    reader = lz4.frame.LZ4FrameDecompressor()
    position = 0
    while not reader.eof:
        given = view[position : position + _FEED_BYTES] if reader.needs_input else b""
        position += len(given)
        if reader.needs_input and not given:
            raise RuntimeError("the frame is cut short")
        yield bytes(reader.decompress(given, max_length=CHUNK_BYTES))


def _with_header_checksum(frame: bytes, *, broken: bool) -> bytes:
    """The frame with a correct header checksum, or the wrong one of KAFKA-3160.

    QUIRK: messages of magic 0 hash the frame's magic number too; readers of magic 0 ignore it.
    """
    flags = frame[_LZ4_FLAGS]
    sized = 8 if flags & _LZ4_CONTENT_SIZE else 0
    end = _LZ4_FLAGS + 2 + sized + (4 if flags & _LZ4_DICTIONARY else 0)
    hashed = frame[0 if broken else _LZ4_FLAGS : end]
    checksum = xxh32_of_short(hashed) >> 8 & 0xFF
    return bytes(frame[:end]) + bytes((checksum,)) + bytes(frame[end + 1 :])


def xxh32_of_short(data: bytes) -> int:
    """XXH32 with seed 0 of at most 15 bytes, which is enough for a frame's header.

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
