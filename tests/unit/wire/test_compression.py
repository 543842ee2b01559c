"""Frames of all codecs, and frames that grow too large."""

import struct
import zlib

import pytest

from coordinator_sim.errors import WireFormatError
from coordinator_sim.wire.compression import Compression, compress, decompress

CODECS = [Compression.GZIP, Compression.SNAPPY, Compression.LZ4, Compression.ZSTD]
CONTENT = bytes(range(256)) * 40
BOMB = bytes(4_000_000)


@pytest.mark.parametrize("codec", [Compression.NONE, *CODECS])
def test_what_was_compressed_comes_back(codec: Compression) -> None:
    """Also where it fills the limit exactly."""
    data = compress(codec, CONTENT)
    assert decompress(codec, data, limit=len(CONTENT)) == CONTENT


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused(codec: Compression) -> None:
    """Four megabytes of zeros out of some kilobytes do not fit a limit of one."""
    with pytest.raises(WireFormatError, match="larger than is held"):
        decompress(codec, compress(codec, BOMB), limit=1_000_000)


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
        decompress(Compression.GZIP, member * 2, limit=len(CONTENT) + 1)


def test_a_raw_snappy_block_says_its_size() -> None:
    """A block without xerial's header is refused before it is decompressed."""
    with pytest.raises(WireFormatError, match="larger"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\xff\x07" + bytes(20), limit=1000)


def test_garbage_is_no_frame() -> None:
    """Bytes of no codec are told as such."""
    for codec in CODECS:
        with pytest.raises(WireFormatError):
            decompress(codec, struct.pack(">I", zlib.crc32(b"x")) * 8)
