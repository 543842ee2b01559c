"""The offsets job: last committed offsets of segments, read on Spark."""

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from coordinator_sim.disk.last_offsets import LastOffsets, SegmentReport, later_of
from coordinator_sim.disk.segment_sources import SegmentLog
from coordinator_sim.kafka.records import OffsetCommitKey
from coordinator_sim.log.columns.key_table import KeyTable
from coordinator_sim.log.columns.last_commits import LastCommit, LastCommits, by_name
from coordinator_sim_reports.failures import failure_named
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
        logs: What to read; workers must see the files under the same paths.
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
    size = sum(file.stat().st_size for log in logs for file in log.files)
    tasks = plan_tasks(logs, size // (_TASKS_A_CORE * spark.sparkContext.defaultParallelism) + 1)
    return merged(run_tasks(spark, tasks, group_id), group_id)


def run_tasks(
    spark: "SparkSession", tasks: Sequence[ReadingTask], group_id: str | None = None
) -> list[TaskCommits]:
    """What each task finds, a Spark task each.

    Raises:
        DataError: A worker failed.
    """
    read = partial(read_task, group_id=group_id)
    with failure_named("segments"):
        return spark.sparkContext.parallelize(tasks, len(tasks)).map(read).collect()


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
