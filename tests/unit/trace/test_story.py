"""Events as lines that a person reads."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim.trace.story import story_line, widest_group

ID = "consumer-1-0a1b2c3d-1111-4111-8111-222222222222"


def line_of(event: Event, **columns: object) -> str:
    """The line of an event of group `g`, without the time and the group."""
    made = TraceEvent(event=event, ts_us=1_500_000, group_id="g", **columns)  # type: ignore[arg-type]
    return story_line(made).split(event.value, 1)[1].strip()


def test_line_starts_with_time_group_and_event() -> None:
    """Seconds with three decimals; an event of no group shows a dash."""
    event = TraceEvent(event=Event.LOAD_DONE, ts_us=1_500_999, offsets_partition=7)
    assert story_line(event).split() == ["1.500", "-", "LOAD_DONE", "offsets", "partition", "7"]


def test_member_id_is_cut_down_or_named() -> None:
    """A UUID is cut to its first part; a known member goes by its name."""
    event = TraceEvent(event=Event.MEMBER_ADDED, ts_us=0, group_id="g", member_id=ID)
    assert story_line(event).endswith("consumer-1-0a1b2c3d")
    assert story_line(event, {ID: "m1"}).endswith("m1")


def test_static_member_shows_its_instance() -> None:
    """The instance id stands in brackets."""
    assert line_of(Event.MEMBER_LEFT, member_id="m", group_instance_id="i1") == "m [i1]"


def test_static_members_are_counted() -> None:
    """A generation's line says how many of its members are static."""
    line = line_of(Event.JOIN_COMPLETE, generation=2, members=3, static_members=2, leader_id="m")
    assert line == "generation 2  3 members, 2 static  leader m"


def test_bytes_are_text_where_they_can_be() -> None:
    """Printable bytes are shown as text, others in hex, and long ones are cut."""
    assert line_of(Event.ASSIGNED, member_id="m", assignment=b"work") == "m  assignment=work"
    assert line_of(Event.ASSIGNED, member_id="m", assignment=b"\x00\x01") == "m  assignment=0001"
    long = line_of(Event.ASSIGNED, member_id="m", assignment=bytes(20))
    assert long == f"m  assignment={'00' * 12}.. (20 bytes)"


def test_assignment_nobody_knows_is_told_by_its_reason() -> None:
    """An assignment read from a log line has text and no bytes."""
    line = line_of(Event.REVOKED, member_id="m", reason_text="[t-0]")
    assert line == "m  [t-0]"


def test_offsets_are_listed_up_to_four() -> None:
    """More offsets are only counted."""
    offsets = tuple(OffsetEntry("t", index, 10 + index) for index in range(6))
    line = line_of(Event.OFFSET_COMMIT, offsets=offsets, error_code=ErrorCode.ILLEGAL_GENERATION)
    assert line == "t-0@10 t-1@11 t-2@12 t-3@13 and 2 more  ILLEGAL_GENERATION"


def test_fault_shows_its_attributes() -> None:
    """What the world did is told with the names and values of its attributes."""
    line = line_of(Event.FAULT, reason_text="Crash", client_id="c", attrs={"process": "2"})
    assert line == "c  Crash  process=2"


def test_event_without_a_text_shows_its_columns() -> None:
    """Any other event shows who, the generation, the error and the original line."""
    line = line_of(Event.UNPARSED, client_id="c", generation=3, raw="odd line")
    assert line == "c  generation 3  odd line"
    line = line_of(Event.UNPARSED, member_id="m", raw="odd line")
    assert line == "m  odd line"


def test_loaded_group_shows_its_state() -> None:
    """A group that came back from the log is told with its generation."""
    assert line_of(Event.GROUP_LOADED, generation=4, members=1) == "generation 4  1 member"


def test_instants_of_a_real_trace_are_dates() -> None:
    """From 2001 on an instant is shown as day and time of UTC."""
    event = TraceEvent(event=Event.LOAD_DONE, ts_us=1_600_000_000_123_456)
    assert story_line(event).startswith("09-13 12:26:40.123")


def test_column_is_as_wide_as_the_longest_group() -> None:
    """Events without a group count as nothing."""
    events = [TraceEvent(event=Event.GAP, ts_us=0, group_id=name) for name in (None, "abc", "a")]
    assert (widest_group(events), widest_group([])) == (3, 0)
