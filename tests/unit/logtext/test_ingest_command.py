"""The command `ingest`, from files on disk to a run directory."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from coordinator_sim.cli.ingest import ingest
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.trace.events import Event

LOGGER = "kafka.coordinator.group.GroupCoordinator"
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"

app = typer.Typer()
app.command()(ingest)


def line(minute: int, message: str) -> str:
    """A coordinator's line at a minute after noon."""
    return f"[2024-05-06 12:{minute:02}:01,250] INFO [GroupCoordinator 1]: {message} ({LOGGER})\n"


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error; user errors are raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_folder_with_rotated_and_compressed_files_is_one_story(tmp_path: Path) -> None:
    """Files are taken in time order whatever their names, compressed or not."""
    logs = tmp_path / "logs"
    (logs / "broker-2").mkdir(parents=True)
    (logs / "server.log").write_text(line(9, "Stabilized group shop generation 7"))
    (logs / "server.log.1").write_text(line(5, "Stabilized group shop generation 6"))
    with gzip.open(logs / "broker-2" / "old.gz", "wt") as file:
        file.write(line(1, "Stabilized group shop generation 5"))
    (logs / "notes.md").write_text("not a log")
    out = tmp_path / "out"
    code, stdout, _ = run(logs, "--out", out)
    assert code == 0
    assert [event.generation for event in read_run(out).events()] == [5, 6, 7]
    assert "3 files" in stdout
    assert "notes.md" not in stdout


def test_example_gives_the_table_a_reader_expects(tmp_path: Path) -> None:
    """Lines, groups, rebalances and the version that the wording tells."""
    code, stdout, _ = run(EXAMPLE, "--out", tmp_path / "out")
    assert code == 0
    cells = stdout.splitlines()[1].split()
    assert cells[3:5] == ["0", "3"]
    assert cells[-2:] == ["4.x", "server.log"]


@pytest.mark.parametrize("trace_format", ["parquet", "jsonl"])
def test_run_directory_holds_the_events(tmp_path: Path, trace_format: str) -> None:
    """Either form reads back; the time zone given is applied."""
    log = tmp_path / "server.log"
    log.write_text(line(0, "Group shop with generation 4 is now empty"))
    out = tmp_path / "out"
    arguments = ("--tz", "Asia/Tokyo", "--cluster", "blue", "--format", trace_format)
    assert run(log, "--out", out, *arguments)[0] == 0
    trace = read_run(out)
    (event,) = trace.events()
    assert (event.event, event.group_id, event.seq) == (Event.GROUP_EMPTY, "shop", 1)
    assert event.ts_us == 1_714_964_401_250_000
    assert (trace.info.cluster_id, trace.info.options) == ("blue", {"tz": "Asia/Tokyo"})


def test_raw_lines_are_kept_on_request(tmp_path: Path) -> None:
    """The text of a line may hold what a user wants to look up."""
    log = tmp_path / "server.log"
    log.write_text(line(0, "Group shop with generation 4 is now empty"))
    run(log, "--out", tmp_path / "out", "--keep-raw")
    (event,) = read_run(tmp_path / "out").events()
    assert event.raw == log.read_text().strip()


def test_json_summary_counts_and_lists_patterns(tmp_path: Path) -> None:
    """A machine reads the same figures, and what could not be parsed."""
    log = tmp_path / "server.log"
    log.write_text(
        line(0, "Group shop has 3 wheels")
        + line(1, "Group shop has 4 wheels")
        + line(2, "Stabilized group shop generation 7")
    )
    code, stdout, _ = run(log, "--out", tmp_path / "out", "--json")
    document = json.loads(stdout)
    assert code == 0
    assert document["total"]["unparsed"] == 2
    assert list(document["unparsed_patterns"].values()) == [2]
    assert document["by_event"] == {"UNPARSED": 2, "JOIN_COMPLETE": 1}
    assert document["files"][0]["path"] == str(log)


def test_bad_files_are_named_and_the_others_read(tmp_path: Path) -> None:
    """One damaged file of an incident's collection does not cost the rest."""
    good, empty, binary, cut = (tmp_path / name for name in ("a.log", "b.log", "c.log", "d.log.gz"))
    good.write_text(line(0, "Stabilized group shop generation 7"))
    empty.write_text("\n")
    binary.write_bytes(bytes(range(256)) * 8)
    cut.write_bytes(gzip.compress(line(1, "Starting up.").encode() * 5_000)[:-20])
    out = tmp_path / "out"
    code, stdout, stderr = run(good, empty, binary, cut, "--out", out)
    assert code == 1
    problems = stderr.splitlines()
    assert [problem.split(": ")[1] for problem in problems] == [str(binary), str(cut)]
    assert f"{empty}: is empty." in stdout
    assert "is binary" in problems[0]
    assert "is damaged" in problems[1]
    assert any(event.generation == 7 for event in read_run(out).events())


def test_table_names_what_a_reader_must_know(tmp_path: Path) -> None:
    """Unparsed patterns, clocks that ran back and events without a time are told."""
    log = tmp_path / "server.log"
    log.write_text(
        line(2, "Stabilized group shop generation 7")
        + line(1, "Group shop has 3 wheels")
        + f"[GroupCoordinator 1]: Stabilized group shop generation 8 ({LOGGER})\n"
    )
    _, stdout, _ = run(log, "--out", tmp_path / "out")
    assert "1  [GroupCoordinator #]: Group {} has # wheels" in stdout
    assert "Times run backwards at 1 line;" in stdout
    assert "1 event without a time of its own" in stdout


def test_file_that_only_claims_to_be_compressed_is_named(tmp_path: Path) -> None:
    """The first bytes promise gzip and the rest does not keep it."""
    log = tmp_path / "server.log.gz"
    log.write_bytes(b"\x1f\x8b nothing of the kind")
    code, _, stderr = run(log, "--out", tmp_path / "out")
    assert code == 1
    assert "cannot be read" in stderr


def test_only_bad_files_leave_no_trace(tmp_path: Path) -> None:
    """Without a single usable file nothing is written."""
    empty = tmp_path / "b.log"
    empty.touch()
    code, stdout, stderr = run(empty, "--out", tmp_path / "out")
    assert (code, stdout) == (1, "")
    assert stderr.startswith(f"error: {empty}: is empty")
    assert not (tmp_path / "out").exists()


def test_log_of_another_program_is_bad_data(tmp_path: Path) -> None:
    """A log without a coordinator's line is said to be one, with where such lines come from."""
    log = tmp_path / "other.log"
    log.write_text("[2024-05-06 12:00:01,250] INFO hello (a.B)\n")
    with pytest.raises(DataError, match=r"no line of a group coordinator in 1 file"):
        run(log, "--out", tmp_path / "out")


def test_text_in_two_byte_characters_is_read(tmp_path: Path) -> None:
    """Logs copied on Windows come as UTF-16."""
    log = tmp_path / "server.log"
    log.write_text(line(0, "Stabilized group shop generation 7"), encoding="utf-16")
    run(log, "--out", tmp_path / "out")
    (event,) = read_run(tmp_path / "out").events()
    assert event.generation == 7


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_line_without_end_is_cut_and_counted(tmp_path: Path, packed: bool, encoding: str) -> None:
    """Lines of many megabytes take a megabyte of memory, and the lines after them are read."""
    log = tmp_path / "server.log"
    whole = line(1, "Stabilized group shop generation 7")
    text = whole + "x" * 30_000_000 + "\n" + line(2, "Stabilized group shop generation 8")
    data = text.encode(encoding)
    log.write_bytes(gzip.compress(data, 1) if packed else data)
    del text, data
    tracemalloc.start()
    code, stdout, _ = run(log, "--out", tmp_path / "out", "--json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert code == 0
    assert [event.generation for event in read_run(tmp_path / "out").events()] == [7, 8]
    total = json.loads(stdout)["total"]
    assert (total["lines"], total["cut_lines"]) == (3, 1)
    assert peak < 20_000_000
    assert "1 line longer than 1 MB, and cut there" in run(log, "--out", tmp_path / "out")[1]


def test_numbers_of_any_length_are_read(tmp_path: Path) -> None:
    """A number with 5,000 digits is no generation, no time and no partition, and ends nothing."""
    huge = "9" * 5_000
    empty = "[GroupCoordinator 1]: Group shop with generation 6 is now empty"
    log = tmp_path / "server.log"
    log.write_text(
        line(0, f"Stabilized group shop generation {huge}")
        + line(1, f"Group shop with generation {huge} is now empty (__consumer_offsets-{huge})")
        + '{"instant":{"epochSecond":1000000000000,"nanoOfSecond":1000000000000000000},"message":'
        + '"[GroupCoordinator 1]: Stabilized group shop generation 6"}\n'
        + f"0001-01-01T00:00:00+14:00 INFO {empty} ({LOGGER})\n"
        + line(2, "Stabilized group shop generation 0000000000000000000007")
    )
    run(log, "--out", tmp_path / "out")
    events = list(read_run(tmp_path / "out").events())
    assert [event.generation for event in events] == [None, None, 6, 6, 7]


@pytest.mark.parametrize(
    ("text", "kind", "events", "unparsed"),
    [
        ("[shop,orders,0]::OffsetAndMetadata(offset=5, metadata=)\n", "console", 0, 1),
        ("shop::GroupMetadata(groupId=shop, generation=3)\n", "console", 0, 1),
        ('{"key":{"version":2,"data":{"group":"shop"}},"value":null}', "console", 1, 0),
        ("Dumping /logs/__consumer_offsets-1/0000.log\nStarting offset: 0\n", "dump", 0, 0),
        ("\nStarting offset: 0\n| offset: 0 CreateTime: 5 key: none\n", "dump", 0, 0),
    ],
)
def test_text_of_the_offsets_topic_beside_a_log_is_read_or_counted(
    tmp_path: Path, text: str, kind: str, events: int, unparsed: int
) -> None:
    """In a folder beside a log both are read, and what is cut is counted, not swallowed."""
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "server.log").write_text(line(0, "Stabilized group shop generation 7"))
    other = tmp_path / "logs" / "topic.txt"
    other.write_text(text)
    code, stdout, _ = run(tmp_path / "logs", "--out", tmp_path / "out", "--json")
    assert code == 0
    told = {Path(each["path"]).name: each for each in json.loads(stdout)["files"]}["topic.txt"]
    assert kind in told["kind"]
    assert (told["events"], told["unparsed"]) == (events, unparsed)
    found = list(read_run(tmp_path / "out").events())
    assert len(found) == 1 + events
    assert 7 in [event.generation for event in found]


def test_misuse_is_told_with_the_fix(tmp_path: Path) -> None:
    """Unknown zone, missing path, folder without logs, directory that holds other things."""
    log = tmp_path / "server.log"
    log.write_text(line(0, "Stabilized group shop generation 7"))
    with pytest.raises(ConfigError, match="'Mars/Olympus': no such time zone"):
        run(log, "--tz", "Mars/Olympus")
    with pytest.raises(ConfigError, match="no such file or folder"):
        run(tmp_path / "missing.log")
    bare = tmp_path / "bare"
    bare.mkdir()
    with pytest.raises(ConfigError, match="no log in this folder"):
        run(bare)
    with pytest.raises(ConfigError, match="no part of a trace"):
        run(log, "--out", tmp_path)
    assert run(log, "--format", "xml")[0] == 2


def test_same_files_give_the_same_trace(tmp_path: Path) -> None:
    """An import may be repeated into the same directory, and its digest does not change."""
    out = tmp_path / "out"
    run(EXAMPLE, "--out", out)
    first = read_run(out).info
    run(EXAMPLE, "--out", out)
    second = read_run(out).info
    assert (first.trace_id, first.digest) == (second.trace_id, second.digest)
