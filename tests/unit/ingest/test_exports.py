"""What log stores export of one log: each is read as the log itself."""

import csv
import gzip
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim.ingest.files import LogFileReader, form_in, is_splittable
from coordinator_sim.ingest.importing import Importing, Options, check_told, prepare
from coordinator_sim.ingest.writing import write_trace
from coordinator_sim.logtext.reading.exports import Shape, form_of, records
from coordinator_sim.runs.run_directory import read_run

LOGGER = "kafka.coordinator.group.GroupCoordinator"
MESSAGES = (
    (
        "Preparing to rebalance group shop in state PreparingRebalance with old generation 4 "
        "(__consumer_offsets-7) (reason: Adding new member "
        "till-2-22222222-2222-2222-2222-222222222222 with group instance id None; "
        "client reason: not provided)"
    ),
    "Stabilized group shop generation 5 (__consumer_offsets-7) with 2 members",
    (
        "Assignment received from leader till-1-11111111-1111-1111-1111-111111111111 for group "
        "shop for generation 5. The group has 2 members, 0 of which are static."
    ),
)
CLOCKS = ("10:00:00,000", "10:00:03,000", "10:00:03,010")
AT_MS = (1_715_594_400_000, 1_715_594_403_000, 1_715_594_403_010)
BARE = [f"INFO [GroupCoordinator 1]: {message} ({LOGGER})" for message in MESSAGES]
LINES = [f"[2024-05-13 {at}] {text}" for at, text in zip(CLOCKS, BARE, strict=True)]
ISO = [f"2024-05-13T{at.replace(',', '.')}Z" for at in CLOCKS]
EVENTS = [("PREPARE_REBALANCE", 4), ("JOIN_COMPLETE", 5), ("SYNC_LEADER", 5)]

Entries = list[tuple[int, str]]
"""Milliseconds and text of each line."""
ENTRIES: Entries = list(zip(AT_MS, LINES, strict=True))


def table(heading: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """A table as spreadsheets read it."""
    text = io.StringIO()
    csv.writer(text).writerows([heading, *rows])
    return text.getvalue()


def insights(entries: Entries) -> str:
    """The answer of `aws logs get-query-results`."""
    return json.dumps(
        {
            "results": [
                [{"field": "@timestamp", "value": str(at)}, {"field": "@message", "value": text}]
                for at, text in entries
            ],
            "status": "Complete",
        },
        indent=2,
    )


def filtered(entries: Entries, indent: int | None = None) -> str:
    """The answer of `aws logs filter-log-events`."""
    events = [{"logStreamName": "b-1", "timestamp": at, "message": text} for at, text in entries]
    return json.dumps({"events": events, "searchedLogStreams": []}, indent=indent)


def each(form: Callable[[int, str], object]) -> Callable[[Entries], str]:
    """A JSON object a line."""
    return lambda entries: "\n".join(json.dumps(form(at, text)) for at, text in entries)


EXPORTS: dict[str, Callable[[Entries], str]] = {
    "plain": lambda entries: "\n".join(text for _, text in entries),
    "filter-log-events": filtered,
    "filter-log-events, pretty": lambda entries: filtered(entries, 4),
    "get-query-results": insights,
    "messages alone": lambda entries: json.dumps([text for _, text in entries], indent=4),
    "gcloud": lambda entries: json.dumps(
        [{"severity": "INFO", "textPayload": text} for _, text in entries], indent=2
    ),
    "elasticsearch": lambda entries: json.dumps(
        {"took": 3, "hits": {"hits": [{"_source": {"message": text}} for _, text in entries]}}
    ),
    "datadog": lambda entries: json.dumps(
        {"data": [{"attributes": {"message": text, "tags": ["a:b"]}} for _, text in entries]}
    ),
    "objects of jq": lambda entries: "\n".join(
        json.dumps({"message": text}, indent=2) for _, text in entries
    ),
    "loki": each(lambda at, text: {"labels": {}, "line": text, "timestamp": str(at * 1_000_000)}),
    "splunk": each(lambda _, text: {"preview": False, "result": {"_raw": text}}),
    "docker": each(lambda _, text: {"log": f"{text}\n", "stream": "stdout"}),
    "journald": each(lambda at, text: {"MESSAGE": text, "__REALTIME_TIMESTAMP": str(at * 1_000)}),
    "kubectl": lambda entries: "\n".join(f"{ISO[0][:-1]}123456Z {text}" for _, text in entries),
    "insights table": lambda entries: table(
        ("@timestamp", "@message"), [(str(at), text) for at, text in entries]
    ),
    "datadog table": lambda entries: table(
        ("Date", "Host", "Service", "Message"), [("", "b", "kafka", text) for _, text in entries]
    ),
}


def importing_of(folder: Path, *texts: str, options: Options | None = None) -> Importing:
    """The files with these texts, read into `folder / out`."""
    options = Options(zone=UTC) if options is None else options
    paths = []
    for number, text in enumerate(texts):
        paths.append(folder / f"{number}.log")
        paths[-1].write_text(text)
    importing = prepare(paths, options=options)
    if importing.usable:
        write_trace(importing, options, folder / "out", lambda _used: None)
    return importing


def story_of(folder: Path, text: str, options: Options | None = None) -> list[tuple[object, ...]]:
    """Event, generation and milliseconds of each event of a file."""
    importing = importing_of(folder, text, options=options)
    assert not importing.bad
    events = read_run(folder / "out").events()
    return [(event.event.value, event.generation, event.ts_us // 1_000) for event in events]


TOLD = [(*event, at) for event, at in zip(EVENTS, AT_MS, strict=True)]


@pytest.mark.parametrize("newest_first", [False, True], ids=["oldest first", "newest first"])
@pytest.mark.parametrize("name", EXPORTS)
def test_export_of_a_log_tells_what_the_log_tells(
    name: str, newest_first: bool, tmp_path: Path
) -> None:
    """Every line counts, whatever is around it, and in either order."""
    entries = ENTRIES[::-1] if newest_first else ENTRIES
    importing = importing_of(tmp_path, EXPORTS[name](entries))
    events = read_run(tmp_path / "out").events()
    told = [(event.event.value, event.generation, event.ts_us // 1_000) for event in events]
    assert told == TOLD
    summary = importing.files[0].summary
    assert (summary.lines, summary.parsed, summary.other) == (3, 3, 0)
    assert any("newest line first" in note for note in importing.files[0].notes) == newest_first


def test_time_is_in_a_column_of_a_table(tmp_path: Path) -> None:
    """A message without a time has that of its row, with and without headings."""
    client = "[Consumer clientId=till, groupId=shop] (Re-)joining group"
    for number, text in enumerate(
        (
            f'"2024-05-13T10:00:00.000Z","i-1","app","{client}"\n',
            f'"i-1","{client}","2024-05-13T10:00:00.000Z"\n',
            f"1715594400000,i-1,{client}\n",
            table(("Host", "Message", "Date"), [("i-1", client, "2024-05-13T10:00:00Z")]),
            table(("@message", "@timestamp"), [(client, "2024-05-13 10:00:00.000")]),
        )
    ):
        (tmp_path / str(number)).mkdir()
        zone = ZoneInfo("Europe/Berlin")
        told = story_of(tmp_path / str(number), text, Options(zone=zone, tz="Europe/Berlin"))
        assert told == [("JOIN_REQ", None, AT_MS[0])], text


def test_log_without_any_time_is_not_in_1970_in_silence(tmp_path: Path) -> None:
    """All events of the file lack a time; the summary shows that."""
    summary = importing_of(tmp_path, "\n".join(BARE)).files[0].summary
    assert summary.timeless == summary.events == len(BARE)


def test_records_of_several_lines_keep_their_order_when_turned(tmp_path: Path) -> None:
    """A stack trace stays below its line."""
    trace = ["java.lang.IllegalStateException: x", "\tat a.b(C.java:1)", "\tat a.c(C.java:2)"]
    text = "\n".join([LINES[2], *trace, LINES[1], LINES[0]])
    path = tmp_path / "server.log"
    path.write_text(text)
    expected = [LINES[0], LINES[1], LINES[2], *trace]
    assert [line.rstrip("\n") for line in LogFileReader(path, int).lines()] == expected
    blocks = b"".join(LogFileReader(path, int).blocks()).decode()
    assert blocks.splitlines() == expected
    assert not is_splittable(path)
    with gzip.open(tmp_path / "server.gz", "wt") as file:
        file.write(text)
    packed = LogFileReader(tmp_path / "server.gz", int).lines()
    assert [line.rstrip("\n") for line in packed] == expected


@pytest.mark.parametrize(
    "clocks",
    [
        ("10:00:00,020", "10:00:00,010", "10:00:00,000"),
        ("10:00:00,000", "09:59:59,970", "10:00:01,000", "10:00:00,990", "10:00:02,000"),
        ("10:00:00,000", "10:00:01,000", "09:00:00,000", "09:00:01,000", "09:00:02,000"),
        ("10:00:05,000", "10:00:00,000"),
        ("10:00:00,000", "10:00:00,010", "10:00:00,005", "09:00:00,000", "09:00:00,005"),
    ],
    ids=["threads", "threads that rise", "clock set back", "one step back", "threads set back"],
)
def test_log_that_jumps_back_is_not_newest_first(clocks: tuple[str, ...], tmp_path: Path) -> None:
    """Several threads, or a clock that was set back, leave the order of the lines."""
    path = tmp_path / "server.log"
    path.write_text("".join(f"[2024-05-13 {at}] {BARE[1]}\n" for at in clocks))
    assert form_in(path).is_plain


def test_newest_lines_of_several_pods_come_first() -> None:
    """Clocks that differ by some milliseconds rise about as often as all lines together fall."""
    ages = [10 * number + 30 * (number % 3 - 1) for number in range(500)]
    clocks = [f"10:00:{(9_999 - age) // 1_000:02}.{(9_999 - age) % 1_000:03}Z" for age in ages]
    lines = [f"2024-05-13T{at} {BARE[1]}\n" for at in clocks]
    assert form_of("".join(lines), UTC).newest_first
    assert not form_of("".join(reversed(lines)), UTC).newest_first


@pytest.mark.parametrize(
    "first",
    [
        {"args": [{"a": 1}], "port": 9092},
        {"event": "started", "arguments": ["--consumer group shop"]},
    ],
)
@pytest.mark.parametrize("name", ["plain", "docker"])
def test_line_of_json_among_others_is_a_line(
    first: dict[str, object], name: str, tmp_path: Path
) -> None:
    """No line of a log is left out because the first one is JSON of another program."""
    text = "\n".join([json.dumps(first), EXPORTS[name](ENTRIES)])
    summary = importing_of(tmp_path, text).files[0].summary
    assert (summary.lines, summary.parsed, summary.other) == (4, 3, 1)


def test_documents_of_a_line_each_are_read(tmp_path: Path) -> None:
    """The pages of an answer are one file, with a compact document a line."""
    text = "\n".join(map(filtered, (ENTRIES[:2], ENTRIES[2:])))
    assert story_of(tmp_path, text) == TOLD


@pytest.mark.parametrize("size", [1, 7, 1_000_000])
def test_documents_come_in_pieces_of_any_size(size: int) -> None:
    """Borders of pieces fall inside strings, escapes and brackets."""
    texts = ['a "b" \\ ]}', "c [{", *LINES]
    document = json.dumps({"x": {"y": [1]}, "events": [{"message": text} for text in texts]})
    pieces = [document[at : at + size] for at in range(0, len(document), size)]
    found = [json.loads(line)["message"] for line in records(pieces, Shape.ARRAYS)]
    assert found == texts


def test_document_that_is_cut_tells_of_its_last_record(tmp_path: Path) -> None:
    """The record that was cut is a line that could not be parsed."""
    text = filtered(ENTRIES)
    cut = text[: text.index("Assignment received") + 40]
    summary = importing_of(tmp_path, cut).files[0].summary
    assert (summary.lines, summary.parsed, summary.unparsed) == (3, 2, 1)


@pytest.mark.parametrize(
    ("zone", "clock"),
    [("CEST", "12:00:00"), ("PST", "02:00:00"), ("JST", "19:00:00"), ("ACST", "19:30:00")],
)
def test_abbreviation_of_one_zone_is_read(zone: str, clock: str, tmp_path: Path) -> None:
    """The zone in the line counts, not --tz."""
    text = f"[2024-05-13 {clock},000 {zone}] {BARE[0]}\n"
    options = Options(zone=ZoneInfo("Asia/Tokyo"), tz="Asia/Tokyo")
    assert story_of(tmp_path, text, options) == [TOLD[0]]


@pytest.mark.parametrize(("zone", "tz"), [("PST", "Asia/Manila"), ("CDT", "America/Havana")])
def test_zone_that_is_given_wins_over_another_of_its_name(
    zone: str, tz: str, tmp_path: Path
) -> None:
    """The Philippines and Cuba abbreviate as America does."""
    written = datetime(2024, 5, 13, 10, tzinfo=UTC).astimezone(ZoneInfo(tz))
    text = f"[{written:%Y-%m-%d %H:%M:%S},000 {zone}] {BARE[0]}\n"
    assert story_of(tmp_path, text, Options(zone=ZoneInfo(tz), tz=tz)) == [TOLD[0]]


@pytest.mark.parametrize("told", ["03/04/2024 10:00:00", "2024-05-13 10:00:00 IST"])
def test_time_that_a_message_tells_of_refuses_no_file(told: str, tmp_path: Path) -> None:
    """Only the time of a line itself must be clear; other programs' lines may be anything."""
    sentence = f"Prices of {told} for group shop"
    for number, lines in enumerate(
        (
            [f"[{ISO[0]}] {sentence}", f"[{ISO[0]}] {BARE[0]}"],
            [f"{told} INFO Started (app.Main)", f"[{ISO[0]}] {BARE[0]}"],
            [json.dumps({"timestamp": ISO[0], "message": text}) for text in (sentence, BARE[0])],
        )
    ):
        (tmp_path / str(number)).mkdir()
        assert story_of(tmp_path / str(number), "\n".join(lines)) == [TOLD[0]], lines


def test_abbreviation_of_several_zones_needs_the_zone(tmp_path: Path) -> None:
    """The line names the option; with a zone of that abbreviation the file is read."""
    text = f"[2024-05-13 15:30:00,000 IST] {BARE[0]}\n"
    problem = importing_of(tmp_path, text).files[0].problem
    assert problem == (
        "its times are in IST, which is the time of Asia/Kolkata, Asia/Jerusalem, Europe/Dublin: "
        "name the zone that is meant, such as --tz Asia/Kolkata"
    )
    options = Options(zone=ZoneInfo("Asia/Kolkata"), tz="Asia/Kolkata")
    assert story_of(tmp_path, text, options) == [TOLD[0]]


def test_abbreviation_tells_the_repeated_hour_apart(tmp_path: Path) -> None:
    """CST in the hour that the end of summer time repeats is its second occurrence."""
    text = f"[2024-11-03 01:30:00,000 CST] {BARE[0]}\n"
    options = Options(zone=ZoneInfo("America/Chicago"), tz="America/Chicago")
    assert story_of(tmp_path, text, options)[0][2] == 1_730_619_000_000


@pytest.mark.parametrize(
    "date",
    [
        *("05/13/2024 10:00:00 AM", "13/05/2024 10:00:00", "13.05.2024 10:00:00"),
        *("13-05-2024 10:00:00,000", "05/13/2024, 10:00:00 AM", "May 13, 2024 @ 10:00:00.000"),
    ],
)
def test_dates_of_other_countries_are_read(date: str, tmp_path: Path) -> None:
    """A day above 12 shows which number is the day."""
    assert story_of(tmp_path, f"{date} {BARE[0]}\n") == [TOLD[0]]


def test_order_of_dates_is_proven_by_another_line_or_an_option(tmp_path: Path) -> None:
    """A file of dates such as 03/04/2024 alone is refused with the option to give."""
    text = f"03/04/2024 10:00:00 {BARE[0]}\n"
    april, march = 1_712_138_400_000, 1_709_546_400_000
    problem = importing_of(tmp_path, text).files[0].problem
    assert problem is not None
    assert problem.endswith("name the order with --dates mdy or --dates dmy")
    for day_first, at in ((True, april), (False, march)):
        options = Options(zone=UTC, day_first=day_first)
        assert story_of(tmp_path, text, options)[0][2] == at
    later = "".join(f"03/04/2024 10:00:01 other {'.' * 900}\n" for _ in range(100))
    assert story_of(tmp_path, f"{text}{later}14/04/2024 10:00:00 end\n")[0][2] == april


@pytest.mark.parametrize("dates", [("13/11", "12/11"), ("01/02", "31/01")])
def test_newest_days_come_first_in_any_order_of_dates(dates: tuple[str, ...]) -> None:
    """The order that one date shows is that of all of them."""
    lines = [f"{date}/2024 10:00:{s} {BARE[1]}\n" for date in dates for s in ("20", "10")]
    assert form_of("".join(lines), UTC).newest_first


def test_order_of_dates_turns_a_file_that_does_not_show_it(tmp_path: Path) -> None:
    """In April, by --dates or by a line far below, the newest lines are first."""
    texts = ((2, "05/02"), (1, "05/02"), (2, "07/01"), (1, "07/01"))
    lines = [f"{date}/2024 10:00:0{second} {BARE[1]}\n" for second, date in texts]
    path = tmp_path / "server.log"
    path.write_text("".join(lines))
    assert list(LogFileReader(path, int, day_first=True).lines()) == lines[::-1]
    assert not is_splittable(path, day_first=True)
    assert is_splittable(path)
    (one,) = prepare([path], options=Options(zone=UTC, day_first=True)).files
    assert one.notes == ["has the newest line first; read and numbered from its end."]
    path.write_text(
        "".join([*lines, *[f"{lines[-1][:-1]}{'.' * 900}\n"] * 100, "13/12/2023 10:00:00 end\n"])
    )
    (one,) = prepare([path], options=Options(zone=UTC)).files
    assert (one.day_first, len(one.notes)) == (True, 1)


def test_empty_files_beside_others_are_no_problem(tmp_path: Path) -> None:
    """A broker opens a request log that it never writes to; alone, it is nothing to read."""
    importing = importing_of(tmp_path, "", "\n".join(LINES), "")
    assert [one.problem for one in importing.files] == [None, None, None]
    assert importing.files[0].notes == ["is empty."]
    check_told(importing)
    alone = tmp_path / "alone"
    alone.mkdir()
    assert "is empty" in (importing_of(alone, "").files[0].problem or "")


def test_table_of_another_program_is_no_log(tmp_path: Path) -> None:
    """Rows without a coordinator's words are counted as lines of other programs."""
    importing = importing_of(tmp_path, table(("Date", "Message"), [("2024-05-13", "hello")] * 3))
    summary = importing.files[0].summary
    assert (summary.lines, summary.other) == (3, 3)
    with pytest.raises(DataError, match="no line of a group coordinator"):
        check_told(importing)
