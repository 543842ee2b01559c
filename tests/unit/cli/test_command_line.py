"""The command line as its user sees it: help, output for machines, and where traces go."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from coordinator_sim.cli.main import app, main
from coordinator_sim.cli.progress import progress_bar
from coordinator_sim.errors import ConfigError, DataError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.runs.run_directory import RunDirectoryWriter, read_run
from coordinator_sim.trace.events import Event, RunInfo, Source, TraceEvent

COMMANDS = ("demo", "run", "list", "show", "ingest", "replay", "report", "explain", "assign")
EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "broker-log" / "server.log"


def output_of(*arguments: str | Path) -> str:
    """What a command that succeeds prints."""
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture(scope="module")
def run_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a crash."""
    path = tmp_path_factory.mktemp("traces") / "member-crash"
    output_of("run", "member-crash", "--out", path)
    return path


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_has_an_example(command: str) -> None:
    """Whoever asks for help sees a line to copy."""
    assert "Example: coordinator-sim" in output_of(*command.split(), "--help")


def test_help_lists_every_command_with_a_whole_sentence() -> None:
    """No line of the list is cut off."""
    listed = output_of("--help").split("Commands:")[1]
    for command in COMMANDS:
        assert f"\n  {command} " in listed
    assert "..." not in listed


@pytest.mark.parametrize(
    "arguments",
    [
        ("list",),
        ("show", "member-crash"),
        ("replay", "TRACE"),
        ("explain", "TRACE", "orders-app"),
        ("run", "member-crash", "--out", "OUT"),
        ("ingest", EXAMPLE, "--out", "OUT"),
    ],
)
def test_json_is_the_only_thing_on_stdout(
    arguments: tuple[str | Path, ...], run_directory: Path, tmp_path: Path
) -> None:
    """A machine reads the whole of stdout as one value."""
    places = {"TRACE": run_directory, "OUT": tmp_path / "out"}
    given = [places.get(str(argument), argument) for argument in arguments]

    assert json.loads(output_of(*given, "--json"))


def test_scenario_shown_as_json_runs_to_the_same_digest(tmp_path: Path) -> None:
    """What `show` writes, `run` reads: the file is the scenario."""
    file = tmp_path / "mine.json"
    file.write_text(output_of("show", "member-crash", "--json"))
    digests = [
        json.loads(output_of("run", which, "--json", "--out", tmp_path / "t"))["digest"]
        for which in ("member-crash", file)
    ]

    assert digests[0] == digests[1]


def test_scenario_shown_as_tasks_runs_and_tells_of_them(tmp_path: Path) -> None:
    """The data alone is printed, as `run` takes it; the run says when each task begins and ends."""
    path = tmp_path / "mine.json"
    path.write_text(output_of("show", "member-crash", "--tasks"), encoding="utf-8")
    told = output_of("run", path, "--format", "jsonl", "--out", tmp_path / "run")
    assert "TaskRunning  task=CrashMember-1 kind=coordinatorsim.CrashMember" in told
    assert "TaskDone  task=CrashMember-1" in told


def test_verbose_run_shows_heartbeats_in_aligned_columns(tmp_path: Path) -> None:
    """The longest group id of the run is as wide as the column."""
    story = output_of("run", "connect-worker-crash", "--verbose", "--out", tmp_path / "t")
    events = [line for line in story.splitlines() if "  connect-cluster " in line or "  - " in line]

    assert {line[27] for line in events} == {" "}
    assert any(line[28:].startswith("HEARTBEAT ") for line in events)


def test_options_are_told_in_the_headline(tmp_path: Path) -> None:
    """The first line is what is needed to run this again."""
    arguments = ("--assignor", "sticky", "--profile", "3.9", "--shuffle-ties", "--seed", "7")
    first = output_of("run", "member-crash", *arguments, "--out", tmp_path / "t").splitlines()[0]

    assert "seed=7 kafka=3.9 options: assignor=sticky profile=3.9 shuffle-ties=true" in first


def test_replay_does_not_overwrite_the_trace_it_reads(run_directory: Path) -> None:
    """The original would be gone."""
    done = CliRunner().invoke(app, ["replay", str(run_directory), "--out", str(run_directory)])

    assert isinstance(done.exception, ConfigError)
    assert "is the trace that is read; name another directory" in str(done.exception)


def test_directory_with_other_things_is_refused_before_the_run(tmp_path: Path) -> None:
    """A directory with other files is refused before the simulation, and is left as it was."""
    (tmp_path / "notes.txt").touch()
    done = CliRunner().invoke(app, ["run", "member-crash", "--out", str(tmp_path)])

    assert isinstance(done.exception, ConfigError)
    assert "holds 'notes.txt', which is no part of a trace" in str(done.exception)
    assert [entry.name for entry in tmp_path.iterdir()] == ["notes.txt"]


def test_trace_without_its_events_is_bad_data(tmp_path: Path) -> None:
    """A trace that lost a file is not one without rebalances."""
    trace = tmp_path / "t"
    output_of("run", "member-crash", "--out", trace)
    for part in trace.rglob("events/**/*.parquet"):
        part.unlink()
    done = CliRunner().invoke(app, ["explain", str(trace), "orders-app"])

    assert isinstance(done.exception, DataError)
    assert "holds 0 of the" in str(done.exception)


def exit_code_of(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """How `main` ends, in this process."""
    monkeypatch.setattr("sys.argv", ["coordinator-sim", *arguments])
    with pytest.raises(SystemExit) as stopped:
        main()
    return int(stopped.value.code or 0)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("list", "--json"), 0, ""),
        (("--version",), 0, ""),
        ((), 2, "Commands:"),
        (("rn",), 2, "error: no such command 'rn'"),
        (("run", "nope"), 2, "error: unknown scenario 'nope'"),
        (("show", "absent.json"), 2, "error: absent.json: No such file or directory"),
        (("replay", "absent"), 2, "error: absent: no such file or folder"),
        (("replay", __file__), 1, f"error: {__file__} is not a trace"),
        (("run", "member-crash", "--set", "x"), 2, "error: --set 'x': wants key=value"),
        (("run", "member-crash", "--assignor", "eager"), 2, "error: assignor"),
        (("run", "member-crash", "--profile", "9"), 2, "error: unknown profile '9'"),
    ],
)
def test_main_ends_with_code_and_one_line(
    arguments: tuple[str, ...],
    code: int,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """0 ok, 1 bad data, 2 misuse."""
    assert exit_code_of(monkeypatch, *arguments) == code
    told = capsys.readouterr().err
    assert words in told
    assert told.count("error: ") == words.count("error: ")


def test_list_without_json_is_a_table() -> None:
    """Name, virtual time, and what happens."""
    table = output_of("list")

    assert "rolling-bounce" in table
    assert "240 s" in table


def test_show_tells_the_story_before_the_data() -> None:
    """For a reader: what happens, then the JSON."""
    text = output_of("show", "member-crash")

    assert text.startswith("member-crash: Crash of a consumer")
    assert json.loads(text[text.index("\n{") :])["name"] == "member-crash"


def test_run_without_json_sums_up(tmp_path: Path) -> None:
    """Counts, invariants, digest, and where the trace is."""
    text = output_of("run", "connect-worker-crash", "--out", tmp_path / "t")

    assert "invariants kept: " in text
    assert "\nNot exercised in this run: I7 (convergence), I8 (last commit), I9 (" in text
    assert "digest: " in text
    assert f"trace: {tmp_path / 't'}" in text


def test_explain_tells_a_simulated_run(run_directory: Path) -> None:
    """Times of a simulation are seconds since its start; faults stand before what they caused."""
    text = output_of("explain", run_directory, "orders-app")

    assert text.startswith("Group orders-app: ")
    assert "before: " in text
    assert "MEMBER_FAILED" in text


def test_long_work_draws_a_bar_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On stderr, so that stdout stays what a machine reads."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    with progress_bar("simulating", 10, patience_s=-1.0) as advance:
        advance(5)

    drawn = capsys.readouterr()
    assert "simulating" in drawn.err
    assert "50%" in drawn.err
    assert not drawn.out


def test_replay_names_the_first_answer_that_did_not_come_true(
    run_directory: Path, tmp_path: Path
) -> None:
    """Exit code 1, the row in the table, and where it differs."""
    run = read_run(run_directory)
    events = list(run.events())
    at = next(index for index, event in enumerate(events) if event.event is Event.SYNC_RESP)
    events[at] = replace(events[at], error_code=ErrorCode.ILLEGAL_GENERATION)
    info = RunInfo(trace_id="t", source=Source.SIM, cluster_id="sim", version="0", profile="4.4")
    with RunDirectoryWriter(tmp_path / "changed", info) as writer:
        for event in (*events, TraceEvent(event=Event.GROUP_LOADED, ts_us=0, group_id="silent")):
            writer.record(event)
    done = CliRunner().invoke(app, ["replay", str(tmp_path / "changed")])

    told = " ".join(done.stdout.split())
    assert done.exit_code == 1
    assert "orders-app: 1 answer not reproduced, first: " in told
    assert "error_code is ILLEGAL_GENERATION" in told


def test_replay_with_settings_tells_what_changes(run_directory: Path) -> None:
    """The table of what if: before and after, where they differ."""
    text = output_of("replay", run_directory, "--set", "session.timeout.ms=20000")

    assert "Replayed as it is -> replayed with session.timeout.ms=20000" in text
    assert "10.000 s -> 20.000 s" in text


def test_replay_with_the_settings_it_had_changes_nothing(run_directory: Path) -> None:
    """A group that stays the same is counted, not listed."""
    text = output_of("replay", run_directory, "--set", "group.max.size=1000")

    assert "With group.max.size=1000 nothing changes for 1 group." in text
