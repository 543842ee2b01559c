"""The last committed offsets that segments on disk hold, read in one process."""

from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.disk.segment_sources import SegmentFile, SegmentLog
from coordinator_sim.log.columns.chunks import Wanted
from coordinator_sim.log.columns.key_table import KeyTable
from coordinator_sim.log.columns.last_commits import LastCommit, LastCommits, by_name
from coordinator_sim.log.columns.segment_columns import SegmentColumns, SegmentFacts
from coordinator_sim.messages.group_records import OffsetCommitKey


class SegmentReport(Struct, frozen=True, kw_only=True):
    """Facts about one segment, or about a range of it.

    Args:
        path: The file.
        start: Position at which the reading began.
        facts: Counts, offsets and damage of the bytes read.
    """

    path: str
    start: int
    facts: SegmentFacts


class LastOffsets(Struct, frozen=True, kw_only=True):
    """What the segments say.

    Args:
        commits: The last record of each key, by group, topic and partition.
        segments: One a segment, in the order of the logs.
        open_count: Records of transactions that do not end in what was read; they do not count.
    """

    commits: tuple[LastCommit, ...]
    segments: tuple[SegmentReport, ...]
    open_count: int


def read_last_offsets(
    logs: Iterable[SegmentLog],
    *,
    group_id: str | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> LastOffsets:
    """Read logs one after another; memory grows with the keys, not with the segments.

    Where several logs hold a key, as files of two clusters may, the later record counts.

    Args:
        logs: What to read.
        group_id: The only group wanted; None for all.
        on_progress: Told the bytes read so far, now and then.

    Raises:
        OSError: A file cannot be read.
    """
    last: dict[OffsetCommitKey, LastCommit] = {}
    segments: list[SegmentReport] = []
    open_count = read_bytes = 0
    for log in logs:
        keys, commits = KeyTable(group_id), LastCommits()
        for file in log.files:
            facts = _read_segment(file, keys, commits, group_id)
            segments.append(SegmentReport(path=str(file), start=0, facts=facts))
            read_bytes += facts.size
            if on_progress is not None:
                on_progress(read_bytes)
        open_count += commits.open_count
        later_of(last, commits.rows(keys.keys))
    return LastOffsets(
        commits=tuple(sorted(last.values(), key=by_name)),
        segments=tuple(segments),
        open_count=open_count,
    )


def _read_segment(
    path: Path, keys: KeyTable, commits: LastCommits, group_id: str | None
) -> SegmentFacts:
    with SegmentFile(path) as source:
        columns = SegmentColumns(source, keys, Wanted(group_id=group_id))
        for chunk in columns:
            commits.add(chunk)
        return columns.facts()


def later_of(last: dict[OffsetCommitKey, LastCommit], rows: Iterable[LastCommit]) -> None:
    """Add the rows of another log: of two records of a key the later one, with all commits."""
    for row in rows:
        known = last.get(row.key)
        if known is None:
            last[row.key] = row
            continue
        total = known.commit_count + row.commit_count
        last[row.key] = replace(max(known, row, key=_instant), commit_count=total)


def _instant(row: LastCommit) -> tuple[int, int]:
    return row.timestamp_ms, row.log_offset
