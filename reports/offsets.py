"""The offsets job: last committed offsets of segments, read on Spark."""

from collections.abc import Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from coordinator_sim.disk.last_offsets import LastOffsets, SegmentReport, later_of
from coordinator_sim.disk.segment_sources import SegmentLog
from coordinator_sim.log.columns.key_table import KeyTable
from coordinator_sim.log.columns.last_commits import LastCommit, LastCommits, by_name
from coordinator_sim.messages.group_records import OffsetCommitKey
from coordinator_sim_reports.failures import failure_named
from coordinator_sim_reports.fetched_files import FetchedAt, FetchedFiles
from coordinator_sim_reports.offset_splits import (
    ReadingTask,
    TaskCommits,
    plan_tasks,
    read_task,
    take_task,
)
from coordinator_sim_reports.session import check_extra, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_A_CORE: Final = 2
"""So many that cores end at about the same time; each more returns the same keys once more."""


def read_on_spark(
    logs: Sequence[SegmentLog], *, master: str, group_id: str | None = None
) -> LastOffsets:
    """Read logs as Spark tasks; the answer is that of `disk.last_offsets`.

    Args:
        logs: What to read; workers must see files that are no URIs under the same paths.
        master: Spark master URL.
        group_id: The only group wanted; None for all.

    Raises:
        DataError: A worker failed, such as one that cannot read a file.
        MissingDependencyError: the `spark` extra or a Java runtime is missing.
    """
    check_extra()
    with spark_session(master, small=True) as spark:
        return last_offsets(spark, logs, group_id=group_id)


def last_offsets(
    spark: "SparkSession", logs: Sequence[SegmentLog], *, group_id: str | None = None
) -> LastOffsets:
    """The last committed offsets of logs; see `read_on_spark`.

    Memory of a worker grows with the keys of a task, that of the driver with the keys of all tasks.
    """
    with TemporaryDirectory(prefix="coordinator-sim-segments-") as scratch:
        fetched = FetchedFiles(spark, Path(scratch))
        here = _fetched(logs, fetched)
        size = sum(file.stat().st_size for log in here for file in log.files)
        share = size // (_TASKS_A_CORE * spark.sparkContext.defaultParallelism) + 1
        found = run_tasks(spark, plan_tasks(here, share), group_id, fetched.at)
    read = merged(found, group_id)
    names = {str(path): name for path, name in fetched.names.items()}
    segments = (replace(each, path=names.get(each.path, each.path)) for each in read.segments)
    return replace(read, segments=tuple(segments))


def _fetched(logs: Sequence[SegmentLog], fetched: FetchedFiles) -> list[SegmentLog]:
    """The logs, with copies on this machine of the segments that are behind URIs."""
    copies = iter(fetched.fetch(file for log in logs for file in log.files))
    return [replace(log, files=tuple(islice(copies, len(log.files)))) for log in logs]


def run_tasks(
    spark: "SparkSession",
    tasks: Sequence[ReadingTask],
    group_id: str | None = None,
    at: FetchedAt = FetchedAt(),  # noqa: B008 - frozen
) -> list[TaskCommits]:
    """What each task finds, a Spark task each.

    Args:
        spark: The session.
        tasks: What to read.
        group_id: The only group wanted; None for all.
        at: Where workers see copies of what is behind URIs.

    Raises:
        DataError: A worker failed.
    """
    read = partial(_read_at, group_id=group_id, at=at)
    with failure_named("segments"):
        return spark.sparkContext.parallelize(tasks, len(tasks)).map(read).collect()


def _read_at(task: ReadingTask, group_id: str | None, at: FetchedAt) -> TaskCommits:
    spans = tuple(replace(span, path=str(at(Path(span.path)))) for span in task.spans)
    return read_task(replace(task, spans=spans), group_id)


def merged(found: Sequence[TaskCommits], group_id: str | None = None) -> LastOffsets:
    """What all tasks found, in the order of their numbers.

    Args:
        found: Results of all tasks of all logs.
        group_id: The only group wanted; None for all.
    """
    in_order = sorted(found, key=_number)
    logs: dict[str, tuple[KeyTable, LastCommits]] = {}
    for each in in_order:
        keys, commits = logs.setdefault(each.task.log, (KeyTable(group_id), LastCommits()))
        take_task(each, keys, commits)
    last: dict[OffsetCommitKey, LastCommit] = {}
    for keys, commits in logs.values():
        later_of(last, commits.rows(keys.keys))
    reports: list[SegmentReport] = [report for each in in_order for report in each.reports]
    return LastOffsets(
        commits=tuple(sorted(last.values(), key=by_name)),
        segments=tuple(reports),
        open_count=sum(commits.open_count for _, commits in logs.values()),
    )


def _number(found: TaskCommits) -> int:
    return found.task.number
