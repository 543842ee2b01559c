from datetime import UTC, datetime, timedelta, timezone

import pytest

from coordinator_sim.logtext.reading.broker_log import parse_broker_log
from coordinator_sim.logtext.reading.summary import IngestSummary
from coordinator_sim.trace.events import Event, Source, TimeKind, TraceEvent

MESSAGE = "[GroupCoordinator 7]: Stabilized group shop generation 31 (__consumer_offsets-12)"
SCALA = "kafka.coordinator.group.GroupCoordinator"
NOON_US = int(datetime(2024, 5, 6, 12, 0, 1, tzinfo=UTC).timestamp()) * 1_000_000
JSON_MESSAGE = MESSAGE.replace('"', '\\"')
DEFAULT = f"[2024-05-06 12:00:01,250] INFO {MESSAGE} ({SCALA})"


def events_of(*lines: str) -> list[TraceEvent]:
    """The events of a log that holds these lines."""
    return list(parse_broker_log(lines, source_ref="server.log", tz=UTC))


def layout_of(*lines: str) -> str:
    """The first layout that the summary of these lines names."""
    summary = IngestSummary()
    list(parse_broker_log(lines, source_ref="server.log", tz=UTC, summary=summary))
    return next(iter(summary.by_layout))


TEXT_LAYOUTS = {
    "default": ("log4j", DEFAULT),
    "line numbers": ("log4j", f"[2024-05-06 12:00:01,250] INFO {MESSAGE} ({SCALA}:66)"),
    "connect context": (
        "connect-ctx",
        f"[2024-05-06 12:00:01,250] INFO [sink|task-0] {MESSAGE} ({SCALA}:66)",
    ),
    "no brackets": ("strimzi", f"2024-05-06 12:00:01,250 INFO {MESSAGE} ({SCALA}) [handler-3]"),
    "pipes": (
        "huawei",
        f"2024-05-06 12:00:01,250 | INFO | [handler-3] | {MESSAGE} | {SCALA} (Logging.scala:68)",
    ),
    "all brackets": ("netcracker", f"[2024-05-06T12:00:01,250][INFO][category={SCALA}] {MESSAGE}"),
    "empty context": ("debezium", f"2024-05-06 12:00:01,250 INFO   ||  {MESSAGE}   [{SCALA}]"),
    "full context": (
        "debezium",
        f"2024-05-06 12:00:01,250 INFO   MySQL|shop|task  {MESSAGE}   [{SCALA}]",
    ),
    "spring": (
        "spring",
        f"2024-05-06 12:00:01.250  INFO 41 --- [executor-1] k.c.group.GroupCoordinator : {MESSAGE}",
    ),
    "short with line": ("short", f"2024-05-06 12:00:01,250 INFO  GroupCoordinator:68 - {MESSAGE}"),
    "thread, then short": (
        "short",
        f"2024-05-06 12:00:01.250 INFO  [main] k.c.group.GroupCoordinator: {MESSAGE}",
    ),
    "compose": ("compose", f"broker_1   | {DEFAULT}"),
    "kubectl": ("dual-ts", f"2024-05-06T14:00:02.987654321Z {DEFAULT}"),
    "journal": ("dual-ts", f"2024-05-06 14:00:05 {DEFAULT}"),
    "application fields": ("cfk", f"{DEFAULT} - app=kafka, clusterId=c1, server=0"),
    "csv": ("csv", f"{DEFAULT},2024-05-06T12:00:09Z"),
    "quoted": ("log4j", f"> {DEFAULT}"),
    "comment": ("log4j", f"     * {DEFAULT}"),
    "emphasis": ("log4j", f"**{DEFAULT}**"),
    "terminal": ("log4j", f"\x1b[32m{DEFAULT}\x1b[0m\r"),
    "screen": ("log4j", f"│ {DEFAULT}      │"),
    "markdown break": ("log4j", f"{DEFAULT} /"),
    "byte order mark": ("log4j", f"\ufeff{DEFAULT}"),
}


@pytest.mark.parametrize("name", TEXT_LAYOUTS)
def test_text_layout_gives_event_and_own_time(name: str) -> None:
    """Whatever stands around a message, its event and its own time are found."""
    layout, line = TEXT_LAYOUTS[name]
    (event,) = events_of(line)
    assert (event.event, event.group_id, event.generation) == (Event.JOIN_COMPLETE, "shop", 31)
    assert (event.broker_id, event.offsets_partition) == (7, 12)
    assert event.ts_us == NOON_US + 250_000
    assert (event.ts_kind, event.ts_err_us) == (TimeKind.LOGGED, 1_000)
    assert (event.source, event.source_ref, event.seq) == (Source.BROKER_LOG, "server.log", 1)
    assert "truncated" not in event.attrs
    assert layout_of(line) == layout


JSON_LAYOUTS = {
    "log4j2 JSONLayout": (
        f'{{"instant":{{"epochSecond":{NOON_US // 1_000_000},"nanoOfSecond":250000000}},'
        f'"thread":"executor","level":"INFO","loggerName":"{SCALA}","message":"{MESSAGE}"}}'
    ),
    "logstash": (
        f'{{"@timestamp":"2024-05-06T14:00:01.250+02:00","level":"INFO","logger_name":"{SCALA}",'
        f'"message":"{MESSAGE}"}}'
    ),
    "epoch milliseconds": f'{{"timeMillis":{NOON_US // 1_000 + 250},"msg":"{MESSAGE}"}}',
    "epoch seconds": f'{{"ts":{NOON_US // 1_000_000}.25,"msg":"{MESSAGE}"}}',
    "elastic": (
        '{"@timestamp":"2024-05-06T12:00:01.250Z","log.level":"INFO",'
        f'"log":{{"logger":"{SCALA}"}},"message":"{MESSAGE}"}}'
    ),
    "text payload": f'{{"timestamp":"2024-05-06T12:00:01.250Z","textPayload":"{MESSAGE}"}}',
}


@pytest.mark.parametrize("name", JSON_LAYOUTS)
def test_json_layout_gives_event_and_zoned_time(name: str) -> None:
    """A time inside JSON needs no zone from the user: here a wrong one changes nothing."""
    tz = timezone(timedelta(hours=-7))
    (event,) = parse_broker_log([JSON_LAYOUTS[name]], source_ref="x", tz=tz)
    assert (event.event, event.group_id) == (Event.JOIN_COMPLETE, "shop")
    assert event.ts_us == NOON_US + 250_000


def test_docker_json_prefers_inner_time_and_keeps_collectors() -> None:
    """A container's log line holds a whole broker line: its time counts, Docker's is kept."""
    line = f'{{"log":"{DEFAULT}\\n","stream":"stdout","time":"2024-05-06T12:00:09.1Z"}}'
    (event,) = events_of(line)
    assert event.ts_us == NOON_US + 250_000
    assert event.attrs["collector_ts"] == "2024-05-06T12:00:09.1Z"


def test_braces_that_are_no_json_are_text() -> None:
    """A line that only looks like JSON is read as text."""
    assert events_of("{not json} " + DEFAULT)[0].group_id == "shop"


def test_json_without_a_message_gives_nothing() -> None:
    """An object that holds no message, or is no object, is no log line of a coordinator."""
    assert events_of('{"groupId=": 1}', '{"message": 5, "coordinator": 1}') == []


def test_two_line_layout_takes_time_from_header() -> None:
    """java.util.logging writes time and class in one line and the message in the next."""
    header = "May 6, 2024 12:00:01 PM kafka.coordinator.group.GroupCoordinator info"
    (event,) = events_of(header, f"INFO: {MESSAGE}")
    assert (event.ts_us, event.ts_err_us, event.seq) == (NOON_US, 1_000_000, 2)


def test_time_alone_on_its_line_is_the_next_lines() -> None:
    """Copied from a log viewer, the time stands on a line of its own."""
    (event,) = events_of("2024-05-06 12:00:01.250", f"INFO {MESSAGE} ({SCALA})")
    assert event.ts_us == NOON_US + 250_000


def test_twelve_hour_clock_at_noon_and_midnight() -> None:
    """12 AM is midnight and 12 PM is noon."""
    text = f"INFO: {MESSAGE}"
    midnight = events_of("May 6, 2024 12:00:01 AM a.B c", text)[0].ts_us
    assert NOON_US - midnight == 12 * 3_600 * 1_000_000


def test_local_times_are_in_the_zone_given() -> None:
    """A time without a zone is read in the zone of the caller."""
    tz = timezone(timedelta(hours=9))
    (event,) = parse_broker_log([DEFAULT], source_ref="x", tz=tz)
    assert event.ts_us == NOON_US + 250_000 - 9 * 3_600 * 1_000_000


@pytest.mark.parametrize(
    "written",
    [
        "1714996801.000",
        "1714996801000",
        "[1714996801]",
        "2024-05-06 12:00:01 UTC",
        "2024-05-06T14:00:01.000+0200",
        "2024-05-06T05:00:01-07:00",
    ],
)
def test_time_that_names_its_zone_or_counts_from_the_epoch(written: str) -> None:
    """A time of that kind needs no zone from the user."""
    tz = timezone(timedelta(hours=-9))
    (event,) = parse_broker_log([f"{written} INFO {MESSAGE} ({SCALA})"], source_ref="x", tz=tz)
    assert (event.ts_us, event.ts_kind) == (NOON_US, TimeKind.LOGGED)


@pytest.mark.parametrize("written", ["99999999999.999", "12:00:01,250", "Mai 06 12:00"])
def test_time_without_a_date_is_none(written: str) -> None:
    """Lines without a date are events all the same, and are counted as without a time."""
    summary = IngestSummary()
    lines = [f"{written} INFO {MESSAGE} ({SCALA})"]
    (event,) = parse_broker_log(lines, source_ref="x", tz=UTC, summary=summary)
    assert (event.generation, event.ts_kind, summary.timeless) == (31, TimeKind.INFERRED, 1)


@pytest.mark.parametrize(
    "head",
    [
        "INFO  2024-05-06 12:00:01,250 [x]",
        "[INFO] 2024-05-06 12:00:01,250",
        "INFO [2024-05-06 12:00:01,250]",
    ],
)
def test_level_may_stand_before_the_time(head: str) -> None:
    """Some layouts begin with the level."""
    assert events_of(f"{head} {MESSAGE} ({SCALA})")[0].ts_us == NOON_US + 250_000


@pytest.mark.parametrize(
    "written",
    [
        "24/05/06 12:00:01",
        "06 May 2024 12:00:01,000",
        "2024 May 06 12:00:01",
        "2024/05/06 12:00:01",
    ],
)
def test_other_spellings_of_a_date(written: str) -> None:
    """Dates come in several orders."""
    assert events_of(f"{written} INFO kafka.Group: {MESSAGE}")[0].ts_us == NOON_US


def test_date_that_does_not_exist_is_no_time() -> None:
    """A time that is not in the calendar is not read; the event keeps the time before."""
    events = events_of(DEFAULT, DEFAULT.replace("05-06", "02-31"))
    assert [event.ts_kind for event in events] == [TimeKind.LOGGED, TimeKind.INFERRED]
    assert events[1].ts_us == events[0].ts_us
