"""`examples`: the files that the guides use, from the installed package into a folder."""

from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from coordinator_sim.errors import ConfigError, DataError

_NOT_OURS = ("__pycache__", ".", "py.typed")
"""Beginnings of names that tools leave in a folder in which they ran, and of what they read."""


def examples(
    out: Annotated[Path, typer.Option(help="Write them into this folder.", metavar="DIR")] = Path(
        "examples"
    ),
) -> None:
    """Write the files that the guides use: logs, scenarios, assignors, tests.

    Files that are there and are the same stay. Exit code 2: one is there and differs; then nothing
    is written.

    Example: coordinator-sim examples --out examples
    """
    ours = dict(_files(_packaged(), Path()))
    different = [name for name, text in ours.items() if _differs(out / name, text)]
    if different:
        raise ConfigError(
            f"{out / different[0]} is there and differs from the example of that name; "
            "name another folder with --out"
        )
    for name, text in ours.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(text)
    typer.echo(f"{len(ours)} files in {out}")


def _packaged() -> Traversable:
    try:
        return files("coordinator_sim_examples")
    except ModuleNotFoundError:
        raise DataError(
            "this installation has no examples: install coordinator-sim from its wheel"
        ) from None


def _files(folder: Traversable, at: Path) -> "list[tuple[Path, bytes]]":
    """Every file below the folder with its path in it, by name."""
    found: list[tuple[Path, bytes]] = []
    for each in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if each.name.startswith(_NOT_OURS):
            continue
        if each.is_file():
            found.append((at / each.name, each.read_bytes()))
        else:
            found += _files(each, at / each.name)
    return found


def _differs(path: Path, text: bytes) -> bool:
    """Whether something else is at that path."""
    try:
        return path.read_bytes() != text
    except FileNotFoundError:
        return False
    except OSError:
        return True
