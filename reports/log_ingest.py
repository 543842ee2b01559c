"""Reads logs of brokers and clients inside Spark tasks: ranges of bytes come back as events.

What the events of all logs mean together is settled by the driver, as for an import without Spark.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import tzinfo
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from coordinator_sim.errors import DataError
from coordinator_sim.ingest.importing import Importing, Options
from coordinator_sim.ingest.imports import Import
from coordinator_sim.ingest.kinds import Kind
from coordinator_sim.ingest.ranges import (
    RangeReading,
    RangeTask,
    ReadLog,
    ReadRange,
    events_of,
    ranges_of,
    read_range,
)
from coordinator_sim.logtext.reading.merging import TimedLog
from coordinator_sim.trace.batches import EventBatch, Names
from coordinator_sim_reports.failures import failure_named
from coordinator_sim_reports.session import check_extra, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALLEST_RANGE: Final = 8 * 1024 * 1024
"""Bytes below which a log is not split."""
_LARGEST_RANGE: Final = 64 * 1024 * 1024
_TASKS_A_CORE: Final = 4
"""So many that cores end at about the same time."""
_WAVES_A_CORE: Final = 8
"""Ranges of a core whose events are on their way to the driver at once: they bound its memory."""


@contextmanager
def logs_on_spark(
    importing: Importing, options: Options, *, master: str, range_bytes: int | None = None
) -> Iterator[Callable[[Names], dict[str, TimedLog]]]:
    """Yield what `write_trace` reads the logs of an import by; their events are kept until the end.

    Args:
        importing: Its logs get their counts and problems when they are read.
        options: How to read.
        master: Spark master URL. Workers must see the logs under the same paths.
        range_bytes: Size of a range; None for one that fits the logs and the cores.

    Raises:
        DataError: a worker failed, or all were lost.
        MissingDependencyError: the `spark` extra or a Java runtime is missing.
    """
    check_extra()
    with TemporaryDirectory(prefix="coordinator-sim-events-") as scratch:

        def read(names: Names) -> dict[str, TimedLog]:
            with spark_session(master, small=True) as spark:
                return _read(spark, importing, options, Kept(Path(scratch), names), range_bytes)

        yield read


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

    def batches(self, log: ReadLog) -> Iterator[EventBatch]:
        """Yield the events of a log, in line order."""
        for number, line_count in log.parts:
            path = self._directory / str(number)
            yield from events_of(path.read_bytes(), self._names, line_count)


def _read(
    spark: "SparkSession",
    importing: Importing,
    options: Options,
    kept: Kept,
    range_bytes: int | None,
) -> dict[str, TimedLog]:
    logs = [one for one in importing.usable if one.kind is Kind.LOG]
    if not logs:
        return {}
    cores = spark.sparkContext.defaultParallelism
    size = sum(one.path.stat().st_size for one in logs)
    fitting = min(max(size // (_TASKS_A_CORE * cores), SMALLEST_RANGE), _LARGEST_RANGE)
    parts = [
        ranges_of(
            *(one.path, str(one.path), range_bytes or fitting),
            keep_raw=options.keep_raw or str(one.path) in importing.contents.overlaps,
        )
        for one in logs
    ]
    run = partial(run_ranges, spark, zone=options.zone)
    found = RangeReading(parts, options.zone, run, kept.keep).read()
    return {str(one.path): _timed(one, log, kept) for one, log in zip(logs, found, strict=True)}


def _timed(one: Import, log: ReadLog, kept: Kept) -> TimedLog:
    one.summary, one.problem = log.summary, log.problem
    return TimedLog(log.first_us, kept.batches(log))


def run_ranges(
    spark: "SparkSession", tasks: Sequence[RangeTask], *, zone: tzinfo
) -> Iterator[ReadRange]:
    """Yield what came of each range, a Spark task each, some at a time.

    Raises:
        DataError: a worker failed, or all were lost.
    """
    context = spark.sparkContext
    wave = _WAVES_A_CORE * context.defaultParallelism
    read = partial(read_range, zone=zone)
    for start in range(0, len(tasks), wave):
        some = tasks[start : start + wave]
        with failure_named("logs"):
            found = context.parallelize(some, len(some)).map(read).collect()
        if [one.number for one in found] != [task.number for task in some]:
            raise DataError("Spark gave other ranges than it was asked for; run the command again")
        yield from found
