"""The command line as its user sees it: help, output for machines, and where traces go."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator_sim.cli.main import app
from coordinator_sim.errors import ConfigError, DataError

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
    """Nothing is simulated for nothing, and what is there stays."""
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
