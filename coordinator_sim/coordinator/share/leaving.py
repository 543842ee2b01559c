"""Members that leave a share group, or whose session is over.

Source: kafka 4.4, GroupMetadataManager.shareGroupLeave and shareGroupFenceMember.
"""

from msgspec.structs import replace

from coordinator_sim.coordinator.effects import Effect
from coordinator_sim.coordinator.epoch_group import UNKNOWN_TIME
from coordinator_sim.coordinator.epoch_joining import member_of
from coordinator_sim.coordinator.epoch_refusals import Refusal, group_of_type
from coordinator_sim.coordinator.epoch_timers import cancel_member_timers
from coordinator_sim.coordinator.modern.group import CountedTopics
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.share.group import ShareGroup
from coordinator_sim.coordinator.share.member import ShareGroupMember
from coordinator_sim.messages.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)


def leave_share_group(
    runtime: Runtime, partition: Partition, request: ShareGroupHeartbeatRequest
) -> Effect | Refusal:
    """A heartbeat that leaves."""
    group_id = request.group_id
    group = group_of_type(ShareGroup, group_id, partition.groups.get(group_id))
    if isinstance(group, Refusal):
        return group
    member = member_of(group, request.member_id, None)
    if isinstance(member, Refusal):
        return member
    response = ShareGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    return replace(fence_share_member(runtime, partition, group, member), response=response)


def fence_share_member(
    runtime: Runtime, _partition: Partition, group: ShareGroup, member: ShareGroupMember
) -> Effect:
    """The records that remove a member; its session is cancelled at once."""
    group_id = group.group_id
    topics = CountedTopics(group.topic_counts.entries)
    topics.replace(member, None)
    epoch = group.epochs.group_epoch + 1
    metadata_hash = runtime.topics.hash_of_all(topics.counts)
    records = [
        *group.member_tombstones(member.member_id),
        group.group_record(epoch, metadata_hash),
    ]
    if len(group.members) == 1 and runtime.profile.consumer_empty_group_is_assigned:
        records.append(group.target_epoch_record(epoch, UNKNOWN_TIME))
    cancel_member_timers(runtime, group_id, member.member_id)
    return Effect(records=tuple(records))
