"""OffsetCommit and OffsetFetch of the Java coordinator.

The Scala coordinator's are in `scala_commits`.

Source: kafka trunk, OffsetMetadataManager.java and ClassicGroup.validateOffsetCommit.
"""

from coordinator_sim.coordinator.commit_validation import validate_commit
from coordinator_sim.coordinator.join import create_group
from coordinator_sim.coordinator.offset_records import commit_records
from coordinator_sim.coordinator.offset_store import OffsetStore
from coordinator_sim.coordinator.runtime import Effect, Parked, Partition, Runtime
from coordinator_sim.coordinator.timeline import LATEST
from coordinator_sim.protocol.errors import NO_ERROR, ErrorCode
from coordinator_sim.protocol.messages import (
    FetchedGroup,
    FetchedOffset,
    FetchedTopic,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchGroup,
    OffsetFetchTopic,
)
from coordinator_sim.protocol.records import OffsetCommitKey, OffsetCommitValue
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

    Source: OffsetMetadataManager.validateOffsetCommit and ClassicGroup.validateOffsetCommit.
    """
    group = partition.groups.get(request.group_id)
    generation_id = request.generation_id
    if group is None:
        if generation_id < 0:
            group = create_group(runtime, partition, request.group_id)
            if runtime.tracing:
                group.emit(Event.LIFECYCLE, reason_text="simple group created")
            return NO_ERROR
        if api_version >= _NOT_FOUND_VERSION and runtime.profile.unknown_group_commit_is_not_found:
            return ErrorCode.GROUP_ID_NOT_FOUND
        return ErrorCode.ILLEGAL_GENERATION
    return validate_commit(runtime, request, group)


def fetch_group(
    partition: Partition, wanted: OffsetFetchGroup, *, require_stable: bool
) -> FetchedGroup:
    """Read one group's offsets. Source: fetchOffsets and fetchAllOffsets.

    Args:
        partition: The offsets partition of the group.
        wanted: The group and its topics.
        require_stable: Such a fetch is a write that reads everything applied and waits until it is
            committed; any other reads what is committed.
    """
    committed = LATEST if require_stable else partition.high_watermark
    store = partition.offsets
    is_visible = partition.group_as_of(wanted.group_id, committed) is not None
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
    return FetchedGroup(group_id=wanted.group_id, topics=tuple(topics))


def _read_topic(
    store: OffsetStore,
    group_id: str,
    topic: OffsetFetchTopic,
    *,
    position: int | None,
    shows_open: bool,
) -> FetchedTopic:
    """The partitions asked for. Source: OffsetMetadataManager.fetchOffsets.

    Args:
        store: The offsets of the group's partition.
        group_id: Whose offsets.
        topic: Its name, id and partitions.
        position: The log position to read at; None for a group that is not there to the reader.
        shows_open: Whether an offset of an open transaction is told to be unstable.
    """
    offsets: list[FetchedOffset] = []
    for index in topic.partitions:
        key = OffsetCommitKey(group_id, topic.name, index)
        if shows_open and store.is_open(key):
            offsets.append(unstable(index))
            continue
        value = None if position is None else store.get(key, position)
        if value is None or _is_of_another(value.topic_id, topic.topic_id):
            offsets.append(FetchedOffset(index))
        else:
            offsets.append(_fetched(index, value))
    return FetchedTopic(topic.name, tuple(offsets))


def _read_all(
    store: OffsetStore, group_id: str, position: int, *, shows_open: bool
) -> list[FetchedTopic]:
    """Every committed offset of a group. Source: OffsetMetadataManager.fetchAllOffsets."""
    return [
        FetchedTopic(
            name,
            tuple(
                unstable(index)
                if shows_open and store.is_open(OffsetCommitKey(group_id, name, index))
                else _fetched(index, value)
                for index, value in found
            ),
        )
        for name, found in store.all_of(group_id, position)
    ]


def _is_of_another(stored: bytes | None, asked: bytes | None) -> bool:
    """Whether an offset is of an earlier topic of that name. Source: isMismatchedTopicId."""
    return bool(stored and asked and any(stored) and any(asked)) and stored != asked


def unstable(index: int) -> FetchedOffset:
    """The answer for an offset that may yet become another."""
    return FetchedOffset(index, error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)


def _fetched(index: int, value: OffsetCommitValue) -> FetchedOffset:
    return FetchedOffset(index, value.offset, value.leader_epoch, value.metadata)
