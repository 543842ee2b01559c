"""Commands and the plugin work beside a team's own folders, whatever their names."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDERS = ("conformance", "reports", "scenarios")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A team's repository, whose packages are named as our folders are."""
    for name in FOLDERS:
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("OWNER = 'the team'\n", encoding="utf-8")
    return tmp_path


def test_a_command_finds_its_own_catalogue(repository: Path) -> None:
    """`list` needs the catalogue, and the folder of the team comes first on the path."""
    done = subprocess.run(
        [sys.executable, "-m", "coordinator_sim", "list"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "rolling" in done.stdout


def test_the_plugin_leaves_the_team_its_packages(repository: Path) -> None:
    """A test of the team imports its own package, and plays with ours."""
    test = "from scenarios import OWNER\n\ndef test_it(): assert OWNER == 'the team'\n"
    (repository / "test_own.py").write_text(test, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_own.py"],
        cwd=repository,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
