"""The offsets job: last committed offsets of segments, read on Spark.

Reads parts of logs inside Spark tasks: last commits of keys come back, not records.

What a task sends is bytes to Spark's JVM, which would spend more on rows of texts than the task
spends on reading.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.disk.last_offsets import LastOffsets, SegmentReport, later_of
from coordinator_sim.disk.segment_sources import SegmentFile, SegmentLog
from coordinator_sim.log.columns.chunks import Wanted
from coordinator_sim.log.columns.commit_columns import NUMBERS, CommitColumns, Texts
from coordinator_sim.log.columns.key_table import KeyTable
from coordinator_sim.log.columns.last_commits import LastCommit, LastCommits, PlacedCommits, by_name
from coordinator_sim.log.columns.pieces import batch_borders
from coordinator_sim.log.columns.segment_columns import SegmentColumns
from coordinator_sim.messages.group_records import OffsetCommitKey
from coordinator_sim_reports.failures import failure_named
from coordinator_sim_reports.fetched_files import FetchedAt, FetchedFiles
from coordinator_sim_reports.session import check_extra, spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SMALLEST_SPLIT: Final = 32 * 1024 * 1024
"""Bytes below which a segment is not split."""

_PLAIN: Final = tuple(name for name in NUMBERS if name not in ("key", "metadata"))
_COMPRESSION: Final = "zstd"
_NOTHING: Final = np.empty(0, np.int64)


class Span(Struct, frozen=True, kw_only=True):
    """A segment, or a part of it between two borders of batches.

    Args:
        path: The file, as workers see it.
        name: The file, as the user named it.
        start: Position of the first batch.
        stop: Position behind the last batch; None for the end of the file.
    """

    path: str
    name: str
    start: int = 0
    stop: int | None = None


class ReadingTask(Struct, frozen=True, kw_only=True):
    """What one Spark task reads: spans of one log, one after another.

    Args:
        number: Tasks of a log are numbered in the order of its offsets.
        log: The log's name.
        spans: In the order of offsets.
    """

    number: int
    log: str
    spans: tuple[Span, ...]


class TaskCommits(Struct, frozen=True, kw_only=True):
    """What one task found.

    Args:
        task: What it read.
        taken: Number of commits that it read.
        settled: Last commits of keys, as an Arrow stream.
        open: Commits of transactions that do not end in the task, as an Arrow stream.
        first_ends: See `LastCommits.first_ends`.
        reports: One a span.
    """

    task: ReadingTask
    taken: int
    settled: bytes
    open: bytes
    first_ends: dict[int, bool]
    reports: tuple[SegmentReport, ...]


def plan_tasks(logs: Iterable[SegmentLog], task_bytes: int) -> list[ReadingTask]:
    """Tasks of about that many bytes; large segments are split at the borders of batches.

    Raises:
        OSError: A segment cannot be read.
    """
    tasks: list[ReadingTask] = []
    for log in logs:
        spans = list(_spans(log, task_bytes))
        size = sum(span_bytes for _, span_bytes in spans)
        share = max(1.0, size / max(1, round(size / task_bytes)))
        shares: dict[int, list[Span]] = {}
        read = 0
        for span, span_bytes in spans:
            shares.setdefault(int((read + span_bytes / 2) / share), []).append(span)
            read += span_bytes
        for some in shares.values():
            tasks.append(ReadingTask(number=len(tasks), log=log.name, spans=tuple(some)))
    return tasks


def _spans(log: SegmentLog, task_bytes: int) -> Iterator[tuple[Span, int]]:
    step = max(task_bytes, SMALLEST_SPLIT)
    for file in log.files:
        path = str(file.resolve())
        with SegmentFile(file) as source:
            borders = batch_borders(source, step) if source.size > step else [0]
            stops = [*borders[1:], None]
            for start, stop in zip(borders, stops, strict=True):
                size = (source.size if stop is None else stop) - start
                yield Span(path=path, name=str(file), start=start, stop=stop), size


def read_task(task: ReadingTask, group_id: str | None) -> TaskCommits:
    """Read the spans of a task.

    Raises:
        OSError: A file cannot be read.
    """
    keys, last = KeyTable(group_id), LastCommits()
    reports = []
    for span in task.spans:
        with SegmentFile(Path(span.path)) as source:
            columns = SegmentColumns(
                source, keys, Wanted(group_id=group_id), start=span.start, stop=span.stop
            )
            for chunk in columns:
                last.add(chunk)
            reports.append(SegmentReport(path=span.name, start=span.start, facts=columns.facts()))
    settled, counts = last.settled()
    unfinished = [part for parts in last.open_parts.values() for part in parts]
    return TaskCommits(
        task=task,
        taken=last.taken,
        settled=_stream([settled], keys.keys, counts),
        open=_stream(unfinished, keys.keys, None),
        first_ends=last.first_ends,
        reports=tuple(reports),
    )


def take_task(found: TaskCommits, keys: KeyTable, last: LastCommits) -> None:
    """Add what a task found to a log's commits; tasks are taken in the order of the log."""
    settled, counts = _columns(found.settled, keys)
    unfinished, _ = _columns(found.open, keys)
    last.follow(found.taken, settled, counts, found.first_ends, unfinished)


def _stream(
    parts: Sequence[PlacedCommits], keys: Sequence[OffsetCommitKey], counts: np.ndarray | None
) -> bytes:
    """Commits as an Arrow stream: keys and metadata as texts, each text once in a dictionary."""
    commits = [part.commits for part in parts]
    arrays: dict[str, Any] = {
        name: np.concatenate([_NOTHING, *(getattr(each, name) for each in commits)])
        for name in ("key", *_PLAIN)
    }
    numbers = np.unique(arrays["key"]).astype(np.int64)
    texts = [each.texts[index] for each in commits for index in each.metadata.tolist()]
    named = [keys[number] for number in numbers.tolist()]
    of_keys = pa.table(
        {
            "group_id": pa.array([key.group for key in named], pa.string()),
            "topic": pa.array([key.topic for key in named], pa.string()),
            "partition": pa.array([key.partition for key in named], pa.int32()),
        }
    ).take(pa.array(np.searchsorted(numbers, arrays["key"])))
    columns = {name: of_keys[name] for name in of_keys.column_names}
    columns |= {name: pa.array(arrays[name].astype(np.int64)) for name in _PLAIN}
    columns["metadata"] = pa.array(texts, pa.string())
    columns["place"] = pa.array(np.concatenate([_NOTHING, *(part.places for part in parts)]))
    if counts is not None:
        columns["commit_count"] = pa.array(counts)
    table = pa.table(columns)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=_COMPRESSION)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _columns(stream: bytes, keys: KeyTable) -> tuple[PlacedCommits, Any]:
    """The commits of a stream, numbered by a key table, and their numbers of commits."""
    with pa.ipc.open_stream(stream) as reader:
        table = reader.read_all()
    names = (table[name].to_pylist() for name in ("group_id", "topic", "partition"))
    numbers = [keys.number_of(OffsetCommitKey(*row)) for row in zip(*names, strict=True)]
    texts = Texts()
    metadata = [texts.index_of(text) for text in table["metadata"].to_pylist()]
    arrays = {name: table[name].to_numpy() for name in _PLAIN}
    arrays["is_tombstone"] = arrays["is_tombstone"].astype(bool)
    commits = CommitColumns(
        **arrays,
        key=np.array(numbers, np.int64),
        metadata=np.array(metadata, np.int64),
        texts=texts.values,
    )
    counts = table["commit_count"].to_numpy() if "commit_count" in table.column_names else None
    return PlacedCommits(commits=commits, places=table["place"].to_numpy()), counts


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
