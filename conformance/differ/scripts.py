"""Scripts: programs as files of JSON lines, which both sides can run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from coordinator_sim.errors import UNREADABLE_JSON, DataError
from coordinator_sim_conformance.differ.comparison import Difference, first_difference
from coordinator_sim_conformance.differ.loop import Exchange, Side
from coordinator_sim_conformance.differ.sides import LinesProcess

Json = dict[str, Any]


def read_script(path: Path) -> list[Json]:
    """Read the commands of a file, one per line; blank lines are ignored.

    Raises:
        DataError: a line is not a JSON object with an `op`, or the file holds none.
        OSError: the file cannot be read.
    """
    commands = []
    for number, line in enumerate(path.read_bytes().splitlines(), 1):
        if not line.strip():
            continue
        try:
            command = msgspec.json.decode(line)
        except UNREADABLE_JSON as error:
            raise DataError(f"{path}, line {number}: {error}") from None
        if not isinstance(command, dict) or not isinstance(command.get("op"), str):
            raise DataError(f"{path}, line {number}: wants a JSON object with an op")
        commands.append(command)
    if not commands:
        raise DataError(f"{path} holds no commands")
    return commands


def write_script(path: Path, commands: Sequence[Json]) -> None:
    """Write a script; its folder is created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(msgspec.json.encode(command) + b"\n" for command in commands))


def write_recording(path: Path, exchanges: Sequence[Exchange]) -> None:
    """Write commands with the reference's answers, one exchange per line; creates the folder."""
    lines = [{"command": each.command, "answer": each.theirs} for each in exchanges]
    write_script(path, lines)


def read_recording(path: Path) -> list[tuple[Json, Json]]:
    """Read commands with a reference's answers, as `write_recording` wrote them."""
    lines = [msgspec.json.decode(line) for line in path.read_bytes().splitlines()]
    return [(line["command"], line["answer"]) for line in lines]


def play(
    commands: Sequence[Json], ours: Side, theirs: LinesProcess
) -> tuple[list[Exchange], Difference | None]:
    """Run a script on both sides.

    Returns:
        The exchanges up to and with the first difference, and that difference; without one, all
        exchanges and None.
    """
    theirs.send([msgspec.json.encode(command) for command in commands])
    exchanges: list[Exchange] = []
    found: Difference | None = None
    for command in commands:
        answer = theirs.receive()
        if found is None:
            mine = ours.answer(command)
            exchanges.append(Exchange(command, mine, answer))
            found = first_difference(command, mine, answer)
    return exchanges, found
