"""`log`: segments of the offsets log as text, and the last committed offsets in them."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.uris import located, session_for_uris, session_of
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coordinator_sim.disk.last_offsets import LastOffsets
    from coordinator_sim.disk.segment_sources import FoundLogs

log = CommandLine(
    short_help="Look into the offsets log: the segments of __consumer_offsets.",
)


@log.callback()
def options() -> None:
    """Look into the offsets log: the segments of __consumer_offsets.

    Example: coordinator-sim log dump out/offsets
    """


@log.command(short_help="Print segments as kafka-dump-log --offsets-decoder does.")
def dump(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Segment files (00000000000000000000.log), or folders that hold them; URIs too.",
            metavar="PATH",
        ),
    ],
    share_group_state: Annotated[
        bool,
        typer.Option(
            "--share-group-state",
            help="Read the records as those of __share_group_state, as "
            "kafka-dump-log --share-group-state-decoder does.",
        ),
    ] = False,
) -> None:
    """Print the batches and records of segments, as kafka-dump-log --offsets-decoder of 3.8+ does.

    Exit code 1 when a segment is damaged; what can be read is printed all the same.

    Example: coordinator-sim log dump out/offsets/__consumer_offsets-12
    """
    damaged = False
    with session_for_uris(paths) as session:
        for path in find_segments([located(path, session) for path in paths]):
            for line in lines_of(path, share_group_state=share_group_state):
                damaged = damaged or is_complaint(line)
                typer.echo(line)
    if damaged:
        raise typer.Exit(1)


@log.command(short_help="Show the last committed offset of each group, topic and partition.")
def offsets(
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Segment files (00000000000000000000.log), or folders that hold them. With "
            "--spark also URIs.",
            metavar="PATH",
        ),
    ],
    group: Annotated[str | None, typer.Option(help="Only this group.", metavar="GROUP")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
    parquet: Annotated[
        str | None,
        typer.Option(
            help="Directory for offsets.parquet and segments.parquet, instead of a table; with "
            "--spark a URI too.",
            metavar="OUT",
        ),
    ] = None,
    spark: Annotated[
        str | None,
        typer.Option(help="Read the segments on Spark, such as local[2].", metavar="MASTER"),
    ] = None,
) -> None:
    """Show the last committed offset of each group, topic and partition, and when it was committed.

    Commits of aborted and of open transactions do not count. Damaged parts of a segment are left
    out and listed, and the exit code is 1 then.

    Example: coordinator-sim log offsets /var/kafka-logs --group orders
    """
    from coordinator_sim.cli.offsets_table import print_offsets, print_offsets_json
    from coordinator_sim.disk.segment_sources import find_logs

    with session_of(spark, [*paths, *([parquet] if parquet else ())]) as session:
        named = [located(path, session) for path in paths]
        find_segments(named)
        found = find_logs(named)
        if spark is None:
            read = _read_here(found, group)
        else:
            from coordinator_sim_reports.offsets import read_on_spark

            read = read_on_spark(found.logs, master=spark, group_id=group)
        if parquet is not None:
            from coordinator_sim.disk.offset_tables import write_offset_tables

            write_offset_tables(located(parquet, session), read)
    if json:
        print_offsets_json(read, found.copies)
    else:
        print_offsets(read, found.copies, written=parquet)
    if any(segment.facts.damage_count for segment in read.segments):
        raise typer.Exit(1)


def _read_here(found: "FoundLogs", group_id: str | None) -> "LastOffsets":
    """Read in this process, with a bar on a terminal."""
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.disk.last_offsets import read_last_offsets

    size = sum(file.stat().st_size for log in found.logs for file in log.files)
    with progress_bar("reading segments", size) as on_progress:
        return read_last_offsets(found.logs, group_id=group_id, on_progress=on_progress)


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
        if not (path.is_file() or path.is_dir()):
            raise ConfigError(f"{path} is neither a file nor a folder; name segments")
        inside = segment_files(path)
        if not inside:
            raise ConfigError(
                f"{path}: no segment in this folder; name a file such as "
                "00000000000000000000.log, a partition's folder or the log directory"
            )
        found += inside
    return found


def lines_of(path: Path, *, share_group_state: bool = False) -> "Iterator[str]":
    """The text of one segment of the offsets log, or of that of share groups' state."""
    from coordinator_sim.log.dump_text import dump_segment, offsets_contents, share_state_contents

    contents = share_state_contents if share_group_state else offsets_contents
    return dump_segment(str(path), path.read_bytes(), contents)


def is_complaint(line: str) -> bool:
    """Whether a line says that something could not be read."""
    return (
        line.endswith("isvalid: false")
        or line.startswith(("Found ", "| records do not parse"))
        or "key: Error at offset" in line
    )
