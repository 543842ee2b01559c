"""Record batches against Kafka's bytes, and every format in both directions."""

import struct
import zlib
from itertools import product

import crc32c
import pytest

from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.format.compression import Compression, compress, decompress, xxh32_of_short
from coordinator_sim.log.format.record_batches import (
    Record,
    RecordBatch,
    RecordReader,
    TimestampType,
    batch_of,
    encode_record_batch,
    varint_bytes,
)
from coordinator_sim.log.format.segments import SegmentReader
from coordinator_sim.log.format.stored_batches import StoredBatch

V1 = bytes.fromhex("000100036772700003666f6f00000003")
V2 = bytes.fromhex("0003000000000012d6870000000700046d6574610000018bcfe56800")
V3 = bytes.fromhex("0001000000000012d68700046d6574610000018bcfe568000000018bd50bc400")
NOW_MS = 1_700_000_000_000


def record(offset: int, value: bytes | None = V2, key: bytes | None = V1) -> Record:
    """A record at the vectors' time."""
    return Record(offset=offset, timestamp_ms=NOW_MS, key=key, value=value)


VECTORS = {
    "V10": (
        batch_of((record(42),), leader_epoch=9, base_sequence=0),
        (
            "000000000000002a0000006400000009024c592d0a0000000000000000018bcfe568000000018bcfe56800"
            "ffffffffffffffffffff00000000000000016400000020000100036772700003666f6f00000003380003"
            "000000000012d6870000000700046d6574610000018bcfe5680000"
        ),
    ),
    "V11": (
        batch_of((record(43, None),), leader_epoch=9),
        (
            "000000000000002b000000480000000902af09491b0000000000000000018bcfe568000000018bcfe56800"
            "ffffffffffffffffffffffffffff000000012c00000020000100036772700003666f6f000000030100"
        ),
    ),
    "V12": (
        batch_of(
            (record(44, bytes.fromhex("00000000000b"), bytes.fromhex("00000001")),),
            leader_epoch=9,
            producer_id=4000,
            producer_epoch=2,
            transactional=True,
            control=True,
        ),
        (
            "000000000000002c000000420000000902307cd4e50030000000000000018bcfe568000000018bcfe56800"
            "0000000000000fa00002ffffffff000000012000000008000000010c00000000000b00"
        ),
    ),
    "V13": (
        batch_of(
            (record(45),),
            leader_epoch=9,
            producer_id=4000,
            producer_epoch=2,
            base_sequence=0,
            transactional=True,
        ),
        (
            "000000000000002d0000006400000009021acc4da00010000000000000018bcfe568000000018bcfe56800"
            "0000000000000fa0000200000000000000016400000020000100036772700003666f6f0000000338000300"
            "0000000012d6870000000700046d6574610000018bcfe5680000"
        ),
    ),
    "V14": (
        batch_of((record(42, V3),), magic=1),
        (
            "000000000000002a000000464e0cfbe101000000018bcfe5680000000010000100036772700003666f6f"
            "00000003000000200001000000000012d68700046d6574610000018bcfe568000000018bd50bc400"
        ),
    ),
    "V15": (
        batch_of(
            (Record(offset=42, timestamp_ms=-1, key=V1, value=V3),),
            magic=0,
            timestamp_type=TimestampType.NONE,
        ),
        (
            "000000000000002a0000003eb0846781000000000010000100036772700003666f6f00000003"
            "000000200001000000000012d68700046d6574610000018bcfe568000000018bd50bc400"
        ),
    ),
}

MANY = tuple(record(10 + index, b"value-%d" % index * 200) for index in range(300))


def only_batch(data: bytes) -> StoredBatch:
    """The one batch of a whole segment."""
    reader = SegmentReader(data)
    (batch,) = reader
    reader.require_whole()
    return batch


@pytest.mark.parametrize(("batch", "text"), VECTORS.values(), ids=VECTORS)
def test_a_batch_is_written_and_read_as_kafka_does(batch: RecordBatch, text: str) -> None:
    """Batches of every magic agree with the vectors in both directions."""
    data = bytes.fromhex(text)

    assert encode_record_batch(batch) == data
    assert only_batch(data).decoded() == batch


def test_the_checksum_is_castagnolis() -> None:
    """The check value of CRC-32C."""
    assert crc32c.crc32c(b"123456789") == 0xE3069283


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "00"),
        (-1, "01"),
        (1, "02"),
        (-2, "03"),
        (63, "7e"),
        (-64, "7f"),
        (64, "8001"),
        (-65, "8101"),
        (300, "d804"),
        (2**63 - 1, "feffffffffffffffff01"),
        (-(2**63), "ffffffffffffffffff01"),
    ],
)
def test_varints_are_zigzag(value: int, text: str) -> None:
    """Numbers of any sign and size take as few bytes as they need."""
    assert varint_bytes(value).hex() == text


@pytest.mark.parametrize("codec", Compression)
def test_a_compressed_batch_reads_back(codec: Compression) -> None:
    """All codecs of magic 2, with headers, gaps and a null key."""
    headers = (("trace", b"1"), ("trace", None))
    last = Record(offset=400, timestamp_ms=NOW_MS + 70, key=None, value=b"", headers=headers)
    batch = batch_of((*MANY, last), compression=codec, base_offset=8, last_offset=412)

    data = encode_record_batch(batch)

    assert only_batch(data).decoded() == batch
    assert codec is Compression.NONE or len(data) < 60_000


@pytest.mark.parametrize(
    ("magic", "codec"),
    [pair for pair in product((0, 1), Compression) if pair[1] not in (0, Compression.ZSTD)],
)
def test_a_wrapper_message_reads_back(magic: int, codec: Compression) -> None:
    """Inner offsets are absolute in magic 0, relative in magic 1; both give the log's own."""
    kind = TimestampType.CREATE_TIME if magic else TimestampType.NONE
    records = tuple(
        Record(offset=one.offset, timestamp_ms=NOW_MS if magic else -1, key=V1, value=one.value)
        for one in MANY
    )
    batch = batch_of(records, magic=magic, compression=codec, timestamp_type=kind)

    stored = only_batch(encode_record_batch(batch))

    assert stored.decoded() == batch
    assert (stored.base_offset, stored.last_offset) == (10, 309)


@pytest.mark.parametrize("magic", [1, 2])
def test_the_append_time_of_the_broker_is_that_of_all_records(magic: int) -> None:
    """LogAppendTime replaces what the records say."""
    batch = batch_of(
        MANY[:2],
        magic=magic,
        compression=Compression.GZIP,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp_ms=NOW_MS + 999,
    )

    stored = only_batch(encode_record_batch(batch))

    assert {one.timestamp_ms for one in stored.records()} == {NOW_MS + 999}


def test_an_emptied_batch_is_a_header_alone() -> None:
    """The log cleaner leaves it behind; it has no codec and no base timestamp."""
    batch = RecordBatch(
        base_offset=5,
        last_offset=9,
        records=(),
        base_timestamp_ms=-1,
        max_timestamp_ms=NOW_MS,
        compression=Compression.LZ4,
        producer_id=7,
    )

    stored = only_batch(encode_record_batch(batch))

    assert (stored.size, stored.codec, stored.next_offset) == (61, 0, 10)
    assert stored.records() == []


def test_old_lz4_frames_have_the_header_checksum_of_old_kafka() -> None:
    """KAFKA-3160: it covers the frame's magic number too, and readers of magic 0 ignore it."""
    right = compress(Compression.LZ4, b"abc" * 100, magic=1)
    wrong = compress(Compression.LZ4, b"abc" * 100, magic=0)

    assert right[6] == xxh32_of_short(right[4:6]) >> 8 & 0xFF
    assert wrong[6] == xxh32_of_short(wrong[:6]) >> 8 & 0xFF
    assert right[6] != wrong[6]
    assert decompress(Compression.LZ4, wrong, magic=0) == b"abc" * 100
    with pytest.raises(WireFormatError, match="lz4 records do not decompress"):
        decompress(Compression.LZ4, wrong, magic=1)


def test_xxh32_agrees_with_its_check_values() -> None:
    """The known hashes of short inputs."""
    assert xxh32_of_short(b"") == 0x02CC5D05
    assert xxh32_of_short(b"a") == 0x550D7456
    assert xxh32_of_short(b"abc") == 0x32D153FF


def test_snappy_without_xerials_frame_and_joined_frames_are_read() -> None:
    """Other clients write one raw block; joined streams repeat the header."""
    framed = compress(Compression.SNAPPY, b"abc" * 100_000)
    raw = framed[20 : 20 + struct.unpack_from(">i", framed, 16)[0]]

    assert decompress(Compression.SNAPPY, raw) == (b"abc" * 100_000)[: 32 * 1024]
    assert decompress(Compression.SNAPPY, framed + framed) == b"abc" * 200_000


@pytest.mark.parametrize("codec", [codec for codec in Compression if codec])
@pytest.mark.parametrize("magic", [0, 2])
def test_records_that_do_not_decompress_are_refused(codec: Compression, magic: int) -> None:
    """Cut or altered frames raise one error type."""
    data = compress(codec, b"abc" * 50_000, magic)

    for wrong in (data[:-3], data[:18], data[:9], b"\x00\x01nonsense", data[:20] + b"\xff" * 30):
        with pytest.raises(WireFormatError):
            decompress(codec, wrong, magic)


def test_a_flipped_bit_anywhere_after_the_checksum_is_noticed() -> None:
    """Each byte that the CRC covers."""
    for name, start in (("V10", 21), ("V14", 16), ("V15", 16)):
        data = bytearray.fromhex(VECTORS[name][1])
        for index in range(start, len(data)):
            data[index] ^= 0x40
            reader = SegmentReader(bytes(data))
            assert list(reader) == []
            assert reader.damage is not None
            data[index] ^= 0x40


def resealed(data: bytearray) -> StoredBatch:
    """A batch of magic 2 whose CRC fits its bytes again."""
    data[17:21] = struct.pack(">I", crc32c.crc32c(bytes(data[21:])))
    return only_batch(bytes(data))


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (60, b"\x02", "the records end too soon"),
        (60, b"\x00", "51 bytes are left after 0 records"),
        (57, b"\xff", "count -"),
        (61, b"\x02", "bytes do not fit their record"),
        (61, b"\x68", "does not fit"),
        (82, b"\x36", "a record of 50 bytes has 49"),
        (-1, b"\x02", "counts 1 headers"),
        (62, b"\xff" * 20, "a varint has more than 10 bytes"),
        (22, b"\x07", "compression 7"),
        (22, b"\x01", "gzip records do not decompress"),
    ],
)
def test_wrong_records_behind_a_right_checksum_are_refused(
    at: int, value: bytes, message: str
) -> None:
    """A batch that says other than it has is refused with what is wrong."""
    data = bytearray.fromhex(VECTORS["V10"][1])
    at = at % len(data)
    data[at : at + len(value)] = value

    batch = resealed(data)

    with pytest.raises(WireFormatError, match=message):
        batch.records()


def test_a_header_needs_a_key() -> None:
    """Java refuses it, too."""
    body = bytes.fromhex("000000010102" + "01" + "00")
    data = varint_bytes(len(body)) + body

    with pytest.raises(WireFormatError, match="a header has no key"):
        RecordReader(data, 0, 0).read(1)


def wrapper(inner: bytes, codec: Compression = Compression.GZIP, magic: int = 1) -> StoredBatch:
    """A wrapper message around any bytes."""
    value = compress(codec, inner, magic)
    timed = struct.pack(">q", NOW_MS) if magic else b""
    body = bytes((magic, codec)) + timed + b"\xff" * 4 + struct.pack(">i", len(value)) + value
    return only_batch(struct.pack(">qiI", 9, len(body) + 4, zlib.crc32(body)) + body)


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (b"", "a wrapper around nothing"),
        (b"\x00" * 5, "an entry is cut short"),
        (b"\x00" * 30, "an entry of 0 bytes does not fit"),
        (bytes.fromhex(VECTORS["V15"][1]), "magic 0 with attributes 0 inside a wrapper of magic 1"),
        (bytes.fromhex(VECTORS["V14"][1])[:-9], "does not fit"),
        (struct.pack(">qiIbbq", 0, 14, 0, 1, 0, 0)[:26], "a size is cut short"),
        (struct.pack(">qiIbbqi", 0, 18, 0, 1, 0, 0, 9), "9 bytes do not fit their entry"),
        (struct.pack(">qiIbbqiii", 0, 26, 0, 1, 0, 0, -1, -1, 0), "4 bytes are left"),
    ],
)
def test_wrong_message_sets_inside_a_wrapper_are_refused(inner: bytes, message: str) -> None:
    """What a wrapper holds is checked as its own entries are."""
    with pytest.raises(WireFormatError, match=message):
        wrapper(inner).records()


def test_zstd_needs_the_newest_format() -> None:
    """No reader of magic 0 and 1 knows it."""
    with pytest.raises(ValueError, match="zstd needs magic 2"):
        encode_record_batch(batch_of(MANY, magic=1, compression=Compression.ZSTD))
