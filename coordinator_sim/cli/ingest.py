"""`ingest`: production sources to a run directory that every other command reads."""

from contextlib import AbstractContextManager, nullcontext
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim.cli.arguments import TraceFormat
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from coordinator_sim.ingest.importing import Importing, Options
    from coordinator_sim_reports.log_ingest import SparkLogs

EXIT_BAD_DATA: Final = 1


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Files and folders: logs, segments, captures; .gz too.", metavar="PATH"
        ),
    ],
    out: Annotated[Path, typer.Option(help="Run directory to write.")] = Path("out/ingest"),
    tz: Annotated[
        str, typer.Option(help="Zone of times that name none, such as Europe/Berlin.")
    ] = "UTC",
    cluster: Annotated[str, typer.Option(help="Name of the cluster the logs are of.")] = "cluster",
    format_: Annotated[TraceFormat, typer.Option("--format", help="Form of the trace.")] = (
        TraceFormat.PARQUET
    ),
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Keep the original line in each event.")
    ] = False,
    spark: Annotated[
        str | None,
        typer.Option(
            help="Read logs of brokers and clients on Spark, such as local[2].", metavar="MASTER"
        ),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON summary instead of tables.")
    ] = False,
) -> None:
    """Read logs, request logs, segments of __consumer_offsets and captures into a trace.

    Each file is recognised by what it holds: logs of brokers, consumers and Connect workers,
    request logs, raw segments, the text of kafka-dump-log and of console formatters, pcap. What
    two of them tell counts once. Exit code 1 when a file could not be used; the others are read
    all the same.

    Example: coordinator-sim ingest /var/log/kafka --tz Europe/Berlin --out out/incident
    """
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.ingest.importing import (
        Options,
        check_told,
        prepare,
        replaced_when_whole,
        write_trace,
    )

    options = Options(
        zone=zone_named(tz),
        tz=tz,
        cluster=cluster,
        keep_raw=keep_raw,
        trace_format=format_.value,
    )
    with _spark_logs(options, spark) as logs:
        importing = prepare(paths, None if logs is None else logs.contents_of)
        if importing.usable:
            total = sum(one.path.stat().st_size for one in importing.usable)
            with (
                replaced_when_whole(out) as directory,
                progress_bar("reading", total) as advance,
            ):
                read_logs = None if logs is None else logs.reader(importing)
                write_trace(importing, options, directory, advance, read_logs)
                check_told(importing)
    _tell(importing, out, json=json)
    if importing.bad:
        raise typer.Exit(EXIT_BAD_DATA)


def _tell(importing: "Importing", out: Path, *, json: bool) -> None:
    """Print what came of the files, and the problems of those that could not be used."""
    from coordinator_sim.cli.ingest_summary import print_json, print_tables

    if json:
        print_json(importing, out)
    elif importing.usable:
        print_tables(importing, out)
    for one in importing.bad:
        typer.echo(f"error: {one.path}: {one.problem}", err=True)


def _spark_logs(
    options: "Options", master: str | None
) -> "AbstractContextManager[SparkLogs | None]":
    """What reads logs on Spark; None where no master is named."""
    if master is None:
        return nullcontext()
    from coordinator_sim_reports.log_ingest import logs_on_spark

    return logs_on_spark(options, master=master)


def zone_named(name: str) -> tzinfo:
    """The time zone of an IANA name.

    Raises:
        ConfigError: No such zone is known here.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"--tz {name!r}: no such time zone; use an IANA name such as UTC or America/New_York"
        ) from error
