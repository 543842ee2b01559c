"""The options by which a user's own assignors get a name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from coordinator_sim.assignors.foreign.contract import CLASS_EXAMPLE, AssignorKind, OwnAssignor
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
AssignorJavaOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=CLASS@CLASSPATH",
        help="Your own assignor: a Java class, asked in a child JVM; may be repeated.",
    ),
]


def register_given(
    functions: Sequence[str] | None,
    processes: Sequence[str] | None,
    classes: Sequence[str] | None,
) -> tuple[OwnAssignor, ...]:
    """Make the assignors of the command line known by their names.

    Raises:
        ConfigError: A name cannot be used, or there is no such function.
    """
    from coordinator_sim.assignors.registry import register_own

    own = [
        *(_function(text) for text in functions or ()),
        *(_named("process", text, "mine=./assign") for text in processes or ()),
        *(_named("java", text, f"mine={CLASS_EXAMPLE}") for text in classes or ()),
    ]
    for each in own:
        register_own(each)
    return tuple(own)


def _function(text: str) -> OwnAssignor:
    name, equals, target = text.partition("=")
    if not equals:
        name, target = text.rpartition(":")[2].replace("_", "-"), text
    return _own("python", name, target)


def _named(kind: AssignorKind, text: str, example: str) -> OwnAssignor:
    name, equals, target = text.partition("=")
    if not equals or not target.strip():
        raise ConfigError(f"--assignor-{kind} {text!r}: wants a name before it, as {example}")
    return _own(kind, name, target)


def _own(kind: AssignorKind, name: str, target: str) -> OwnAssignor:
    return OwnAssignor(name=name.strip(), kind=kind, target=target.strip(), folder=str(Path.cwd()))
