"""`ingest`: production sources to a run directory that every other command reads."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from coordinator_sim.cli.arguments import DateOrder, TraceFormat, run_folder
from coordinator_sim.cli.uris import located, session_of
from coordinator_sim.cli.window import (
    ANY_TIME,
    WindowOptions,
    as_document,
    takes_window,
    window_in,
    window_line,
    zone_named,
)
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator_sim.ingest.appending import Appending
    from coordinator_sim.ingest.importing import Importing, Options
    from coordinator_sim.ingest.writing import ReadLogs
    from coordinator_sim_reports.log_ingest import SparkLogs

EXIT_BAD_DATA: Final = 1
OutOption = Annotated[
    str | None,
    typer.Option(
        help="Run directory to write, with --spark also a URI; out/ingest/1, 2 ... by default.",
        metavar="DIR",
    ),
]
_KEPT_OPTIONS: Final = {
    "out": "--out",
    "tz": "--tz",
    "cluster": "--cluster",
    "format_": "--format",
    "keep_raw": "--keep-raw",
    **{name: f"--{name}" for name in WindowOptions.__struct_fields__},
}


@takes_window
def ingest(
    context: typer.Context,
    paths: Annotated[
        list[str],
        typer.Argument(
            help="Files and folders: logs, segments, captures; .gz too. With --spark also URIs.",
            metavar="PATH",
        ),
    ],
    out: OutOption = None,
    tz: Annotated[
        str, typer.Option(help="Zone of times that name none, such as Europe/Berlin.")
    ] = "UTC",
    dates: Annotated[DateOrder | None, typer.Option(help="Order in dates as 03/04/2024.")] = None,
    cluster: Annotated[str, typer.Option(help="Name of the cluster the logs are of.")] = "cluster",
    format_: Annotated[TraceFormat, typer.Option("--format", help="Form of the trace.")] = (
        TraceFormat.PARQUET
    ),
    append_to: Annotated[
        str | None, typer.Option(help="Trace to append to, which ingest wrote.", metavar="TRACE")
    ] = None,
    keep_raw: Annotated[
        bool, typer.Option("--keep-raw", help="Keep the original line in each event.")
    ] = False,
    spark: Annotated[
        str | None,
        typer.Option(help="Read logs and segments on Spark, such as local[2].", metavar="MASTER"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON summary instead of tables.")
    ] = False,
    window_options: WindowOptions = ANY_TIME,
) -> None:
    """Read logs, request logs, segments of __consumer_offsets and captures into a trace.

    Each file is recognised by what it holds: logs of brokers, consumers and Connect workers,
    request logs, raw segments, the text of kafka-dump-log and of console formatters, pcap. What two
    of them tell counts once. Exit code 1 when a file could not be used; the others are read.

    With --append-to, files that follow those of a trace are added to it, which are not read again.

    A window of time, in the zone of --tz, is kept in the trace for commands that are given none;
    all events are written, because they tell the state of groups at its start.

    Example: coordinator-sim ingest /var/log/kafka --tz Europe/Berlin --out out/incident
    """
    from coordinator_sim.ingest.importing import Options

    day_first = None if dates is None else dates is DateOrder.DAY_FIRST
    if append_to is not None:
        _check_unset(context)
        importing = _append(paths, append_to, spark, day_first)
        _tell(importing, append_to, {}, json=json, is_appended=True)
    else:
        options = Options(
            zone=zone_named(tz),
            tz=tz,
            cluster=cluster,
            day_first=day_first,
            keep_raw=keep_raw,
            trace_format=format_.value,
            window=window_options.by_name,
        )
        importing = _import(paths, out, options, spark, json=json)
    if importing.bad:
        raise typer.Exit(EXIT_BAD_DATA)


def _import(
    paths: list[str], out: str | None, options: "Options", spark: str | None, *, json: bool
) -> "Importing":
    """Read files into a trace of their own, and print what came of them."""
    with run_folder(None if out is None else Path(out), Path("out/ingest")) as folder:
        out = out or str(folder)
        importing, outside = _write(paths, out, options, spark)
    _tell(importing, out, outside, json=json)
    return importing


def _write(
    paths: list[str], out: str, options: "Options", spark: str | None
) -> "tuple[Importing, dict[str, Any]]":
    """Read files into a trace of their own; what lies outside its window is told, too."""
    from coordinator_sim.ingest.importing import as_named, check_told, prepare
    from coordinator_sim.ingest.writing import write_trace

    outside: dict[str, Any] = {}
    with (
        session_of(spark, (*paths, out)) as session,
        _spark_logs(options, spark) as logs,
    ):
        importing = prepare(
            [located(path, session) for path in paths],
            None if logs is None else logs.contents_of,
            fetch=as_named if logs is None else logs.files.fetch,
            options=options,
        )
        if options.window:
            importing.times_us = []
        if importing.usable:
            replaced = _replaced(located(out, session))
            with replaced as directory, _progress(importing) as advance:
                read_logs = None if logs is None else logs.reader(importing)
                write_trace(importing, options, directory, advance, read_logs)
                check_told(importing)
                outside = _outside(importing, directory)
    return importing, outside


def _outside(importing: "Importing", trace: Path) -> dict[str, Any]:
    """How many events lie outside the window that the trace keeps; empty where it keeps none.

    Raises:
        ConfigError: The window cannot be read, or all lie outside.
    """
    if importing.times_us is None:
        return {}
    from coordinator_sim.runs.run_directory import read_run

    info = read_run(trace).info
    window = window_in(info, ANY_TIME)
    count = sum(
        int(((times < window.from_us) | (times >= window.until_us)).sum())
        for times in importing.times_us
    )
    return as_document(window) | {"outside": count, "shown": window_line(info, window)}


def _replaced(out: Path) -> "AbstractContextManager[Path]":
    """A folder to write, which takes the place of `out` once it is whole."""
    from coordinator_sim.ingest.importing import replaced_when_whole

    if isinstance(out, Path):
        return replaced_when_whole(out)
    from coordinator_sim_reports.published import replaced_behind_uri

    return replaced_behind_uri(out)


def _append(paths: list[str], trace: str, spark: str | None, day_first: bool | None) -> "Importing":
    """Read files and append them to a trace."""
    from coordinator_sim.ingest.appending import Appending
    from coordinator_sim.ingest.importing import as_named

    with session_of(spark, (*paths, trace)) as session:
        folder = located(trace, session)
        appending = Appending(folder, day_first)
        with _spark_logs(appending.options, spark) as logs:
            importing = appending.prepare(
                [located(path, session) for path in paths],
                None if logs is None else logs.contents_of,
                as_named if logs is None else logs.files.fetch,
            )
            if importing.usable:
                read_logs = None if logs is None else logs.reader(importing)
                with _progress(importing) as advance:
                    _write_behind(appending, folder, importing, advance, read_logs)
    return importing


def _write_behind(
    appending: "Appending",
    trace: Path,
    importing: "Importing",
    advance: "Callable[[int], None]",
    read_logs: "ReadLogs | None",
) -> None:
    """Write what is appended, where the trace is."""
    if isinstance(trace, Path):
        appending.write(importing, advance, read_logs)
        return
    from coordinator_sim_reports.published import append_behind_uri

    append_behind_uri(appending, trace, importing, advance, read_logs)


def _progress(importing: "Importing") -> "AbstractContextManager[Callable[[int], None]]":
    from coordinator_sim.cli.progress import progress_bar

    total = sum(one.path.stat().st_size for one in importing.usable)
    return progress_bar("reading", total)


def _check_unset(context: typer.Context) -> None:
    """Refuse options that a trace keeps from its first import.

    Raises:
        ConfigError: One was given.
    """
    for name, option in _KEPT_OPTIONS.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ConfigError(
                f"{option} cannot be given with --append-to: the trace keeps what its first import "
                "was given; leave it out"
            )


def _tell(
    importing: "Importing",
    out: str,
    outside: dict[str, Any],
    *,
    json: bool,
    is_appended: bool = False,
) -> None:
    """Print what came of the files, and the problems of those that could not be used."""
    from coordinator_sim.cli.ingest_summary import print_json, print_tables

    if json:
        print_json(importing, out, outside)
    elif importing.usable:
        print_tables(importing, out, is_appended=is_appended)
        if outside:
            typer.echo(
                f"{outside['shown']} {outside['outside']} events lie outside; they are kept, as "
                "they tell the state of groups."
            )
    elif is_appended and not importing.bad:
        count = importing.known_files + len(importing.files)
        typer.echo(f"Nothing to append: {out} has what these files hold ({count}).")
    for one in importing.bad:
        typer.echo(f"error: {one.name}: {one.problem}", err=True)


def _spark_logs(
    options: "Options", master: str | None
) -> "AbstractContextManager[SparkLogs | None]":
    """What reads logs on Spark; None where no master is named."""
    if master is None:
        return nullcontext()
    from coordinator_sim_reports.log_ingest import logs_on_spark

    return logs_on_spark(options, master=master)
