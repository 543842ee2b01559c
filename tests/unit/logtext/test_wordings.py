"""The table of log lines: each row is read as itself in every release that writes it."""

import pytest

from coordinator_sim.errors import InvariantViolation
from coordinator_sim.logtext.reading.messages import find
from coordinator_sim.logtext.wordings.catalogue import CATALOGUE
from coordinator_sim.logtext.wordings.loggers import COORDINATOR
from coordinator_sim.logtext.wordings.releases import VERSIONS, Release, releases, version_range
from coordinator_sim.logtext.wordings.rows import Row, row
from coordinator_sim.logtext.wordings.texts import parse, words, write
from coordinator_sim.trace.events import Event, TraceEvent

WRITTEN = ("0.10", "2.8", "3.9", "4.x")
READ_AS = {"append-failed-unexpected": "append-failed"}
"""Rows with words that another row reads too."""
EVENT = TraceEvent(
    event=Event.HEARTBEAT,
    ts_us=0,
    broker_id=1,
    group_id="shop",
    offsets_partition=7,
    generation=3,
    member_id="c-1",
    leader_id="c-1",
    members=2,
    static_members=1,
    attrs={
        "in_state": "Stable",
        "epoch": "4",
        "member_ids": "c-1, c-2",
        "kicked": "c-1",
        "old_member_id": "c-0",
        "old_leader_id": "c-0",
        "current_member_id": "c-2",
        "count": "3",
        "partitions": "t-0",
        "groups": "2",
        "offsets": "3",
        "member_epoch": "4",
        "topics": "3",
        "regexes": "[t.*]",
    },
    rebalance_timeout_ms=5_000,
)


def release(name: str) -> Release:
    """A release by its name."""
    return Release(releases(name), "CompletingRebalance")


@pytest.mark.parametrize("name", WRITTEN)
def test_every_line_is_read_as_the_row_that_wrote_it(name: str) -> None:
    """One text serves both directions, and its release is among those that it tells."""
    now = release(name)
    rows = [row for row in CATALOGUE if row.telling is not None and row.releases & now.bit]
    assert rows
    for row_ in rows:
        message = write(words(parse(row_.text), now), EVENT, now)
        found = find(message)
        assert found is not None, message
        assert found[0].name == READ_AS.get(row_.name, row_.name), message
        assert found[0].releases_of(message, is_whole=True) & now.bit, message


def test_names_of_rows_are_unique() -> None:
    """A row is found by its name."""
    names = [row_.name for row_ in CATALOGUE]
    assert len(names) == len(set(names))


def test_a_row_that_is_written_tells_some_event() -> None:
    """The writer goes by events."""
    for row_ in CATALOGUE:
        if row_.telling is not None:
            assert row_.telling.of or row_.event is not None, row_.name


def line(text: str, known: str = "-") -> Row:
    """A row with this text."""
    return row("made up", Event.GROUP_EMPTY, known, COORDINATOR).says(text)


def test_a_piece_of_some_releases_is_written_by_them_and_tells_them() -> None:
    """Where the piece may be missing, a line without it tells nothing."""
    made_up = line("Group {group_id} sleeps<2.8-3.9| for {ms} ms>", "2.0-")
    assert write(words(parse(made_up.text), release("2.8")), EVENT, release("2.8")) == (
        "Group shop sleeps for 0 ms"
    )
    assert write(words(parse(made_up.text), release("4.x")), EVENT, release("4.x")) == (
        "Group shop sleeps"
    )
    assert told(made_up, "Group g sleeps for 5 ms") == ("2.8", "3.9")
    assert told(made_up, "Group g sleeps") == ("2.0", "4.x")


def test_a_piece_that_is_never_left_out_tells_where_it_is_missing() -> None:
    """A line that was cut off may have lost it."""
    made_up = line("Group {group_id} sleeps<2.8-!| for {ms} ms>", "2.0-")
    assert told(made_up, "Group g sleeps") == ("2.0", "2.7")
    assert told(made_up, "Group g sleeps", is_whole=False) == ("2.0", "4.x")


def told(row_: Row, message: str, *, is_whole: bool = True) -> tuple[str, str]:
    """The oldest and the newest release that a message tells."""
    low, high = version_range(row_.releases_of(message, is_whole=is_whole))
    return VERSIONS[low], VERSIONS[high]


def test_a_value_at_the_end_reaches_to_the_end_or_to_the_next_piece() -> None:
    """A lazy value takes no more than it must; pieces that nobody needs are not its own."""
    match = line("Sleeper {member_id}< of {group_id}>< in peace>.").match("Sleeper a b of g in pe")
    assert match is not None
    assert (match["member_id"], match["group_id"]) == ("a b", "g in pe")


def test_text_that_is_never_written_is_read() -> None:
    """Some lines were found in words that no release of ours writes."""
    made_up = line("Group<none|Id> {group_id} sleeps")
    assert made_up.match("GroupId g sleeps") is not None
    assert write(words(parse(made_up.text), release("4.x")), EVENT, release("4.x")) == (
        "Group shop sleeps"
    )


@pytest.mark.parametrize("text", ["Group {nonsense}", "Group > sleeps", "Group {group_id", "{ms}"])
def test_a_text_that_makes_no_sense_is_refused(text: str) -> None:
    """A kind without a name, a piece that was never opened, a text that begins with a value."""
    with pytest.raises(InvariantViolation):
        line(text)


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2.8", "2.8", "2.8"),
        ("-0.11", "0.9", "0.11"),
        ("java", "3.7", "4.x"),
        ("4.x", "4.x", "4.x"),
    ],
)
def test_releases_are_named_by_ranges(text: str, first: str, last: str) -> None:
    """Java is a range of its own: 3.7 to 3.9 had both coordinators."""
    low, high = version_range(releases(text))
    assert (VERSIONS[low], VERSIONS[high]) == (first, last)
    assert releases("java") & releases("-3.9") == 0
