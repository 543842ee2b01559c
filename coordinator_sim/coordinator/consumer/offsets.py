"""Whether a member of a consumer group may commit or fetch offsets at the epoch that it names.

Source: kafka 4.4, ConsumerGroup.validateOffsetCommit, createAssignmentEpochValidator and
validateOffsetFetch; OffsetMetadataManager.commitOffset and validateTransactionalOffsetCommit.
"""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.consumer.member import ConsumerMember
from coordinator_sim.coordinator.offset_records import is_overlong
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from coordinator_sim.messages.offset_fetch import OffsetFetchRequestGroup
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

_EPOCH_VERSION: Final = 9
"""First version of OffsetCommit with member epochs."""
_STALE_VERSION: Final = 6
"""First version of TxnOffsetCommit that knows of stale epochs."""


def commit_refusal(
    runtime: Runtime, group: ConsumerGroup, request: OffsetCommitRequest, api_version: int
) -> ErrorCode:
    """Why a commit is refused as a whole; NONE if it is not. The instance id is not looked at."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if api_version < _EPOCH_VERSION and member.classic is None:
        return ErrorCode.UNSUPPORTED_VERSION
    return _epoch_error(runtime, member, epoch, request.topics)


def txn_commit_refusal(
    runtime: Runtime, group: ConsumerGroup, request: TxnOffsetCommitRequest, api_version: int
) -> ErrorCode:
    """The same of a transactional commit, whose producer need not be a member."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and group.is_empty:
        return NO_ERROR
    if epoch == -1 and not request.member_id and request.group_instance_id is None:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    topics = request.topics
    if epoch < member.member_epoch and runtime.profile.old_txn_commit_needs_topics:
        known = runtime.topics.by_name
        if any(topic.name not in known for topic in topics):
            return ErrorCode.ILLEGAL_GENERATION
        topics = tuple(replace(topic, topic_id=known[topic.name].topic_id) for topic in topics)
    error = _epoch_error(runtime, member, epoch, topics)
    if error is ErrorCode.STALE_MEMBER_EPOCH and api_version < _STALE_VERSION:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _epoch_error(
    runtime: Runtime,
    member: ConsumerMember,
    epoch: int,
    topics: Iterable[OffsetCommitRequestTopic],
) -> ErrorCode:
    """Whether the epoch is the member's, or old enough to have had all partitions by then."""
    if epoch == member.member_epoch:
        return NO_ERROR
    is_classic = member.classic is not None
    stale = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
    if epoch > member.member_epoch or not runtime.profile.consumer_stores_assignment_epochs:
        return stale
    limit = runtime.config.offset_metadata_max_bytes
    for topic in topics:
        held = member.assigned.get(topic.topic_id, {})
        pending = member.pending_revocation.get(topic.topic_id, {})
        for partition in topic.partitions:
            # A partition whose metadata is too long is refused by itself, and not looked at here.
            if is_overlong(partition.committed_metadata or "", limit):
                continue
            index = partition.partition_index
            got = held.get(index, pending.get(index))
            if got is None or epoch < got:
                return stale
    return NO_ERROR


def fetch_refusal(
    group: ConsumerGroup, wanted: OffsetFetchRequestGroup, position: int
) -> ErrorCode:
    """Why a fetch is refused; NONE if it is not. Who names no member may always fetch.

    Args:
        group: The group.
        wanted: Names the member.
        position: The log position that the reader sees.
    """
    if wanted.member_id is None:
        # QUIRK: an epoch without an id makes Kafka's coordinator look up null, which throws.
        return NO_ERROR if wanted.member_epoch < 0 else ErrorCode.UNKNOWN_SERVER_ERROR
    member = group.members.get(wanted.member_id, position)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if wanted.member_epoch == member.member_epoch:
        return NO_ERROR
    is_classic = member.classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
