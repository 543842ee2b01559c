"""The offsets log on the command line: written by a run, printed by `log dump`."""

from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from coordinator_sim.cli.main import app
from coordinator_sim.errors import ConfigError

GOLDEN = Path(__file__).parents[1] / "log" / "golden" / "offsets-log-4.4.0"
SEGMENT = "00000000000000000000.log"


def command(*arguments: str | Path) -> Result:
    """What a command did."""
    return CliRunner().invoke(app, [*map(str, arguments)])


def test_a_run_leaves_a_log_that_dump_prints(tmp_path: Path) -> None:
    """Groups and offsets of the run stand in the segments of their partitions."""
    logs = tmp_path / "logs"

    ran = command("run", "member-crash", "--out", tmp_path / "trace", "--log-dir", logs)
    dumped = command("log", "dump", logs)

    assert f"offsets log: {logs}" in ran.stdout
    assert [path.name for path in logs.glob("*/*")] == [SEGMENT]
    assert dumped.exit_code == 0
    assert '"protocolType":"consumer"' in dumped.stdout
    assert dumped.stdout.splitlines()[1] == "Log starting offset: 0"


def test_files_and_folders_of_segments_are_printed() -> None:
    """A file, a partition's folder and the log directory name the same segments."""
    folder = GOLDEN / "__consumer_offsets-1"

    by_file = command("log", "dump", folder / SEGMENT).stdout

    assert command("log", "dump", folder).stdout == by_file
    assert by_file in command("log", "dump", GOLDEN).stdout


def test_damage_is_printed_and_is_an_exit_code(tmp_path: Path) -> None:
    """What can be read is printed all the same."""
    copy = tmp_path / SEGMENT
    copy.write_bytes((GOLDEN / "__consumer_offsets-0" / SEGMENT).read_bytes()[:-1])

    done = command("log", "dump", copy)

    assert done.exit_code == 1
    assert "baseOffset: 0" in done.stdout
    assert "Found 102 invalid bytes at the end of 00000000000000000000.log" in done.stdout


def test_a_path_without_segments_is_misuse(tmp_path: Path) -> None:
    """The message says what to name instead."""
    for path, words in ((tmp_path, "no segment in this folder"), (tmp_path / "x", "no such file")):
        done = command("log", "dump", path)
        assert isinstance(done.exception, ConfigError)
        assert words in str(done.exception)
