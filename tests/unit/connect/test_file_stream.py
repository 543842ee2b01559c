"""FileStreamSource's reading: whole lines only, growing buffer, positions as Java counts them."""

import pytest

from coordinator_sim.connect.herding.requests import ConnectorOffset
from coordinator_sim.connect.plugins import file_stream


def texts(reader: file_stream.LineReader) -> list[str]:
    """The lines of one poll."""
    return [line.text for line in reader.poll()[0]]


def test_a_line_is_read_once_its_end_has_come() -> None:
    """What has no end yet waits for more, and a poll without anything new waits a second."""
    reader = file_stream.LineReader(0)
    reader.feed(b"a\nbb\nc")
    assert reader.poll() == ((file_stream.Line("a", 2), file_stream.Line("bb", 5)), False)
    assert reader.poll() == ((), True)
    reader.feed(b"c\n")
    assert reader.poll() == ((file_stream.Line("cc", 8),), False)


def test_all_three_line_ends_are_known() -> None:
    """A carriage return at the end of what was read waits for a newline that may follow."""
    reader = file_stream.LineReader(10)
    reader.feed(b"a\r\nb\rc\r")
    assert reader.poll()[0] == (file_stream.Line("a", 13), file_stream.Line("b", 15))
    reader.feed(b"\nd\n")
    assert reader.poll()[0] == (file_stream.Line("c", 18), file_stream.Line("d", 20))


def test_the_buffer_doubles_until_the_line_fits() -> None:
    """Growth is by doubling, and only when a full buffer holds no line."""
    reader = file_stream.LineReader(0, buffer_units=4)
    reader.feed(b"abcdefghij\n")
    assert texts(reader) == ["abcdefghij"]
    assert reader.buffer_units == 16
    reader.feed(b"xyz\n" * 10)
    assert len(texts(reader)) == 10
    assert reader.buffer_units == 16


def test_lines_beyond_a_batch_wait_for_more_bytes() -> None:
    """The rest of a full batch lies in the buffer until something new can be read."""
    reader = file_stream.LineReader(0, batch_size=2)
    reader.feed(b"1\n2\n3\n")
    assert texts(reader) == ["1", "2"]
    assert reader.poll() == ((), True)
    reader.feed(b"4\n")
    assert texts(reader) == ["3", "4"]


def test_positions_count_java_chars_and_stdin_has_none() -> None:
    """Two bytes of an umlaut count one, four bytes of an emoji count two."""
    reader = file_stream.LineReader(0)
    reader.feed("ä\n😀\n".encode())
    assert reader.poll()[0] == (file_stream.Line("ä", 2), file_stream.Line("😀", 5))
    stdin = file_stream.LineReader(None)
    stdin.feed(b"a\n")
    assert stdin.poll()[0] == (file_stream.Line("a", None),)


def test_bytes_that_arrive_in_pieces_are_one_character() -> None:
    """A character cut in two by the end of a read is put together."""
    reader = file_stream.LineReader(0)
    first, second = "é\n".encode()[:1], "é\n".encode()[1:]
    reader.feed(first)
    assert texts(reader) == []
    reader.feed(second)
    assert texts(reader) == ["é"]


def test_partition_offset_and_written_line() -> None:
    """The names are those in the offsets topic; a null value is written as Java prints it."""
    assert file_stream.source_partition("in.txt") == {"filename": "in.txt"}
    assert file_stream.source_offset(6) == {"position": 6}
    assert (file_stream.sink_line("x"), file_stream.sink_line(None)) == (b"x\n", b"null\n")


@pytest.mark.parametrize(
    ("offset", "reason"),
    [
        ({"x": 2}, "Offset objects should either be null or contain the key 'position'"),
        (
            {"position": "2"},
            "The value for the 'position' key in the offset is expected to be a Long value",
        ),
        (
            {"position": -2},
            "The value for the 'position' key in the offset should be a non-negative value",
        ),
        ({"position": 2}, None),
        (None, None),
    ],
)
def test_only_sensible_offsets_may_be_written(
    offset: dict[str, object] | None, reason: str | None
) -> None:
    """A tombstone is always allowed."""
    given = (ConnectorOffset({"filename": "in.txt"}, offset),)
    assert file_stream.offsets_error({"file": "in.txt"}, given) == reason


def test_offsets_of_stdin_cannot_be_written() -> None:
    """Without a file there is nothing to go back to."""
    assert (file_stream.offsets_error({}, ()) or "").startswith(
        "Offsets cannot be modified if the 'file'"
    )
