"""The options by which a user's own assignors get a name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from coordinator_sim.assignors.foreign.contract import OwnAssignor
from coordinator_sim.errors import ConfigError

AssignorFromOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME=]MY.PY:FUNCTION",
        help="Your own assignor: a function in a file or module; may be repeated.",
    ),
]
AssignorProcessOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COMMAND",
        help="Your own assignor: a process that speaks JSON lines; may be repeated.",
    ),
]


def register_given(
    functions: Sequence[str] | None, processes: Sequence[str] | None
) -> tuple[OwnAssignor, ...]:
    """Make the assignors of the command line known by their names.

    Raises:
        ConfigError: A name cannot be used, or there is no such function.
    """
    from coordinator_sim.assignors.registry import register_own

    own = [*(_function(text) for text in functions or ()), *map(_process, processes or ())]
    for each in own:
        register_own(each)
    return tuple(own)


def _function(text: str) -> OwnAssignor:
    name, equals, target = text.partition("=")
    if not equals:
        name, target = text.rpartition(":")[2].replace("_", "-"), text
    return _own("python", name, target)


def _process(text: str) -> OwnAssignor:
    name, equals, command = text.partition("=")
    if not equals or not command.strip():
        raise ConfigError(f"--assignor-process {text!r}: wants NAME=COMMAND, as mine=./assign")
    return _own("process", name, command)


def _own(kind: Literal["python", "process"], name: str, target: str) -> OwnAssignor:
    return OwnAssignor(name=name.strip(), kind=kind, target=target.strip(), folder=str(Path.cwd()))
