"""Lines in relation to each other: wrapped, cut off, out of time order, explained by neighbours."""

from datetime import UTC

import pytest

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import Event, RebalanceReason, TimeKind, TraceEvent

LOGGER = "kafka.coordinator.group.GroupCoordinator"


def line(at: str, message: str) -> str:
    """A line of the Scala coordinator at a time of one day."""
    return f"[2024-05-06 {at}] INFO [GroupCoordinator 1]: {message} ({LOGGER})"


def read(*lines: str) -> tuple[list[TraceEvent], IngestSummary]:
    """The events and the summary of a log that holds these lines."""
    summary = IngestSummary()
    events = list(parse_broker_log(lines, source_ref="server.log", tz=UTC, summary=summary))
    return events, summary


PREPARE = (
    "Preparing to rebalance group shop in state PreparingRebalance with old generation 4 "
    "(__consumer_offsets-9) (reason: removing member c-1 on heartbeat expiration)"
)


@pytest.mark.parametrize("width", [80, 97, 100, 132, 200])
@pytest.mark.parametrize("indent", ["", "  "])
def test_wrapped_line_is_put_together(width: int, indent: str) -> None:
    """A line hard-wrapped at any column, inside words or between, is one message again."""
    text = line("12:00:01,250", PREPARE)
    parts = [indent + text[start : start + width] for start in range(0, len(text), width)]
    events, summary = read("some prose", *parts, line("12:00:02,000", "Starting up."))
    assert [event.event for event in events] == [Event.PREPARE_REBALANCE, Event.LIFECYCLE]
    assert (events[0].group_id, events[0].generation, events[0].member_id) == ("shop", 4, "c-1")
    assert events[0].reason is RebalanceReason.MEMBER_FAILED
    assert (events[0].seq, summary.unparsed) == (2, 0)
    assert summary.continuations in (len(parts) - 1, len(parts) - 2)


def test_line_cut_at_the_screens_edge_keeps_what_is_whole() -> None:
    """The fields before the cut count, and those behind it are null."""
    whole = line("12:00:01,250", PREPARE)
    events, _ = read(line("12:00:00,000", "Starting up."), whole[: whole.index(" heartbeat") + 5])
    event = events[1]
    assert (event.group_id, event.generation, event.reason) == (
        "shop",
        4,
        RebalanceReason.MEMBER_FAILED,
    )
    assert event.attrs["truncated"] == "1"


def test_number_at_the_cut_is_not_believed() -> None:
    """`old generation 11` may be the start of 118."""
    events, _ = read(
        line("12:00:00,000", "Starting up."),
        "[2024-05-06 12:00:01,250] INFO [GroupCoordinator 1]: Stabilized group shop generation 11",
    )
    assert (events[1].event, events[1].generation) == (Event.JOIN_COMPLETE, None)


def test_line_cut_inside_the_group_id_is_unparsed() -> None:
    """Nobody can say whose event it was."""
    events, summary = read(
        line("12:00:00,000", "Starting up."),
        "[2024-05-06 12:00:01,250] INFO [GroupCoordinator 1]: Loaded classic group sh",
        "[2024-05-06 12:00:01,250] INFO [GroupCoordinator 1]: Assignment received from leader for",
    )
    assert [event.event for event in events[1:]] == [Event.UNPARSED, Event.UNPARSED]
    assert summary.unparsed == 2
    assert list(summary.unparsed_patterns.values()) == [1, 1]


def test_ellipsis_marks_a_cut_inside_the_line() -> None:
    """Some viewers shorten the middle and keep the logger."""
    events, _ = read(
        "[2024-05-06 12:00:01,250] INFO [GroupCoordinator 1]: Preparing to rebalance group shop in "
        "state PreparingRebalance with old generation 4 (__consumer_offsets-9) (reason: Adding new "
        f"member … ({LOGGER})"
    )
    assert (events[0].reason, events[0].member_id) == (RebalanceReason.MEMBER_JOINED, None)
    assert events[0].attrs["truncated"] == "1"


def test_order_is_that_of_lines_not_of_times() -> None:
    """A clock that runs back is counted, and the order of the lines is kept."""
    events, summary = read(
        line("12:00:05,000", "Stabilized group shop generation 5 (__consumer_offsets-9)"),
        line("12:00:03,600", "Assignment received from leader for group shop for generation 5"),
    )
    assert [event.event for event in events] == [Event.JOIN_COMPLETE, Event.SYNC_LEADER]
    assert events[1].ts_us == events[0].ts_us
    assert (events[1].ts_kind, events[1].ts_err_us) == (TimeKind.INFERRED, 1_400_000)
    assert (summary.clock_regressions, summary.timeless) == (1, 0)


def test_unknown_message_is_counted_by_its_pattern() -> None:
    """Messages that differ in ids and numbers alone are one pattern."""
    events, summary = read(
        line("12:00:01,000", "Group shop has 3 wheels"),
        line("12:00:02,000", "Group till has 4 wheels"),
    )
    assert [event.event for event in events] == [Event.UNPARSED, Event.UNPARSED]
    assert list(summary.unparsed_patterns.values()) == [2]
    assert events[0].attrs["pattern"] == "[GroupCoordinator #]: Group {} has # wheels"


def test_other_programs_lines_are_no_business_of_ours() -> None:
    """Other coordinators, settings and stack traces give neither events nor complaints."""
    events, summary = read(
        "[2024-05-06 12:00:01,000] INFO [TransactionCoordinator id=1] Starting up. (kafka.x.T)",
        "\tgroup.coordinator.threads = 4",
        "java.io.IOException: broken",
        "\tat kafka.coordinator.group.GroupCoordinator.run(GroupCoordinator.scala:1)",
        "",
    )
    assert events == []
    assert (summary.lines, summary.unparsed, summary.known) == (5, 0, 0)


def test_departure_explains_a_rebalance_without_reason() -> None:
    """Up to 2.0 no reason is logged: the member that failed just before is the reason."""
    events, _ = read(
        line("12:00:01,000", "Member c-1 in group shop has failed, removing it from the group"),
        line(
            "12:00:01,001",
            "Preparing to rebalance group shop with old generation 4 (__consumer_offsets-9)",
        ),
        line(
            "12:00:09,000",
            "Preparing to rebalance group shop with old generation 5 (__consumer_offsets-9)",
        ),
    )
    assert (events[1].reason, events[1].member_id) == (RebalanceReason.MEMBER_FAILED, "c-1")
    assert events[1].attrs["reason_inferred"] == "1"
    assert events[2].reason is RebalanceReason.UNKNOWN


REPLACED = (
    "Static member with groupInstanceId=i-1 and unknown member id joins group shop in Stable "
    "state. Replacing previously mapped member c-0 with this groupInstanceId."
)
QUIET = (
    "Static member which joins during Stable stage and doesn't affect selectProtocol will not "
    "trigger rebalance."
)


def test_static_return_without_rebalance_is_marked() -> None:
    """The line that says so names no group: it belongs to the return just before."""
    events, summary = read(
        line("12:00:01,000", REPLACED),
        line("12:00:01,010", "Removed 0 expired offsets in 0 milliseconds."),
        line("12:00:01,020", QUIET),
        line("12:00:09,000", REPLACED),
    )
    assert [event.event for event in events] == [
        Event.STATIC_REPLACED,
        Event.OFFSET_EXPIRED,
        Event.STATIC_REPLACED,
    ]
    assert [event.attrs.get("rebalance") for event in events] == ["0", None, None]
    assert summary.known == 1


def test_static_return_long_before_is_not_marked() -> None:
    """Lines further apart than one request are not connected."""
    events, _ = read(
        line("12:00:01,000", REPLACED),
        line("12:00:02,000", "Removed 0 expired offsets in 0 milliseconds."),
        line("12:00:02,001", QUIET),
    )
    assert "rebalance" not in events[0].attrs


def test_events_before_the_first_time_take_it() -> None:
    """A line whose head is missing has no time of its own."""
    events, _ = read(
        f"rator 1]: [GroupCoordinator 1]: Stabilized group shop generation 5 ({LOGGER})",
        line("12:00:03,600", "Assignment received from leader for group shop for generation 5"),
    )
    assert [event.ts_kind for event in events] == [TimeKind.INFERRED, TimeKind.LOGGED]
    assert events[0].ts_us == events[1].ts_us


def test_log_without_any_time_keeps_its_events() -> None:
    """Without a single time the events are there, at 0 and marked as inferred."""
    events, _ = read(f"[GroupCoordinator 1]: Stabilized group shop generation 5 ({LOGGER})")
    assert (events[0].ts_us, events[0].ts_kind) == (0, TimeKind.INFERRED)


def test_prose_after_a_cut_line_is_not_swallowed() -> None:
    """What follows a cut line without completing it leaves the line as it was."""
    whole = line("12:00:01,250", PREPARE)
    events, summary = read(
        whole[: whole.index(" (reason") + 12],
        "and then it went wrong",
        "see above",
        line("12:00:02,000", "Starting up."),
    )
    assert [event.event for event in events] == [Event.PREPARE_REBALANCE, Event.LIFECYCLE]
    assert events[0].reason is RebalanceReason.UNKNOWN
    assert summary.continuations == 0


def test_stack_trace_ends_an_unfinished_line() -> None:
    """An exception's lines are never part of the message before."""
    events, _ = read(
        "[2024-05-06 12:00:01,250] ERROR [GroupMetadataManager brokerId=1] Error loading offsets "
        "from __consumer_offsets-9 (because",
        "java.io.IOException: broken",
        "\tat kafka.coordinator.group.X.run(X.scala:1)",
    )
    assert [event.event for event in events] == [Event.LOAD_FAILED]


def test_keep_raw_carries_the_line() -> None:
    """The text is there for whoever asks for it."""
    text = line("12:00:01,250", PREPARE)
    (event,) = parse_broker_log([text], source_ref="x", tz=UTC, keep_raw=True)
    assert event.raw == text
    (event,) = parse_broker_log([text], source_ref="x", tz=UTC)
    assert event.raw is None


def test_every_line_is_accounted_for() -> None:
    """The summary's figures add up."""
    _, summary = read(
        "nothing",
        line("12:00:01,250", PREPARE),
        line("12:00:01,300", "Group shop has 3 wheels"),
        line("12:00:01,300", "Attempt to add rejoining member c-1 of group shop"),
    )
    assert (summary.lines, summary.parsed, summary.unparsed, summary.known) == (4, 1, 1, 1)
    assert summary.events == 2
    assert set(summary.groups) == {"shop"}
    both = IngestSummary()
    both.add(summary)
    both.add(summary)
    assert (both.lines, both.events, both.version_ranges) == (8, 4, summary.version_ranges)
    assert both.by_layout == {"log4j": 6}


HOSTILE = [
    "has failed has left " + "Member x in group y " * 4_000,
    "Preparing to rebalance group x in state y " * 2_000,
    "Assignment received from leader " + " for group x for generation " * 3_000,
    "Created a new member id with unknown member id joins group x in y state. " * 2_000,
    "(" * 100_000,
    " " * 100_000 + "x",
    "[Consumer clientId=" * 5_000 + ", groupId=",
    "[Consumer clientId=a, groupId=b] Finished assignment for group at generation 5: {"
    + "x=Assignment(partitions=[" * 5_000,
    '{"groupId=":' * 100_000,
]


@pytest.mark.parametrize("message", HOSTILE, ids=range(len(HOSTILE)))
def test_no_line_takes_more_than_a_moment(message: str) -> None:
    """A line that repeats a message's words a thousand times is read in bounded steps."""
    _, summary = read(line("12:00:01,250", message), message, line("12:00:01,250", "Starting up."))
    assert summary.lines == 3
