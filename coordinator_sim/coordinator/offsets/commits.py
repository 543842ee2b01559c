"""OffsetCommit and OffsetFetch of the Java coordinator.

The Scala coordinator's are in `scala.commits`.

Source: kafka trunk, OffsetMetadataManager.java and ClassicGroup.validateOffsetCommit.
"""

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.classic.join import create_group
from coordinator_sim.coordinator.common.timeline import LATEST
from coordinator_sim.coordinator.epoch_offsets import commit_refusal, fetch_refusal
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.modern.share.group import ShareGroup
from coordinator_sim.coordinator.offsets.commit_validation import validate_commit
from coordinator_sim.coordinator.offsets.offset_records import commit_records
from coordinator_sim.coordinator.offsets.offset_store import OffsetStore
from coordinator_sim.coordinator.runtime import Effect, Parked, Partition, Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from coordinator_sim.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from coordinator_sim.messages.schema import ZERO_UUID
from coordinator_sim.trace.events import Event

_NOT_FOUND_VERSION = 9


def handle_commit(
    runtime: Runtime, partition: Partition, request: OffsetCommitRequest, parked: Parked
) -> None:
    """Store offsets. Source: OffsetMetadataManager.commitOffset."""
    error = _validate(runtime, partition, request, parked.context.api_version)
    if error is not NO_ERROR:
        runtime.refuse(parked, error)
        return
    records, results = commit_records(
        runtime,
        request.group_id,
        request.topics,
        retention_ms=request.retention_time_ms,
        with_topic_ids=True,
    )
    response = OffsetCommitResponse(topics=results)
    runtime.submit(partition, parked, Effect(records=records, response=response))


def _validate(
    runtime: Runtime, partition: Partition, request: OffsetCommitRequest, api_version: int
) -> ErrorCode:
    """Find the group or create a simple one, and check the member.

    Source: OffsetMetadataManager.validateOffsetCommit, ClassicGroup.validateOffsetCommit and
    ConsumerGroup.validateOffsetCommit.
    """
    group = partition.groups.get(request.group_id)
    generation_id = request.generation_id_or_member_epoch
    if group is None:
        if generation_id < 0:
            simple = create_group(runtime, partition, request.group_id)
            if runtime.tracing:
                simple.emit(Event.LIFECYCLE, reason_text="simple group created")
            return NO_ERROR
        if api_version >= _NOT_FOUND_VERSION:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    if isinstance(group, Group):
        return validate_commit(runtime, request, group)
    if isinstance(group, ShareGroup):
        return ErrorCode.GROUP_ID_NOT_FOUND
    return commit_refusal(runtime, group, request, api_version)


def fetch_group(
    partition: Partition, wanted: OffsetFetchRequestGroup, *, require_stable: bool
) -> OffsetFetchResponseGroup:
    """Read one group's offsets. Source: fetchOffsets and fetchAllOffsets.

    Args:
        partition: The offsets partition of the group.
        wanted: The group and its topics.
        require_stable: Such a fetch is a write that reads everything applied and waits until it is
            committed; any other reads what is committed.
    """
    committed = LATEST if require_stable else partition.high_watermark
    store = partition.offsets
    group = partition.group_as_of(wanted.group_id, committed)
    is_visible = isinstance(group, Group)
    if not is_visible and isinstance(group, ConsumerGroup | StreamsGroup):
        error = fetch_refusal(group, wanted, committed)
        if error is not NO_ERROR:
            return OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=error)
        is_visible = True
    # An open transaction shows to those only who ask for stable offsets.
    is_open = require_stable and store.has_open_transactions(wanted.group_id)
    if wanted.topics is not None:
        topics = [
            _read_topic(
                store,
                wanted.group_id,
                topic,
                position=committed if is_visible else None,
                shows_open=is_open,
            )
            for topic in wanted.topics
        ]
    elif is_visible:
        topics = _read_all(store, wanted.group_id, committed, shows_open=is_open)
    else:
        topics = []
    return OffsetFetchResponseGroup(group_id=wanted.group_id, topics=tuple(topics))


def _read_topic(
    store: OffsetStore,
    group_id: str,
    topic: OffsetFetchRequestTopics,
    *,
    position: int | None,
    shows_open: bool,
) -> OffsetFetchResponseTopics:
    """The partitions asked for. Source: OffsetMetadataManager.fetchOffsets.

    Args:
        store: The offsets of the group's partition.
        group_id: Whose offsets.
        topic: Its name, id and partitions.
        position: The log position to read at; None for a group that is not there to the reader.
        shows_open: Whether an offset of an open transaction is told to be unstable.
    """
    offsets: list[OffsetFetchResponsePartitions] = []
    find = None
    if position is not None:
        table = store.offsets_of(group_id, topic.name, position)
        find = None if table is None else table.reader(position)
    names_id = topic.topic_id != ZERO_UUID
    for index in topic.partition_indexes:
        if shows_open and store.is_open(OffsetCommitKey(group_id, topic.name, index)):
            offsets.append(unstable(index))
            continue
        stored = None if find is None else find(index)
        if stored is None or (names_id and _is_of_another(stored[0].topic_id, topic.topic_id)):
            offsets.append(OffsetFetchResponsePartitions(index, committed_offset=-1))
            continue
        value = stored[0]
        offsets.append(
            OffsetFetchResponsePartitions(index, value.offset, value.leader_epoch, value.metadata)
        )
    return OffsetFetchResponseTopics(topic.name, partitions=tuple(offsets))


def _read_all(
    store: OffsetStore, group_id: str, position: int, *, shows_open: bool
) -> list[OffsetFetchResponseTopics]:
    """Every committed offset of a group. Source: OffsetMetadataManager.fetchAllOffsets."""
    return [
        OffsetFetchResponseTopics(
            name,
            partitions=tuple(
                unstable(index)
                if shows_open and store.is_open(OffsetCommitKey(group_id, name, index))
                else _fetched(index, value)
                for index, value in found
            ),
        )
        for name, found in store.all_of(group_id, position)
    ]


def _is_of_another(stored: bytes, asked: bytes) -> bool:
    """Whether an offset is of an earlier topic of that name. Source: isMismatchedTopicId."""
    return stored not in (ZERO_UUID, asked)


def unstable(index: int) -> OffsetFetchResponsePartitions:
    """The answer for an offset that may yet become another."""
    return OffsetFetchResponsePartitions(
        index, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT, committed_offset=-1
    )


def _fetched(index: int, value: OffsetCommitValue) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(index, value.offset, value.leader_epoch, value.metadata)
