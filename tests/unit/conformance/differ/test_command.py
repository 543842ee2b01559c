"""`conformance differ` as a user types it, without Java."""

import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from coordinator_sim_conformance.cli.main import main
from tests.command_line import run_here

JAVA = """#!{python}
import os, sys
os.execv({python!r}, [{python!r}, "-m", "coordinator_sim", "lines"])
"""
"""A `java` that is our own core: the reference of these tests."""


def run_differ(
    *arguments: str, folder: Path, env: dict[str, str] | None = None
) -> "CompletedProcess[str]":
    """Run the command in a folder."""
    return run_here("differ", *arguments, command=main, folder=folder, environment=env)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--reference", "kafka-1.0"), "unknown reference 'kafka-1.0': use one of kafka-4.4.0"),
        (("--profile", "5.0"), "unknown profile '5.0'"),
        (("--steps", "0"), "greater than or equal to 1"),
        (("--program-steps", "2"), "greater than or equal to 3"),
        (("--without", "Produce"), "--without Produce: use some of JoinGroup"),
    ],
)
def test_misuse_is_one_line(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    """Exit code 2, the value and what it may be."""
    done = run_differ(*arguments, folder=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert words in done.stderr


def test_without_java_the_message_says_what_is_needed(tmp_path: Path) -> None:
    """Without Java the command ends with 2 before it builds a reference."""
    done = run_differ(folder=tmp_path, env={"PATH": str(tmp_path)})
    assert done.returncode == 2
    assert "error: java is not installed: a Java 17 runtime is needed" in done.stderr


def test_without_maven_the_message_says_what_it_is_for(tmp_path: Path) -> None:
    """A reference that is not built yet wants Maven; one that is does not."""
    java = tmp_path / "java"
    java.write_text(JAVA.format(python=sys.executable))
    java.chmod(0o755)
    done = run_differ("--steps", "300", folder=tmp_path, env={"PATH": str(tmp_path)})
    if done.returncode == 2:
        assert "error: mvn is not installed: Maven builds kafka-4.4.0" in done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr
        assert "300 operations in 1 programs" in done.stdout
        assert "no unexplained difference" in done.stdout
