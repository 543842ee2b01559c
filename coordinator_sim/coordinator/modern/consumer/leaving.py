"""Members that leave a consumer group, or are fenced from it.

Source: kafka 4.4, GroupMetadataManager.consumerGroupLeave, consumerGroupFenceMembers,
consumerGroupStaticMemberGroupLeave and classicGroupLeaveToConsumerGroup.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from coordinator_sim.coordinator.effects import NO_EFFECT, Effect
from coordinator_sim.coordinator.epoch_group import STATIC_LEAVE_EPOCH, UNKNOWN_TIME
from coordinator_sim.coordinator.epoch_members import cancel_member_timers, member_of
from coordinator_sim.coordinator.epoch_refusals import (
    Refusal,
    group_of_type,
    no_downgrade,
)
from coordinator_sim.coordinator.modern.consumer.downgrade import (
    downgrade_without,
    downgrades_without,
)
from coordinator_sim.coordinator.modern.consumer.embedded import MalformedBlob
from coordinator_sim.coordinator.modern.consumer.group import (
    NONE_OWNED,
    ConsumerGroup,
    ConsumerGroupMember,
)
from coordinator_sim.coordinator.modern.group import CountedTopics
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from coordinator_sim.messages.records import LogRecord


def leave_consumer_group(
    runtime: Runtime, partition: Partition, request: ConsumerGroupHeartbeatRequest
) -> Effect | Refusal:
    """A heartbeat that leaves, for good or for a while; its epoch is not compared."""
    group_id = request.group_id
    group = group_of_type(ConsumerGroup, group_id, partition.groups.get(group_id))
    if isinstance(group, Refusal):
        return group
    found = member_of(group, request.member_id, request.instance_id)
    if isinstance(found, Refusal):
        return found
    response = ConsumerGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        return Effect(records=(_away(runtime, group, found),), response=response)
    effect = fence_members(runtime, partition, group, (found,))
    return effect if isinstance(effect, Refusal) else replace(effect, response=response)


def _away(runtime: Runtime, group: ConsumerGroup, member: ConsumerGroupMember) -> LogRecord:
    """A static member that will be back keeps what it has; its session goes on as it is.

    Source: consumerGroupStaticMemberGroupLeave.
    """
    with_epochs = runtime.profile.consumer_stores_assignment_epochs
    away = replace(member, member_epoch=STATIC_LEAVE_EPOCH, pending_revocation=NONE_OWNED)
    if with_epochs:
        assigned = {topic_id: dict.fromkeys(held, 0) for topic_id, held in away.assigned.items()}
        away = replace(away, assigned=assigned)
    return group.assignment_record(away)


def fence_members(
    runtime: Runtime,
    partition: Partition,
    group: ConsumerGroup,
    members: Sequence[ConsumerGroupMember],
) -> Effect | Refusal:
    """The records that remove members, whose timers are called off at once.

    A group left with classic members alone becomes a classic one. QUIRK: the timers run on then.

    Source: consumerGroupFenceMembers.
    """
    if not members:
        return NO_EFFECT
    group_id = group.group_id
    if downgrades_without(runtime, group, members):
        try:
            tombstones = downgrade_without(runtime, partition, group, members)
        except MalformedBlob as error:
            return no_downgrade(group_id, str(error))
        return Effect(records=tombstones, is_replayed=False)
    records = [record for each in members for record in group.member_tombstones(each.member_id)]
    topics = CountedTopics(group.topic_counts.entries)
    for member in members:
        topics.replace(member, None)
    for regex in _left_regexes(group, members):
        records.append(group.regex_tombstone(regex))
        topics.step(group.regex_topics(regex), -1, by_name=False)
    epoch = group.epochs.group_epoch + 1
    seen = group.topics_seen(runtime.topics, topics.counts)
    records += [*seen.records, group.group_record(epoch, seen.metadata_hash)]
    is_last = len(members) == len(group.members)
    if is_last and runtime.profile.consumer_empty_group_is_assigned:
        records.append(group.target_epoch_record(epoch, UNKNOWN_TIME))
    for member in members:
        cancel_member_timers(runtime, group_id, member.member_id)
    return Effect(records=tuple(records))


def _left_regexes(group: ConsumerGroup, members: Sequence[ConsumerGroupMember]) -> list[str]:
    """The expressions that nobody else subscribes by.

    Source: maybeDeleteResolvedRegularExpressions.
    """
    counts: dict[str, int] = {}
    for member in members:
        if member.subscribed_topic_regex:
            regex = member.subscribed_topic_regex
            counts[regex] = counts.get(regex, 0) + 1
    return [regex for regex, count in counts.items() if group.regex_counts.get(regex) == count]


def fence_consumer_member(
    runtime: Runtime, partition: Partition, group: ConsumerGroup, member: ConsumerGroupMember
) -> Effect | Refusal:
    """The records that remove a member whose time is over."""
    return fence_members(runtime, partition, group, (member,))


def leave_by_classic_request(
    runtime: Runtime, partition: Partition, group: ConsumerGroup, request: LeaveGroupRequest
) -> Effect | ErrorCode:
    """A LeaveGroup of a consumer group's members, all removed in one epoch.

    Source: classicGroupLeaveToConsumerGroup.
    """
    leavers: dict[str, ConsumerGroupMember] = {}
    answers = []
    for entry in request.members:
        found = _identified(group, entry)
        error = NO_ERROR
        if isinstance(found, Refusal):
            error = found.error
        else:
            leavers[found.member_id] = found
        answers.append(MemberResponse(entry.member_id, entry.group_instance_id, error))
    effect = fence_members(runtime, partition, group, tuple(leavers.values()))
    if isinstance(effect, Refusal):
        return effect.error
    return replace(effect, response=LeaveGroupResponse(members=tuple(answers)))


def _identified(group: ConsumerGroup, entry: MemberIdentity) -> ConsumerGroupMember | Refusal:
    """The member that an entry names; an administrator names a static one without its id."""
    instance_id = entry.group_instance_id
    if instance_id is not None and not entry.member_id:
        member = group.static_member(instance_id)
        return Refusal(ErrorCode.UNKNOWN_MEMBER_ID) if member is None else member
    return member_of(group, entry.member_id, instance_id)
