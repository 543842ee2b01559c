"""OffsetCommit and OffsetFetch.

Source: kafka trunk, OffsetMetadataManager.java and ClassicGroup.validateOffsetCommit.
"""

from dataclasses import dataclass

from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.join import create_group
from coordinator_sim.coordinator.offset_store import LATEST
from coordinator_sim.coordinator.runtime import Effect, Parked, Partition, Runtime
from coordinator_sim.coordinator.sessions import start_session
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    FetchedGroup,
    FetchedOffset,
    FetchedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopicResult,
    OffsetFetchGroup,
    PartitionError,
)
from coordinator_sim.protocol.records import (
    LogBatch,
    LogRecord,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.protocol.states import GroupState
from coordinator_sim.trace.events import Event

_EXPIRY_VALUE_VERSION = 1
_TOPIC_ID_VALUE_VERSION = 4
_NOT_FOUND_VERSION = 9
_NO_RETENTION = -1


def handle_commit(
    runtime: Runtime, partition: Partition, request: OffsetCommitRequest, parked: Parked
) -> None:
    """Store offsets. Source: OffsetMetadataManager.commitOffset."""
    error = _validate(runtime, partition, request, parked.api_version)
    if error is not ErrorCode.NONE:
        runtime.refuse(parked, error)
        return
    records, response = _records(runtime, request)
    apply = ApplyOffsets(partition) if records else None
    runtime.submit(partition, parked, Effect(records=records, response=response, apply=apply))


@dataclass(slots=True, eq=False)
class ApplyOffsets:
    """Appended offsets, applied at once and read once they are committed."""

    partition: Partition

    def applied(self, batch: LogBatch) -> None:
        """Put the offsets; readers see them from the batch on."""
        partition = self.partition
        position = batch.base_offset + 1
        if partition.high_watermark >= position:
            position = 0
        put = partition.offsets.put
        for record in batch.records:
            put(record.key, record.value, position)  # type: ignore[arg-type]


def _validate(
    runtime: Runtime, partition: Partition, request: OffsetCommitRequest, api_version: int
) -> ErrorCode:
    """Find the group or create a simple one, and check the member.

    Source: OffsetMetadataManager.validateOffsetCommit and ClassicGroup.validateOffsetCommit.
    """
    group = partition.groups.get(request.group_id)
    generation_id = request.generation_id
    if group is None:
        if generation_id < 0:
            group = create_group(runtime, partition, request.group_id)
            if runtime.tracing:
                group.emit(Event.LIFECYCLE, reason_text="simple group created")
            return ErrorCode.NONE
        if api_version >= _NOT_FOUND_VERSION and runtime.profile.unknown_group_commit_is_not_found:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.DEAD:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    if generation_id < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    return _validate_member(runtime, group, request)


def _validate_member(runtime: Runtime, group: Group, request: OffsetCommitRequest) -> ErrorCode:
    generation_id = request.generation_id
    instance_id = request.group_instance_id
    if generation_id < 0 and not request.member_id and instance_id is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.validate_member(request.member_id, instance_id)
    if error is not ErrorCode.NONE:
        return error
    if generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if group.state is GroupState.AWAITING_SYNC:
        return ErrorCode.REBALANCE_IN_PROGRESS
    # A commit counts as a heartbeat, even if nothing comes of it.
    start_session(runtime, group, group.members[request.member_id])
    return ErrorCode.NONE


def _records(
    runtime: Runtime, request: OffsetCommitRequest
) -> tuple[tuple[LogRecord, ...], OffsetCommitResponse]:
    """One record for each partition whose metadata fits, and one outcome for each partition."""
    now_ms = runtime.now_ms
    retention_ms = request.retention_time_ms
    expires_ms = -1 if retention_ms == _NO_RETENTION else now_ms + retention_ms
    version = runtime.profile.offset_value_version if expires_ms == -1 else _EXPIRY_VALUE_VERSION
    limit = runtime.config.offset_metadata_max_bytes
    group_id = request.group_id
    records: list[LogRecord] = []
    results: list[OffsetCommitTopicResult] = []
    for topic in request.topics:
        name = topic.name
        topic_id = topic.topic_id if version >= _TOPIC_ID_VALUE_VERSION else None
        outcomes: list[PartitionError] = []
        for p in topic.partitions:
            metadata = p.metadata or ""
            if len(metadata) * 2 > limit and _java_length(metadata) > limit:
                outcomes.append(PartitionError(p.partition, ErrorCode.OFFSET_METADATA_TOO_LARGE))
                continue
            outcomes.append(PartitionError(p.partition, ErrorCode.NONE))
            value = OffsetCommitValue(
                offset=p.offset,
                leader_epoch=p.leader_epoch,
                metadata=metadata,
                commit_timestamp_ms=now_ms,
                expire_timestamp_ms=expires_ms,
                topic_id=topic_id,
            )
            records.append(LogRecord(OffsetCommitKey(group_id, name, p.partition), value, version))
        results.append(OffsetCommitTopicResult(name, tuple(outcomes)))
    return tuple(records), OffsetCommitResponse(topics=tuple(results))


def _java_length(text: str) -> int:
    """The length in UTF-16 code units, which is what Kafka compares with the limit in bytes."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def fetch_group(
    partition: Partition, wanted: OffsetFetchGroup, *, sees_uncommitted: bool
) -> FetchedGroup:
    """Read one group's offsets. Source: fetchOffsets and fetchAllOffsets.

    Args:
        partition: The offsets partition of the group.
        wanted: The group and its topics.
        sees_uncommitted: A require-stable fetch is a write that reads everything applied and waits
            until it is committed; any other reads what is committed.
    """
    committed = LATEST if sees_uncommitted else partition.high_watermark
    group = partition.groups.get(wanted.group_id)
    is_visible = group is not None and group.visible_from <= committed
    store = partition.offsets
    if wanted.topics is None:
        if not is_visible:
            return FetchedGroup(group_id=wanted.group_id)
        return FetchedGroup(
            group_id=wanted.group_id,
            topics=tuple(
                FetchedTopic(name, tuple(_fetched(index, value) for index, value in found))
                for name, found in store.all_of(wanted.group_id, committed)
            ),
        )
    topics: list[FetchedTopic] = []
    for topic in wanted.topics:
        offsets: list[FetchedOffset] = []
        for index in topic.partitions:
            key = OffsetCommitKey(wanted.group_id, topic.name, index)
            value = store.get(key, committed) if is_visible else None
            offsets.append(FetchedOffset(index) if value is None else _fetched(index, value))
        topics.append(FetchedTopic(topic.name, tuple(offsets)))
    return FetchedGroup(group_id=wanted.group_id, topics=tuple(topics))


def _fetched(index: int, value: OffsetCommitValue) -> FetchedOffset:
    return FetchedOffset(index, value.offset, value.leader_epoch, value.metadata)
