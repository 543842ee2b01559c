"""Whether a member of a consumer or streams group may commit or fetch offsets at its epoch.

Source: kafka 4.4, ConsumerGroup and StreamsGroup.validateOffsetCommit,
createAssignmentEpochValidator and validateOffsetFetch; OffsetMetadataManager.commitOffset and
validateTransactionalOffsetCommit.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from coordinator_sim.coordinator.epoch_group import EpochMember
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.offsets.offset_records import is_overlong
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from coordinator_sim.messages.offset_fetch import OffsetFetchRequestGroup
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

_EPOCH_VERSION: Final = 9
"""First version of OffsetCommit with member epochs."""
_STALE_VERSION: Final = 6
"""First version of TxnOffsetCommit that has STALE_MEMBER_EPOCH."""


def commit_refusal(
    runtime: Runtime,
    group: ConsumerGroup | StreamsGroup,
    request: OffsetCommitRequest,
    api_version: int,
) -> ErrorCode:
    """Why a commit is refused as a whole; NONE if it is not. The instance id is not looked at."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if api_version < _EPOCH_VERSION and not member.uses_classic_protocol:
        return ErrorCode.UNSUPPORTED_VERSION
    return _epoch_error(runtime, group, member, epoch, request.topics)


def txn_commit_refusal(
    runtime: Runtime,
    group: ConsumerGroup | StreamsGroup,
    request: TxnOffsetCommitRequest,
    api_version: int,
) -> ErrorCode:
    """Why a transactional commit is refused, whose producer need not be a member."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return NO_ERROR
    if epoch == -1 and not request.member_id and request.group_instance_id is None:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    topics = request.topics
    if epoch < member.member_epoch and group.old_txn_commit_needs_topics:
        by_name = runtime.topics.by_name
        if any(topic.name not in by_name for topic in topics):
            return ErrorCode.ILLEGAL_GENERATION
        topics = tuple(replace(topic, topic_id=by_name[topic.name].topic_id) for topic in topics)
    error = _epoch_error(runtime, group, member, epoch, topics)
    if error is ErrorCode.STALE_MEMBER_EPOCH and api_version < _STALE_VERSION:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _stale_error(member: EpochMember) -> ErrorCode:
    classic = member.uses_classic_protocol
    return ErrorCode.ILLEGAL_GENERATION if classic else ErrorCode.STALE_MEMBER_EPOCH


def _epoch_error(
    runtime: Runtime,
    group: ConsumerGroup | StreamsGroup,
    member: EpochMember,
    epoch: int,
    topics: Iterable[OffsetCommitRequestTopic],
) -> ErrorCode:
    """Whether the epoch is the member's, or old enough to have had all partitions by then."""
    if epoch == member.member_epoch:
        return NO_ERROR
    if epoch > member.member_epoch or not group.has_assignment_epochs:
        return _stale_error(member)
    limit = runtime.config.offset_metadata_max_bytes
    epoch_of = group.assignment_epochs(member.member_id)
    for topic in topics:
        for partition in topic.partitions:
            # A partition whose metadata is too long is refused by itself, and not looked at here.
            if is_overlong(partition.committed_metadata or "", limit):
                continue
            assigned_at = epoch_of(topic.name, topic.topic_id, partition.partition_index)
            if assigned_at is None or epoch < assigned_at:
                return _stale_error(member)
    return NO_ERROR


def fetch_refusal(
    group: ConsumerGroup | StreamsGroup, request: OffsetFetchRequestGroup, position: int
) -> ErrorCode:
    """Why a fetch is refused; NONE if it is not. Who names no member may always fetch.

    Args:
        group: The group.
        request: Names the member.
        position: The log position that the reader sees.
    """
    if request.member_id is None:
        # QUIRK: an epoch without an id makes Kafka's coordinator look up null, which throws.
        return NO_ERROR if request.member_epoch < 0 else ErrorCode.UNKNOWN_SERVER_ERROR
    member = group.members.get(request.member_id, position)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    return NO_ERROR if request.member_epoch == member.member_epoch else _stale_error(member)
