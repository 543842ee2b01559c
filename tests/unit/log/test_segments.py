"""Segments: reading to the end or to the damage, and writing with rolls."""

import pytest

from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.segments import (
    CorruptSegmentError,
    EncodedBatch,
    SegmentReader,
    base_offset_of,
    roll_segments,
    segment_name,
)


def encoded(offset: int, magic: int = 2) -> bytes:
    """A batch of one record."""
    record = Record(offset=offset, timestamp_ms=1, key=b"k", value=b"v" * 10)
    return encode_record_batch(batch_of((record,), magic=magic))


WHOLE = encoded(0) + encoded(1, magic=1) + encoded(2)
GOOD = len(WHOLE)


@pytest.mark.parametrize(
    ("data", "offsets", "invalid", "reason"),
    [
        (WHOLE + encoded(3)[:-1], [0, 1, 2], len(encoded(3)) - 1, "the last batch is cut short"),
        (WHOLE + encoded(3)[:11], [0, 1, 2], 11, "the last batch is cut short"),
        (WHOLE + bytes(4096), [0, 1, 2], 4096, "the tail is filled with zeros"),
        (WHOLE + b"\x00" * 8 + b"\x7f" * 20, [0, 1, 2], 28, "the last batch is cut short"),
        (WHOLE + b"\xff" * 40, [0, 1, 2], 40, "size -1 is below the smallest, 14"),
        (WHOLE + encoded(3)[:16] + b"\x03" + encoded(3)[17:], [0, 1, 2], 79, "magic 3 is none"),
        (encoded(0)[:-1] + b"\x01" + WHOLE, [], 79 + GOOD, "batch at offset 0: wrong CRC"),
        (b"\x00" * 11 + b"\x20\x00\x00\x00\x00\x02" + bytes(40), [], 57, "below its header's"),
    ],
)
def test_reading_stops_where_the_damage_is(
    data: bytes, offsets: list[int], invalid: int, reason: str
) -> None:
    """Everything before is handed out; the damage says where, how much and why."""
    reader = SegmentReader(data)

    found = [batch.base_offset for batch in reader]

    assert found == offsets
    assert reader.damage is not None
    assert reader.damage.invalid_bytes == invalid
    assert reader.damage.position == len(data) - invalid
    assert reason in reader.damage.reason
    with pytest.raises(CorruptSegmentError, match=f"{invalid} bytes are left"):
        reader.require_whole()


def test_a_whole_segment_has_no_damage() -> None:
    """Formats may follow each other in one segment."""
    reader = SegmentReader(memoryview(WHOLE))

    assert [(batch.base_offset, batch.magic) for batch in reader] == [(0, 2), (1, 1), (2, 2)]
    assert reader.damage is None
    reader.require_whole()


def test_a_dump_goes_on_after_a_wrong_checksum() -> None:
    """Without the check a damaged batch is handed out and says that it is not valid."""
    data = encoded(0)[:-1] + b"\x01" + encoded(1)

    assert [batch.is_valid for batch in SegmentReader(data, check_crc=False)] == [False, True]


def test_a_segment_is_named_by_its_first_offset() -> None:
    """Twenty digits, as a broker names it."""
    assert segment_name(4_283_544_095) == "00000000004283544095.log"
    assert base_offset_of("00000000004283544095.log") == 4_283_544_095
    for wrong in ("1.log", "0000000000000000000x.log", "00000000004283544095.index"):
        with pytest.raises(ValueError, match="is no segment"):
            base_offset_of(wrong)


def test_segments_roll_before_they_grow_too_large() -> None:
    """By size, and where offsets would no longer fit an index."""
    batches = [EncodedBatch(n, n + 1, b"x" * 40) for n in (0, 1, 5)]
    far = EncodedBatch(2**31 + 5, 2**31 + 6, b"y" * 10)

    by_size = list(roll_segments(batches, 100))
    by_offset = list(roll_segments([*batches, far], 1_000))

    assert [(name[-6:], len(data)) for name, data in by_size] == [("00.log", 80), ("05.log", 40)]
    assert [name for name, _ in by_offset] == [segment_name(0), segment_name(2**31 + 5)]
    assert list(roll_segments([])) == []
