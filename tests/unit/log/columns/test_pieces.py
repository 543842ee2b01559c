"""Segments that change while they are read, and batches larger than a piece."""

from coordinator_sim.log.columns.batch_scan import SegmentInMemory
from coordinator_sim.log.columns.pieces import Pieces, batch_borders
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch


def encoded(offset: int, size: int = 10) -> bytes:
    """A batch of one record."""
    record = Record(offset=offset, timestamp_ms=1, key=b"k", value=b"v" * size)
    return encode_record_batch(batch_of((record,)))


class Shrunk:
    """A file that has lost its end since it was opened."""

    def __init__(self, data: bytes, size: int) -> None:
        self.data = data
        self.size = size

    def read(self, position: int, count: int, /) -> bytes:
        """What is still there."""
        return self.data[position : position + count]


def test_a_file_that_shrinks_ends_where_its_bytes_end() -> None:
    """The reading does not wait for bytes that will not come."""
    whole = encoded(0) + encoded(1)
    pieces = Pieces(Shrunk(whole[:-5], len(whole) + 1_000))

    found = sum(len(table.positions) for table in pieces)

    assert found == 1
    assert pieces.damage is not None
    assert pieces.damage.position == len(encoded(0))


def test_a_batch_larger_than_a_piece_is_read_whole() -> None:
    """A piece grows for it, and for it alone."""
    data = encoded(0) + encoded(1, 5_000) + encoded(2)
    pieces = Pieces(SegmentInMemory(data), piece_bytes=100)

    tables = list(pieces)

    assert sum(len(table.positions) for table in tables) == 3
    assert max(len(table.data) for table in tables) < 5_500
    assert pieces.damage is None


def test_borders_are_those_of_batches() -> None:
    """A step ends at the first batch behind it."""
    data = b"".join(encoded(offset) for offset in range(10))
    size = len(encoded(0))

    assert batch_borders(SegmentInMemory(data), 3 * size - 1) == [0, 3 * size, 6 * size, 9 * size]
    assert batch_borders(SegmentInMemory(bytes(500)), 100) == [0]
