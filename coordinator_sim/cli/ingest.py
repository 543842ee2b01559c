"""`ingest`: production logs to a run directory that every other command reads."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim import __version__
from coordinator_sim.cli.arguments import TraceFormat
from coordinator_sim.cli.imports import Import
from coordinator_sim.errors import ConfigError, DataError

if TYPE_CHECKING:
    from numpy import bool_
    from numpy.typing import NDArray

    from coordinator_sim.logtext.reading.repeats import LogContents
    from coordinator_sim.trace.batches import EventBatch, Names
    from coordinator_sim.trace.events import RunInfo

EXIT_BAD_DATA: Final = 1


@dataclass(slots=True)
class Progress:
    """Bytes used of all files together."""

    advance: Callable[[int], None]
    done: dict[Path, int] = field(default_factory=dict)

    def of(self, path: Path) -> Callable[[int], None]:
        """What the reader of one file tells its progress to."""

        def note(used: int) -> None:
            self.done[path] = used
            self.advance(sum(self.done.values()))

        return note


def ingest(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Log files and folders of them; .gz is read as it is.", metavar="PATH"),
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
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON summary instead of tables.")
    ] = False,
) -> None:
    """Read the logs of brokers, consumers and Connect workers into a trace.

    Exit code 1 when a file could not be used; the others are read all the same.

    Example: coordinator-sim ingest /var/log/kafka --tz Europe/Berlin --out out/incident
    """
    from coordinator_sim.cli.ingest_summary import print_json, print_tables

    zone = zone_named(tz)
    imports = prepare(paths)
    info = run_info(imports, tz, cluster)
    contents = compare_contents(imports)
    usable = [one for one in imports if one.problem is None and one.copy_of is None]
    if usable:
        with replaced_when_whole(out) as directory:
            write_trace(
                usable,
                zone,
                info,
                contents,
                out=directory,
                trace_format=format_,
                keep_raw=keep_raw,
            )
            check_told(imports)
    bad = [one for one in imports if one.problem is not None]
    if json:
        print_json(imports, out)
    elif usable:
        print_tables(imports, out)
    for one in bad:
        typer.echo(f"error: {one.path}: {one.problem}", err=True)
    if bad:
        raise typer.Exit(EXIT_BAD_DATA)


@contextmanager
def replaced_when_whole(out: Path) -> Iterator[Path]:
    """A directory beside `out` to write a trace to, which takes its place when the block is done.

    An older trace in `out` stays as it was until then, and for good when the block fails or is
    interrupted.

    Raises:
        ConfigError: `out` is a file, or holds something that is no trace.
    """
    from coordinator_sim.runs.run_directory import check_replaceable

    check_replaceable(out)
    target = out.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as scratch:
        fresh = Path(scratch) / "fresh"
        yield fresh
        if target.exists():
            target.rename(Path(scratch) / "older")
        fresh.rename(target)


def check_told(imports: list[Import]) -> None:
    """Refuse logs that all could be read and hold nothing of a coordinator.

    Raises:
        DataError: No file has an event, and none has a problem that would explain it.
    """
    if any(one.problem is not None or one.summary.events for one in imports):
        return
    raise DataError(
        f"no line of a group coordinator in {len(imports)} file(s); a broker logs them at INFO "
        "under kafka.coordinator.group (3.x) or org.apache.kafka.coordinator.group (4.x)"
    )


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


def prepare(paths: list[Path]) -> list[Import]:
    """One import per file, with the problem of those that cannot be read.

    Raises:
        ConfigError: A path does not exist.
    """
    from coordinator_sim.cli.log_files import find_logs, why_unreadable
    from coordinator_sim.logtext.reading.summary import IngestSummary

    return [
        Import(path, IngestSummary(), problem=why_unreadable(path)) for path in find_logs(paths)
    ]


def compare_contents(imports: list[Import]) -> "LogContents":
    """Mark the copies among the logs, and find those that share lines."""
    from coordinator_sim.cli.log_files import LogFileReader
    from coordinator_sim.logtext.reading.repeats import LogContents

    contents = LogContents()
    readable = [one for one in imports if one.problem is None]
    if len(readable) > 1:
        for one in readable:
            contents.add(str(one.path), LogFileReader(one.path, lambda _used: None).lines())
            one.copy_of = contents.copy_of.get(str(one.path))
    return contents


def run_info(imports: list[Import], tz: str, cluster: str) -> "RunInfo":
    """What the trace shares; the same files and options give the same trace id."""
    from coordinator_sim.trace.events import RunInfo, Source

    files = [(str(one.path), one.path.stat().st_size) for one in imports]
    digest = hashlib.sha256(repr((files, tz, cluster)).encode())
    return RunInfo(
        trace_id=digest.hexdigest()[:32],
        source=Source.BROKER_LOG,
        cluster_id=cluster,
        version=__version__,
        profile="ingested",
        options={"tz": tz},
    )


def write_trace(
    imports: list[Import],
    zone: tzinfo,
    info: "RunInfo",
    contents: "LogContents",
    *,
    out: Path,
    trace_format: TraceFormat,
    keep_raw: bool,
) -> None:
    """Read all files side by side, in time order, into the run directory.

    Raises:
        DataError: The logs are those of two clusters.
    """
    from coordinator_sim.cli.log_files import LogFileReader
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.logtext.reading.merging import TimedLog, merge_logs
    from coordinator_sim.logtext.reading.repeats import OneCluster, RepeatedLines
    from coordinator_sim.runs.run_directory import RunDirectoryWriter
    from coordinator_sim.trace.batches import Names
    from coordinator_sim.trace.history import steadied_trace

    total = sum(one.path.stat().st_size for one in imports)
    with (
        progress_bar("reading logs", total) as advance,
        RunDirectoryWriter(out, info, format=trace_format.value, keep_raw=keep_raw) as writer,
    ):
        progress = Progress(advance)
        repeats = RepeatedLines(contents.overlaps)
        by_name = {str(one.path): one for one in imports}
        cluster = OneCluster()

        def are_repeated(batch: "EventBatch") -> "NDArray[bool_]":
            repeated = repeats.are_repeated(batch)
            for event in batch.take(repeated).events() if repeated.any() else ():
                by_name[event.source_ref or ""].summary.count_repeated(event)
            return repeated

        names = Names()
        logs = []
        for one in imports:
            one.reader = LogFileReader(one.path, progress.of(one.path))
            raw = keep_raw or str(one.path) in contents.overlaps
            first_us = first_time(one.path, zone)
            logs.append(TimedLog(first_us, batches_of(one, zone, names, keep_raw=raw)))
        is_alone = len(imports) == 1
        merged = merge_logs(logs, are_repeated=None if is_alone else are_repeated)
        for batch in steadied_trace(merged):
            cluster.check(batch)
            writer.record_batch(batch)
    for one in imports:
        if one.reader is not None:
            one.problem = one.reader.problem
            one.summary.cut_lines = one.reader.cut_count


def batches_of(
    one: Import, zone: tzinfo, names: "Names", *, keep_raw: bool
) -> "Iterator[EventBatch]":
    """The events of one file; it is opened with the first."""
    from coordinator_sim.logtext.reading.block_reader import BlockReader
    from coordinator_sim.logtext.reading.broker_log import BrokerLog

    if one.reader is None:
        return
    log = BrokerLog(str(one.path), zone, summary=one.summary, keep_raw=keep_raw)
    yield from BlockReader(log, names).read(one.reader.blocks())


def first_time(path: Path, zone: tzinfo) -> int:
    """When a file's first event was, in microseconds; 0 for a file without events."""
    from coordinator_sim.cli.log_files import LogFileReader
    from coordinator_sim.logtext.reading.broker_log import BrokerLog

    reader = LogFileReader(path, lambda _used: None)
    first = next(BrokerLog(str(path), zone).read(reader.lines()), None)
    return 0 if first is None else first.ts_us
