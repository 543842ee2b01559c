"""Runs of pytest in a process and a folder of their own, on which the plugin is tried."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
OPTIONS = ("-q", "--strict-markers", "-W", "error", "-p", "coordinator_sim_pytest")


@pytest.fixture
def run_pytest(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Takes the source of a module of tests, options and a conftest; exit code and output."""

    def run(source: str, *options: str, conftest: str = "") -> tuple[int, str]:
        (tmp_path / "pytest.ini").write_text("[pytest]\n")
        (tmp_path / "test_it.py").write_text(source)
        (tmp_path / "conftest.py").write_text(conftest)
        found = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *OPTIONS, *options],
            capture_output=True,
            text=True,
            check=False,
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(found),
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
        )
        return done.returncode, done.stdout + done.stderr

    return run
