"""The last committed offsets, and facts of their segments, as Parquet files."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coordinator_sim.disk.last_offsets import LastOffsets
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

OFFSETS_NAME: Final = "offsets.parquet"
SEGMENTS_NAME: Final = "segments.parquet"


def write_offset_tables(directory: Path, read: LastOffsets) -> None:
    """Write `offsets.parquet` and `segments.parquet` into a directory, which may not exist yet.

    Raises:
        ConfigError: The directory is a file.
        OSError: The files cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if directory.exists() and not directory.is_dir():
        raise ConfigError(f"{directory} is a file; name a directory for the tables")
    directory.mkdir(parents=True, exist_ok=True)
    for name, table in ((OFFSETS_NAME, _offsets(read)), (SEGMENTS_NAME, _segments(read))):
        content = pa.BufferOutputStream()
        pq.write_table(table, content, compression="zstd")
        (directory / name).write_bytes(content.getvalue())


def _offsets(read: LastOffsets) -> "pa.Table":
    import pyarrow as pa

    columns: dict[str, Any] = {
        "group_id": pa.array([row.key.group for row in read.commits], pa.string()),
        "topic": pa.array([row.key.topic for row in read.commits], pa.string()),
        "partition": pa.array([row.key.partition for row in read.commits], pa.int32()),
        "offset": pa.array(
            [None if row.is_deleted else row.offset for row in read.commits], pa.int64()
        ),
        "leader_epoch": pa.array([row.leader_epoch for row in read.commits], pa.int32()),
        "metadata": pa.array([row.metadata for row in read.commits], pa.string()),
        "commit_timestamp_ms": pa.array(
            [row.commit_timestamp_ms for row in read.commits], pa.int64()
        ),
        "expire_timestamp_ms": pa.array(
            [row.expire_timestamp_ms for row in read.commits], pa.int64()
        ),
        "record_timestamp_ms": pa.array([row.timestamp_ms for row in read.commits], pa.int64()),
        "log_offset": pa.array([row.log_offset for row in read.commits], pa.int64()),
        "commits": pa.array([row.commit_count for row in read.commits], pa.int64()),
    }
    return pa.table(columns)


def _segments(read: LastOffsets) -> "pa.Table":
    import pyarrow as pa

    facts = [segment.facts for segment in read.segments]
    damage = pa.list_(
        pa.struct({"position": pa.int64(), "bytes": pa.int64(), "reason": pa.string()})
    )
    columns: dict[str, Any] = {
        "path": pa.array([segment.path for segment in read.segments], pa.string()),
        "bytes": pa.array([fact.size for fact in facts], pa.int64()),
        "records": pa.array([fact.record_count for fact in facts], pa.int64()),
        "commits": pa.array([fact.commit_count for fact in facts], pa.int64()),
        "first_offset": pa.array([fact.first_offset for fact in facts], pa.int64()),
        "last_offset": pa.array([fact.last_offset for fact in facts], pa.int64()),
        "coverage": pa.array([fact.coverage for fact in facts], pa.float64()),
        "damaged_places": pa.array([fact.damage_count for fact in facts], pa.int64()),
        "skipped_bytes": pa.array([fact.skipped_bytes for fact in facts], pa.int64()),
        "damage": pa.array(
            [
                [
                    {
                        "position": place.position,
                        "bytes": place.invalid_bytes,
                        "reason": place.reason,
                    }
                    for place in fact.damage
                ]
                for fact in facts
            ],
            damage,
        ),
    }
    return pa.table(columns)
