"""Members that leave a share group, or whose session is over.

Source: kafka 4.4, GroupMetadataManager.shareGroupLeave, shareGroupFenceMember and
shareGroupFenceMemberOperation, scheduleShareGroupSessionTimeout.
"""

from dataclasses import dataclass
from typing import Final

from coordinator_sim.coordinator.consumer.refusal import Refusal, no_such_group, unknown_member
from coordinator_sim.coordinator.consumer.timers import (
    MemberTimeout,
    RetryTimeout,
    arm,
    cancel_member_timers,
    departure,
)
from coordinator_sim.coordinator.effects import Effect
from coordinator_sim.coordinator.modern.group import CountedTopics
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime
from coordinator_sim.coordinator.share.group import ShareGroup
from coordinator_sim.coordinator.share.member import ShareMember
from coordinator_sim.coordinator.share.records import (
    group_record,
    member_tombstones,
    target_epoch_record,
)
from coordinator_sim.coordinator.share.refusal import no_share_group
from coordinator_sim.errors import OperationAborted
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

_UNKNOWN_TIME: Final = 0
"""Timestamp of a target that no assignor computed."""


@dataclass(slots=True, frozen=True)
class ShareTimeout(MemberTimeout):
    """The session of a member of a share group; its name is that of any session."""


def leave_share_group(
    runtime: Runtime, partition: Partition, request: ShareGroupHeartbeatRequest
) -> Effect | Refusal:
    """A heartbeat that leaves."""
    known = partition.groups.get(request.group_id)
    if not isinstance(known, ShareGroup):
        return (no_such_group if known is None else no_share_group)(request.group_id)
    member = known.members.get(request.member_id)
    if member is None:
        return unknown_member(request.group_id, request.member_id)
    response = ShareGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return Effect(records=_fence(runtime, known, member), response=response)


def _fence(runtime: Runtime, group: ShareGroup, member: ShareMember) -> tuple[LogRecord, ...]:
    """The records that remove a member; its session is called off at once."""
    group_id = group.group_id
    topics = CountedTopics(group.topic_counts.entries)
    topics.replace(member, None)
    epoch = group.epochs.group_epoch + 1
    metadata_hash = runtime.topics.hash_of_all(topics.counts)
    records = [
        *member_tombstones(group_id, member.member_id),
        group_record(group_id, epoch, metadata_hash),
    ]
    if len(group.members) == 1 and runtime.profile.consumer_empty_group_is_assigned:
        records.append(target_epoch_record(group_id, epoch, _UNKNOWN_TIME))
    cancel_member_timers(runtime, group_id, member.member_id)
    return tuple(records)


def start_share_session(
    runtime: Runtime, partition: Partition, group_id: str, member_id: str
) -> None:
    """Give a member its whole session timeout from now."""
    timeout = ShareTimeout(partition, group_id, member_id)
    arm(runtime, timeout, runtime.config_of(group_id).group_share_session_timeout_ms)


def start_share_sessions(runtime: Runtime, partition: Partition, group: ShareGroup) -> None:
    """Start the sessions of every member of a group that was loaded. Source: onLoaded."""
    for member_id in group.members.keys():  # noqa: SIM118 - a table, whose keys are in its order
        start_share_session(runtime, partition, group.group_id, member_id)


def expire_share_member(runtime: Runtime, timeout: ShareTimeout) -> None:
    """Fence a member whose session is over, unless it is gone."""
    partition = timeout.partition
    if partition.state is not PartitionState.ACTIVE:
        return
    group = partition.groups.get(timeout.group_id)
    records: tuple[LogRecord, ...] = ()
    if isinstance(group, ShareGroup):
        member = group.members.get(timeout.member_id)
        records = () if member is None else _fence(runtime, group, member)
    if records or not partition.is_settled:
        # QUIRK: a write without records that is late is repeated too, until one is in time.
        session_ms = runtime.config_of(timeout.group_id).group_share_session_timeout_ms
        effect = Effect(
            records=records,
            follow=RetryTimeout(runtime, timeout),
            beside=departure(timeout, session_ms, session_ms),
        )
        try:
            runtime.submit(partition, None, effect)
        except OperationAborted:
            return
