"""The records and outcomes of a commit, plain or in a transaction.

Source: kafka trunk, OffsetMetadataManager.commitOffset and commitTransactionalOffset,
GroupCoordinatorRecordHelpers.newOffsetCommitRecord and newOffsetCommitTombstoneRecord.
"""

from collections.abc import Iterable
from functools import lru_cache

from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.offset_commit import (
    OffsetCommitRequestTopic,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.schema import ZERO_UUID

NO_RETENTION = -1
_EXPIRY_VALUE_VERSION = 1
_TOPIC_ID_VALUE_VERSION = 4
_STORED = {index: OffsetCommitResponsePartition(index, NO_ERROR) for index in range(1_000)}
"""The outcomes of partitions with low numbers: most commits hold no others."""


def commit_records(
    runtime: Runtime,
    group_id: str,
    topics: tuple[OffsetCommitRequestTopic, ...],
    *,
    retention_ms: int = NO_RETENTION,
    with_topic_ids: bool = False,
) -> tuple[tuple[LogRecord, ...], tuple[OffsetCommitResponseTopic, ...]]:
    """One record for each partition whose metadata fits, and one outcome for each partition.

    Args:
        runtime: Its clock, limits and profile.
        group_id: Whose offsets.
        topics: As asked.
        retention_ms: Until the offsets expire, or -1 for the broker's retention.
        with_topic_ids: Whether the topics' ids are stored, by profiles whose records have them.
    """
    now_ms = runtime.wall_ms
    expires_ms = -1 if retention_ms == NO_RETENTION else now_ms + retention_ms
    version = offset_value_version(runtime, expires_ms)
    keeps_ids = with_topic_ids and version >= _TOPIC_ID_VALUE_VERSION
    limit = runtime.config.offset_metadata_max_bytes
    records: list[LogRecord] = []
    results: list[OffsetCommitResponseTopic] = []
    stored = _STORED.get
    for topic in topics:
        name = topic.name
        keys = _keys_of(group_id, name)
        topic_id = topic.topic_id if keeps_ids else ZERO_UUID
        outcomes: list[OffsetCommitResponsePartition] = []
        for p in topic.partitions:
            index, metadata = p.partition_index, p.committed_metadata or ""
            if metadata and is_overlong(metadata, limit):
                outcomes.append(
                    OffsetCommitResponsePartition(index, ErrorCode.OFFSET_METADATA_TOO_LARGE)
                )
                continue
            outcomes.append(stored(index) or OffsetCommitResponsePartition(index, NO_ERROR))
            value = OffsetCommitValue(
                p.committed_offset, p.committed_leader_epoch, metadata, now_ms, expires_ms, topic_id
            )
            key = keys.get(index)
            if key is None:
                key = keys[index] = OffsetCommitKey(group_id, name, index)
            records.append(LogRecord(key, value, version))
        results.append(
            OffsetCommitResponseTopic(name, partitions=tuple(outcomes), topic_id=topic.topic_id)
        )
    by_offset = runtime.profile.counts_committed_offsets
    runtime.counters.offset_commits += len(records) if by_offset else bool(records)
    return tuple(records), tuple(results)


@lru_cache(maxsize=16_384)
def _keys_of(group_id: str, topic: str) -> dict[int, OffsetCommitKey]:  # noqa: ARG001 - by them
    """The keys made before, by partition: a group commits the same ones again and again."""
    return {}


def offset_value_version(runtime: Runtime, expires_ms: int) -> int:
    """The schema version of a stored offset: only version 1 can hold an expiry."""
    return runtime.profile.offset_value_version if expires_ms == -1 else _EXPIRY_VALUE_VERSION


def is_overlong(metadata: str, limit: int) -> bool:
    """Whether the metadata of an offset is longer than `offset.metadata.max.bytes`."""
    return len(metadata) * 2 > limit and java_length(metadata) > limit


def java_length(text: str) -> int:
    """The length in UTF-16 code units, which is what Kafka compares with the limit in bytes."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def offset_tombstones(keys: Iterable[OffsetCommitKey]) -> tuple[LogRecord, ...]:
    """Records that remove these offsets."""
    return tuple(LogRecord(key, None, 0) for key in keys)


def group_tombstone(group_id: str) -> LogRecord:
    """A record that removes a group."""
    return LogRecord(GroupMetadataKey(group_id), None, 0)
