"""Whether a member of a streams group may commit or fetch offsets at the epoch that it names.

Source: kafka 4.4, StreamsGroup.validateOffsetCommit, createAssignmentEpochValidator and
validateOffsetFetch; OffsetMetadataManager.commitOffset and validateTransactionalOffsetCommit.
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.coordinator.offset_records import is_overlong
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import StreamsMember
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.messages.offset_commit import OffsetCommitRequest, OffsetCommitRequestTopic
from coordinator_sim.messages.offset_fetch import OffsetFetchRequestGroup
from coordinator_sim.messages.txn_offset_commit import TxnOffsetCommitRequest

_EPOCH_VERSION: Final = 9
"""First version of OffsetCommit with member epochs."""
_STALE_VERSION: Final = 6
"""First version of TxnOffsetCommit that knows of stale epochs."""


def streams_commit_refusal(
    runtime: Runtime, group: StreamsGroup, request: OffsetCommitRequest, api_version: int
) -> ErrorCode:
    """Why a commit is refused as a whole; NONE if it is not."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members.entries:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if api_version < _EPOCH_VERSION:
        return ErrorCode.UNSUPPORTED_VERSION
    return _epoch_error(runtime, group, member, epoch, request.topics)


def streams_txn_commit_refusal(
    runtime: Runtime, group: StreamsGroup, request: TxnOffsetCommitRequest, api_version: int
) -> ErrorCode:
    """The same of a transactional commit, whose producer need not be a member."""
    epoch = request.generation_id_or_member_epoch
    if epoch < 0 and not group.members.entries:
        return NO_ERROR
    if epoch == -1 and not request.member_id and request.group_instance_id is None:
        return NO_ERROR
    member = group.members.get(request.member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = _epoch_error(runtime, group, member, epoch, request.topics)
    if error is ErrorCode.STALE_MEMBER_EPOCH and api_version < _STALE_VERSION:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _epoch_error(
    runtime: Runtime,
    group: StreamsGroup,
    member: StreamsMember,
    epoch: int,
    topics: Iterable[OffsetCommitRequestTopic],
) -> ErrorCode:
    """Whether the epoch is the member's, or old enough to have had all tasks by then."""
    if epoch == member.member_epoch:
        return NO_ERROR
    topology = group.epochs.topology
    if epoch > member.member_epoch or topology is None:
        return ErrorCode.STALE_MEMBER_EPOCH
    parts = topology.source_topics()
    limit = runtime.config.offset_metadata_max_bytes
    for topic in topics:
        part = parts.get(topic.name)
        name = None if part is None else part.subtopology_id
        held = {} if name is None else member.assigned.active.get(name, {})
        pending = {} if name is None else member.pending_revocation.active.get(name, {})
        for partition in topic.partitions:
            # A partition whose metadata is too long is refused by itself, and not looked at here.
            if is_overlong(partition.committed_metadata or "", limit):
                continue
            index = partition.partition_index
            got = held.get(index, pending.get(index))
            if got is None or epoch < got:
                return ErrorCode.STALE_MEMBER_EPOCH
    return NO_ERROR


def streams_fetch_refusal(
    group: StreamsGroup, wanted: OffsetFetchRequestGroup, position: int
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
    is_current = wanted.member_epoch == member.member_epoch
    return NO_ERROR if is_current else ErrorCode.STALE_MEMBER_EPOCH
