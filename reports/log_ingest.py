"""Reads logs, request logs and segments inside Spark tasks: events come back.

A log of a broker or client is read in ranges of bytes, a request log is a task, and so are all
segments of a partition. What the events of all files mean together is settled by the driver, as for
an import without Spark.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import structs

from coordinator_sim.errors import DataError
from coordinator_sim.ingest import ranges
from coordinator_sim.ingest.elsewhere import (
    ReadRequests,
    read_partition,
    read_request_log,
    unpacked,
)
from coordinator_sim.ingest.importing import Importing, Options
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import Kind
from coordinator_sim.ingest.readers import Ready, TimedExchanges
from coordinator_sim.ingest.segments import PartitionLog
from coordinator_sim.logtext.reading.merging import TimedLog
from coordinator_sim.logtext.reading.repeats import ContentPart
from coordinator_sim.trace.batches import EventBatch, Names
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim_reports.failures import failure_named
from coordinator_sim_reports.fetched_files import FetchedAt, FetchedFiles
from coordinator_sim_reports.session import check_extra, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_Task = TypeVar("_Task")
_Found = TypeVar("_Found")
SMALLEST_RANGE: Final = 8 * 1024 * 1024
"""Bytes below which a log is not split."""
_LARGEST_RANGE: Final = 64 * 1024 * 1024
_TASKS_A_CORE: Final = 4
"""So many that cores end at about the same time."""
_WAVES_A_CORE: Final = 8
"""Ranges of a core whose events are on their way to the driver at once: they bound its memory."""


@contextmanager
def logs_on_spark(
    options: Options, *, master: str, range_bytes: int | None = None
) -> Iterator["SparkLogs"]:
    """Yield a reader of logs; the events that it gives are kept until the end.

    Args:
        options: How to read.
        master: Spark master URL. Workers must see logs that are no URIs under the same paths.
        range_bytes: Size of a range; None for one that fits the logs and the cores.

    Raises:
        MissingDependencyError: the `spark` extra or a Java runtime is missing.
    """
    check_extra()
    with (
        TemporaryDirectory(prefix="coordinator-sim-events-") as scratch,
        spark_session(master, small=True) as spark,
    ):
        yield SparkLogs(spark, options, Path(scratch), range_bytes)


class SparkLogs:
    """Reads logs as Spark tasks.

    Args:
        spark: The session.
        options: How to read.
        scratch: Where events are kept.
        range_bytes: Size of a range; None for one that fits the logs and the cores.

    Attributes:
        files: Brings files here that are behind URIs.
    """

    def __init__(
        self, spark: "SparkSession", options: Options, scratch: Path, range_bytes: int | None
    ) -> None:
        self._spark = spark
        self._options = options
        self._scratch = scratch
        self._range_bytes = range_bytes
        self.files = FetchedFiles(spark, scratch)

    def contents_of(self, paths: list[Path]) -> Iterator[list[ContentPart]]:
        """Yield what each log has in common with copies of its lines, for `prepare`.

        Raises:
            DataError: a worker failed, or all were lost.
        """
        size = self._size_of_range(paths)
        logs = [ranges.ranges_of(path, str(path), size) for path in paths]
        read = partial(_content_at, at=self.files.at)
        found = run_tasks(self._spark, [part for log in logs for part in log], read)
        for log in logs:
            yield list(islice(found, len(log)))

    def reader(self, importing: Importing) -> Callable[[Names], Ready]:
        """Return what `write_trace` reads the files of an import by.

        They get their counts and problems when they are read.

        Raises:
            DataError: a worker failed, or all were lost.
        """
        return partial(self._read, importing)

    def _read(self, importing: Importing, names: Names) -> Ready:
        return Ready(
            self._read_logs(importing, names),
            self._read_requests(importing),
            self._read_partitions,
        )

    def _read_requests(self, importing: Importing) -> dict[str, TimedExchanges]:
        asked = [one for one in importing.usable if Kind.REQUEST_LOG in one.kinds]
        tasks = [(one.path.resolve(), one) for one in asked]
        read = partial(
            _requests_at,
            at=self.files.at,
            zone=self._options.zone,
            keep_raw=self._options.keep_raw,
        )
        found: dict[str, TimedExchanges] = {}
        for one, told in zip(asked, run_tasks(self._spark, tasks, read, 1), strict=True):
            one.summary.add(told.summary)
            one.problem = told.problem
            kept = self._scratch / f"requests-{len(found)}"
            kept.write_bytes(told.exchanges)
            found[one.name] = TimedExchanges(told.first_us, told.wait_us, unpacked(kept))
        return found

    def _read_partitions(self, logs: list[PartitionLog]) -> list[Iterator[TraceEvent]]:
        """Read the segments that were added to partitions, a task a partition."""
        events: list[Iterator[TraceEvent]] = []
        for log, (after, told) in zip(
            logs,
            run_tasks(
                self._spark, logs, partial(read_partition, root=Path.cwd(), at=self.files.at)
            ),
            strict=True,
        ):
            log.take(after)
            kept = self._scratch / f"partition-{len(events)}"
            kept.write_bytes(told)
            events.append(unpacked(kept))
        return events

    def _read_logs(self, importing: Importing, names: Names) -> dict[str, TimedLog]:
        logs = [one for one in importing.usable if one.kind is Kind.LOG]
        size = self._size_of_range([one.path for one in logs])
        overlaps = importing.contents.overlaps
        parts = [
            ranges.ranges_of(
                *(one.path, one.name, size),
                keep_raw=self._options.keep_raw or one.name in overlaps,
                day_first=one.day_first,
            )
            for one in logs
        ]
        zone, kept = self._options.zone, Kept(self._scratch, names)
        read = partial(_range_at, at=self.files.at, zone=zone)
        run = partial(run_tasks, self._spark, read=read)
        found = ranges.RangeReading(parts, zone, run, kept.keep).read()
        return {one.name: _timed(one, log, kept) for one, log in zip(logs, found, strict=True)}

    def _size_of_range(self, paths: Sequence[Path]) -> int:
        if self._range_bytes is not None:
            return self._range_bytes
        size = sum(path.stat().st_size for path in paths)
        share = size // (_TASKS_A_CORE * self._spark.sparkContext.defaultParallelism)
        return min(max(share, SMALLEST_RANGE), _LARGEST_RANGE)


def _content_at(part: ranges.LogRange, at: FetchedAt) -> ContentPart:
    return ranges.content_of(_part_at(part, at))


def _range_at(task: ranges.RangeTask, at: FetchedAt, zone: tzinfo) -> ranges.ReadRange:
    return ranges.read_range(replace(task, part=_part_at(task.part, at)), zone)


def _part_at(part: ranges.LogRange, at: FetchedAt) -> ranges.LogRange:
    return structs.replace(part, path=str(at(Path(part.path))))


def _requests_at(
    task: tuple[Path, Import], at: FetchedAt, zone: tzinfo, *, keep_raw: bool
) -> ReadRequests:
    path, named = task
    return read_request_log((at(path), named), zone, keep_raw=keep_raw)


class Kept:
    """The events of ranges, in files of the driver.

    Args:
        directory: Where they are; it is there until the trace is written.
        names: Numbers of groups and files, of the whole import.
    """

    def __init__(self, directory: Path, names: Names) -> None:
        self._directory = directory
        self._names = names

    def keep(self, number: int, events: bytes) -> None:
        """Keep the events of a range; older ones of the same number are replaced."""
        (self._directory / str(number)).write_bytes(events)

    def batches(self, log: ranges.ReadLog) -> Iterator[EventBatch]:
        """Yield the events of a log, in line order."""
        for number, line_count in log.parts:
            path = self._directory / str(number)
            yield from ranges.events_of(path.read_bytes(), self._names, line_count)


def _timed(one: Import, log: ranges.ReadLog, kept: Kept) -> TimedLog:
    one.summary, one.problem = log.summary, log.problem
    return TimedLog(log.first_us, kept.batches(log))


def run_tasks(
    spark: "SparkSession",
    tasks: Sequence[_Task],
    read: Callable[[_Task], _Found],
    waves_a_core: int = _WAVES_A_CORE,
    what: str = "logs",
) -> Iterator[_Found]:
    """Yield what came of each task, in their order, a Spark task each and some at a time.

    Args:
        spark: The session.
        tasks: What to read.
        read: Reads one; called in a worker.
        waves_a_core: Tasks of a core whose results are in the driver's memory at once.
        what: What they read, for the advice where it is not there.

    Raises:
        DataError: a worker failed, or all were lost.
    """
    context = spark.sparkContext
    wave = waves_a_core * context.defaultParallelism
    for start in range(0, len(tasks), wave):
        some = tasks[start : start + wave]
        with failure_named(what):
            found = context.parallelize(some, len(some)).map(read).collect()
        if len(found) != len(some):
            raise DataError("Spark gave other results than it was asked for; run the command again")
        yield from found
