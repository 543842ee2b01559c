"""`log dump`: segments of the offsets log as text."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

log = typer.Typer(
    short_help="Look into the offsets log: the segments of __consumer_offsets.",
    rich_markup_mode=None,
)


@log.callback()
def options() -> None:
    """Look into the offsets log: the segments of __consumer_offsets.

    Example: coordinator-sim log dump out/offsets
    """


@log.command(short_help="Print segments as kafka-dump-log --offsets-decoder does.")
def dump(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Segment files (00000000000000000000.log), or folders that hold them.",
            metavar="PATH",
        ),
    ],
) -> None:
    """Print the batches and records of segments, as kafka-dump-log --offsets-decoder of 3.8+ does.

    Exit code 1 when a segment is damaged; what can be read is printed all the same.

    Example: coordinator-sim log dump out/offsets/__consumer_offsets-12
    """
    damaged = False
    for path in find_segments(paths):
        for line in lines_of(path):
            damaged = damaged or is_complaint(line)
            typer.echo(line)
    if damaged:
        raise typer.Exit(1)


def find_segments(paths: list[Path]) -> list[Path]:
    """The segment files that a user means.

    Raises:
        ConfigError: A path does not exist, or a folder holds no segment.
    """
    from coordinator_sim.disk.offsets_log import segment_files

    found = []
    for path in paths:
        if not path.exists():
            raise ConfigError(f"{path}: no such file or folder")
        inside = segment_files(path)
        if not inside:
            raise ConfigError(
                f"{path}: no segment in this folder; name a file such as "
                "00000000000000000000.log, a partition's folder or the log directory"
            )
        found += inside
    return found


def lines_of(path: Path) -> "Iterator[str]":
    """The text of one segment."""
    from coordinator_sim.log.dump_text import dump_segment

    return dump_segment(str(path), path.read_bytes())


def is_complaint(line: str) -> bool:
    """Whether a line says that something could not be read."""
    return (
        line.endswith("isvalid: false")
        or line.startswith(("Found ", "| records do not parse"))
        or "key: Error at offset" in line
    )
