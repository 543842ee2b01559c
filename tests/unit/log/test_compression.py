"""Frames of all codecs, and frames that grow too large."""

import random
import struct
import sys
import tracemalloc
import zlib
from itertools import zip_longest

import pytest

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.compression import (
    CHUNK_BYTES,
    Compression,
    ContentBounds,
    ContentTooLarge,
    compress,
    decompress,
    decompressed_chunks,
)

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
CONTENT = bytes(range(256)) * 40
BOMB = bytes(4_000_000)


@pytest.mark.parametrize("codec", [Compression.NONE, *CODECS])
def test_what_was_compressed_comes_back(codec: Compression) -> None:
    """Also where it fills the limit exactly."""
    data = compress(codec, CONTENT)
    assert decompress(codec, data, bounds=ContentBounds(max_bytes=len(CONTENT))) == CONTENT


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused(codec: Compression) -> None:
    """Four megabytes of zeros out of some kilobytes do not fit a limit of one."""
    with pytest.raises(WireFormatError, match="larger than allowed"):
        decompress(codec, compress(codec, BOMB), bounds=ContentBounds(max_bytes=1_000_000))


@pytest.mark.parametrize("codec", CODECS)
def test_a_frame_that_is_cut_short_is_refused(codec: Compression) -> None:
    """Half of the records is not what the batch counts."""
    with pytest.raises(WireFormatError):
        decompress(codec, compress(codec, CONTENT)[:-9])


def test_members_of_a_gzip_stream_count_together() -> None:
    """GZIPInputStream reads all members one after another, and so does the limit."""
    member = compress(Compression.GZIP, CONTENT)
    assert decompress(Compression.GZIP, member * 2) == CONTENT * 2
    with pytest.raises(WireFormatError, match="larger"):
        decompress(Compression.GZIP, member * 2, bounds=ContentBounds(max_bytes=len(CONTENT) + 1))


def test_a_raw_snappy_block_says_its_size() -> None:
    """A block without xerial's header is refused before it is decompressed."""
    with pytest.raises(WireFormatError, match="larger"):
        decompress(
            Compression.SNAPPY,
            b"\xff\xff\xff\xff\x07" + bytes(20),
            bounds=ContentBounds(max_bytes=1000),
        )


def test_garbage_is_no_frame() -> None:
    """Bytes of no codec are told as such."""
    for codec in CODECS:
        with pytest.raises(WireFormatError):
            decompress(codec, struct.pack(">I", zlib.crc32(b"x")) * 8)


# -- piece by piece --------------------------------------------------------------------------


def xerial(blocks: list[bytes]) -> bytes:
    """Snappy blocks, each behind its size."""
    return compress(Compression.SNAPPY, b"") + b"".join(
        struct.pack(">I", len(block)) + block for block in blocks
    )


EMPTY_BLOCK = b"\x00"
EMPTY_MEMBER = compress(Compression.GZIP, b"")
MANY = {
    Compression.GZIP: lambda count: EMPTY_MEMBER * count,
    Compression.SNAPPY: lambda count: xerial([EMPTY_BLOCK] * count),
    Compression.LZ4: lambda count: compress(Compression.LZ4, bytes(65_536 * count)),
    Compression.ZSTD: lambda count: compress(Compression.ZSTD, b"") * count,
}
"""For each codec, a stream of so many blocks, members or frames."""


def copied_bytes(codec: Compression, count: int) -> int:
    """What reading that many blocks copies at least: the sizes of all slices of the input."""
    total = 0

    class Input(bytes):
        def __getitem__(self, key: object) -> object:  # type: ignore[override]
            nonlocal total
            found = super().__getitem__(key)  # type: ignore[index]
            total += len(found) if isinstance(found, bytes) else 1
            return found

        def startswith(self, *args: object) -> bool:  # type: ignore[override]
            nonlocal total
            total += 8
            return super().startswith(*args)  # type: ignore[arg-type]

    for _ in decompressed_chunks(codec, Input(MANY[codec](count))):
        pass
    return total


def calls_of(codec: Compression, count: int) -> int:
    """How many Python and C functions are called to read that many blocks."""
    data = MANY[codec](count)
    calls = 0

    def count_call(_frame: object, event: str, _arg: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        for _ in decompressed_chunks(codec, data):
            pass
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("codec", CODECS)
def test_many_blocks_cost_linear_time(codec: Compression) -> None:
    """Twice as many blocks, members or frames: at most twice the calls and the copied bytes."""
    for cost in (calls_of, copied_bytes):
        one, two, four = (cost(codec, count) for count in (250, 500, 1000))
        assert two <= 2 * one + 50
        assert four <= 2 * two + 50


def test_leftovers_of_gzip_members_are_not_copied_again_and_again() -> None:
    """What zlib gives back after a member is a part of what it was given: a kilobyte."""
    reader = zlib.decompressobj
    left: list[int] = []

    class Spy:
        def __init__(self, wbits: int) -> None:
            self._reader = reader(wbits=wbits)

        def decompress(self, data: bytes, max_length: int) -> bytes:
            left.append(len(data))
            return self._reader.decompress(data, max_length)

        def __getattr__(self, name: str) -> object:
            return getattr(self._reader, name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(zlib, "decompressobj", Spy)
        for _ in decompressed_chunks(Compression.GZIP, EMPTY_MEMBER * 2000):
            pass
    assert max(left) <= 1024
    assert len(left) == 2000


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_read_in_small_pieces(codec: Compression) -> None:
    """64 MB of zeros take two megabytes of memory, whatever the codec."""
    data = compress(codec, bytes(64_000_000))
    for _ in decompressed_chunks(codec, data):
        break  # The codec's own tables are there from now on.
    tracemalloc.start()
    try:
        sizes = [len(chunk) for chunk in decompressed_chunks(codec, data)]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(sizes) == 64_000_000
    assert max(sizes) <= CHUNK_BYTES
    assert peak < 2_000_000


@pytest.mark.parametrize("codec", CODECS)
def test_pieces_are_the_whole(codec: Compression) -> None:
    """Drawn contents of many sizes, those of pieces and blocks among them."""
    draw = random.Random(int(codec))  # noqa: S311 - draws contents
    for size in (0, 1, 20, 1000, 65_536, CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 700_000):
        words = b"".join(b"k%d" % draw.randrange(1000) for _ in range(size // 3))
        for content in (words, draw.randbytes(size), bytes(size)):
            chunks = list(decompressed_chunks(codec, compress(codec, content)))
            assert b"".join(chunks) == content
            assert all(len(chunk) <= CHUNK_BYTES for chunk in chunks)


def test_streams_of_zstd_may_be_read_by_turns() -> None:
    """Each has a reader of its own."""
    draw = random.Random(5)  # noqa: S311 - draws contents
    contents = [draw.randbytes(600_000) for _ in range(3)]
    streams = [
        decompressed_chunks(Compression.ZSTD, compress(Compression.ZSTD, each)) for each in contents
    ]
    found = [b""] * 3
    for chunks in zip_longest(*streams, fillvalue=b""):
        found = [before + chunk for before, chunk in zip(found, chunks, strict=True)]
    assert found == contents


def test_joined_frames_of_zstd_are_one_stream() -> None:
    """Java's reader goes on with the next frame, passes over others, and refuses what is none."""
    frame = compress(Compression.ZSTD, CONTENT)
    skipped = struct.pack("<II", 0x184D2A53, 5) + b"extra"
    assert decompress(Compression.ZSTD, frame + skipped + frame) == CONTENT * 2
    assert decompress(Compression.ZSTD, frame + b"\x28\xb5") == CONTENT
    with pytest.raises(WireFormatError, match="zstd records do not decompress"):
        decompress(Compression.ZSTD, frame + b"garbage")


@pytest.mark.parametrize("codec", [Compression.GZIP, Compression.SNAPPY])
def test_blocks_are_counted(codec: Compression) -> None:
    """More blocks or members than allowed are refused, however little they hold."""
    data = MANY[codec](101)
    assert decompress(codec, data, bounds=ContentBounds(max_blocks=101)) == b""
    with pytest.raises(ContentTooLarge, match="more than 100"):
        decompress(codec, data, bounds=ContentBounds(max_blocks=100))


def in_pieces(codec: Compression, data: bytes, magic: int) -> bytes | None:
    """The content as the reader of large batches gives it; None where it refuses the data."""
    try:
        return b"".join(decompressed_chunks(codec, data, magic))
    except WireFormatError:
        return None


def at_once(codec: Compression, data: bytes, magic: int) -> bytes | None:
    """The content as `decompress` gives it; None where it refuses the data."""
    try:
        return decompress(codec, data, magic)
    except WireFormatError:
        return None


@pytest.mark.parametrize("codec", CODECS)
def test_short_content_is_read_at_once_as_in_pieces(codec: Compression) -> None:
    """Whole, cut, damaged, doubled and followed by other bytes: both ways agree."""
    chance = random.Random(int(codec))  # noqa: S311 - draws test data
    agreed = 0
    for _ in range(400):
        content = chance.randbytes(chance.choice((1, 90, 1_200))) * chance.choice((1, 3, 40))
        data = compress(codec, content)
        data += chance.choice((b"", b"", b"x", data, bytes(7)))
        if chance.random() < 0.5:
            at = chance.randrange(len(data))
            data = data[:at] + bytes((chance.randrange(256),)) + data[at + 1 :]
        if chance.random() < 0.2:
            data = data[: chance.randrange(len(data))]
        magic = chance.choice((1, 2))
        found = at_once(codec, data, magic)
        assert found == in_pieces(codec, data, magic)
        agreed += found is not None
    assert 100 < agreed < 400
