"""A copy of the library that a test adds files to, and asks in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns

import coordinator_sim

_REPO = Path(__file__).parents[1]


def library_copy(folder: Path) -> Path:
    """Copy the library into an empty folder; returns the copy's package."""
    source = Path(coordinator_sim.__file__).parent
    return copytree(source, folder / source.name, ignore=ignore_patterns("__pycache__"))


def printed_by(package: Path, program: str) -> list[str]:
    """The words that a program prints with that copy; the suite and the reports are the real ones.

    Raises:
        CalledProcessError: the program failed.
    """
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": f"{package.parent}{os.pathsep}{_REPO}"},
        cwd=package.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()
