"""The online upgrade: a classic group with members becomes a consumer group.

Its members keep their ids, sessions and partitions; they are classic members of the new group. The
log has it first: a tombstone of the classic group, then the records of the consumer group, in the
batch of the heartbeat that caused it.

Source: kafka 4.4, GroupMetadataManager.validateOnlineUpgrade and convertToConsumerGroup;
ConsumerGroup.fromClassicGroup and createConsumerGroupRecords.
"""

from collections.abc import Iterable

from coordinator_sim.coordinator import epoch_refusals
from coordinator_sim.coordinator.classic.group import Group, Member, is_consumer
from coordinator_sim.coordinator.classic.join_phase import complete_join_of
from coordinator_sim.coordinator.common.timeline import Timeline
from coordinator_sim.coordinator.epoch_members import start_classic_session
from coordinator_sim.coordinator.modern.consumer.embedded import (
    MalformedBlob,
    TopicPartitions,
    read_assignment,
    read_subscription,
)
from coordinator_sim.coordinator.modern.consumer.group import (
    ConsumerGroup,
    ConsumerGroupMember,
    Target,
)
from coordinator_sim.coordinator.offsets.offset_records import group_tombstone
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.consumer_group_records import ClassicMemberMetadata, ClassicProtocol
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.sync_group import SyncGroupResponse


class _CustomAssignor(OperationAborted):
    """An assignment has user data, which would be lost."""


def upgraded(
    runtime: Runtime, partition: Partition, classic: Group, records: list[LogRecord]
) -> ConsumerGroup | epoch_refusals.Refusal:
    """The consumer group that a classic group becomes, not in the partition's table yet.

    QUIRK: once the policy, the protocol type and the size are right, members whose requests are
    parked are told to join again, whatever becomes of the upgrade.

    Args:
        runtime: The coordinator.
        partition: Of the group.
        classic: The group; it has members.
        records: Gets what makes it a consumer group.

    Raises:
        OperationAborted: the group never had a protocol, or a member's data cannot be read at all.
    """
    refusal = _refusal(runtime, classic)
    if refusal is not None:
        return refusal
    _dismiss(runtime, classic)
    try:
        group = _converted(runtime, classic)
    except MalformedBlob:
        return epoch_refusals.malformed_group(classic.group_id)
    except _CustomAssignor:
        return epoch_refusals.custom_assignor(classic.group_id)
    records.append(group_tombstone(classic.group_id))
    records += _records_of(runtime, group)
    for member in [member for _, member in group.members.items()]:
        start_classic_session(runtime, partition, group, member)
    return group


def _refusal(runtime: Runtime, classic: Group) -> epoch_refusals.Refusal | None:
    """Why a group stays a classic one; None if it need not. Source: validateOnlineUpgrade."""
    if not runtime.config.group_consumer_migration_policy.upgrades:
        return epoch_refusals.no_upgrade(classic.group_id)
    if not is_consumer(classic.protocol_type):
        return epoch_refusals.not_of_consumers(classic.group_id)
    if len(classic.members) > runtime.config.group_consumer_max_size:
        return epoch_refusals.group_too_large(classic.group_id)
    return None


def _dismiss(runtime: Runtime, classic: Group) -> None:
    """Tell everyone whose request is parked to join again.

    Source: ClassicGroup.completeAllJoinFutures and completeAllSyncFutures.
    """
    error = ErrorCode.REBALANCE_IN_PROGRESS
    for member in classic.ordered():
        answer = JoinGroupResponse(error_code=error, member_id=member.member_id, protocol_name=None)
        complete_join_of(runtime, classic, member, answer)
    for member in classic.ordered():
        if member.awaiting_sync is not None:
            runtime.answer(member.awaiting_sync, SyncGroupResponse(error_code=error))
            member.awaiting_sync = None


def _converted(runtime: Runtime, classic: Group) -> ConsumerGroup:
    """The group with its members, at the epoch that was its generation."""
    group = ConsumerGroup(Timeline(), classic.group_id, runtime.profile)
    generation_id = classic.generation_id
    group.set_group_epoch(generation_id, 0)
    group.set_assignment_epoch(generation_id, 0)
    for member in classic.ordered():
        converted, target = _member(runtime, classic, member)
        group.targets.put(member.member_id, target)
        group.put_member(converted)
    seen = group.topics_seen(runtime.topics, group.topic_counts.entries)
    group.set_group_epoch(generation_id, seen.metadata_hash)
    group.set_topics(seen.topics)
    return group


def _member(runtime: Runtime, classic: Group, member: Member) -> tuple[ConsumerGroupMember, Target]:
    """A member with what its leader gave it, which is its target too."""
    assignment = read_assignment(member.assignment, runtime.profile)
    if assignment.has_user_data:
        raise _CustomAssignor(member.member_id)
    target = _by_id(assignment.partitions, runtime.topics)
    subscription = read_subscription(member.metadata(classic.protocol_name), runtime.profile)
    epoch = classic.generation_id
    converted = ConsumerGroupMember(
        member_id=member.member_id,
        member_epoch=epoch,
        previous_member_epoch=epoch,
        instance_id=member.group_instance_id,
        rack_id=subscription.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=frozenset(subscription.topics),
        assigned={topic_id: dict.fromkeys(held, epoch) for topic_id, held in target.items()},
        classic=classic_metadata(member.session_timeout_ms, member.protocols),
    )
    return converted, target


def classic_metadata(
    session_timeout_ms: int, protocols: Iterable[JoinGroupRequestProtocol]
) -> ClassicMemberMetadata:
    """Make the classic metadata of a member: its session timeout and protocols."""
    supported = tuple([ClassicProtocol(each.name, each.metadata) for each in protocols])
    return ClassicMemberMetadata(session_timeout_ms, supported)


def _by_id(partitions: TopicPartitions, topics: KnownTopics) -> Target:
    """Partitions by topic id; topics that do not exist are left out, the last of a name counts.

    Source: Utils.toTopicPartitionMap.
    """
    return {
        topics.by_name[name].topic_id: tuple(sorted(set(indexes)))
        for name, indexes in partitions
        if name in topics.by_name
    }


def _records_of(runtime: Runtime, group: ConsumerGroup) -> list[LogRecord]:
    """Everything about a group that was a classic one. Source: createConsumerGroupRecords."""
    epochs = group.epochs
    members = [member for _, member in group.members.items()]
    records = [group.member_record(member) for member in members]
    if not runtime.profile.consumer_hashes_topics:
        records.append(group.topics_record(epochs.topics))
    records.append(group.group_record(epochs.group_epoch, epochs.metadata_hash))
    records += [
        group.target_record(member.member_id, group.targets.get(member.member_id) or {})
        for member in members
    ]
    records.append(group.target_epoch_record(epochs.assignment_epoch, 0))
    records += [group.assignment_record(member) for member in members]
    return records
