"""Programs in Go beside Python modules, built on use; Go keeps what it has compiled."""

import shutil
import subprocess
from pathlib import Path

from coordinator_sim.errors import MissingDependencyError


def built_go_program(source: Path, folder: Path) -> Path:
    """Build a Go program; return the executable, named like the folder of its source.

    Args:
        source: Folder of its module.
        folder: Existing folder for the executable.

    Raises:
        MissingDependencyError: there is no Go, or it cannot build the program.
    """
    go = shutil.which("go")
    if go is None:
        raise MissingDependencyError(
            f"{source.name} is a program in Go: install Go, or add it to the path"
        )
    built = folder.resolve() / source.name
    done = subprocess.run(  # noqa: S603 - our own program
        [go, "build", "-o", str(built), "."],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise MissingDependencyError(f"go build {source.name}: {done.stderr.strip()[-500:]}")
    return built
