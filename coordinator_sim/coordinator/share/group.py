"""A share group: what its records say, and what follows from them.

Topics and partitions of members are in the order of Kafka's hash maps in records: the assignor's
next outcome depends on it.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java and modern/share/ShareGroup.java.
"""

from enum import Enum, unique
from typing import ClassVar

from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import Target, as_target, held
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.epoch_group import RecordTypes
from coordinator_sim.coordinator.modern.group import ModernEpochs, ModernGroup, is_homogeneous
from coordinator_sim.coordinator.share.member import (
    NO_TARGET,
    ShareGroupMember,
    with_assignment,
    with_metadata,
)
from coordinator_sim.coordinator.timeline import Timeline
from coordinator_sim.kafka.orders.iteration_order import java_string_key
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.share_group_records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupKey,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicPartition,
    TopicPartitions,
)
from coordinator_sim.trace.epoch_records import SHARE


@unique
class ShareGroupState(Enum):
    """The states of a group by their names on the wire; Dead is never entered."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareGroupEpochs(ModernEpochs, frozen=True, kw_only=True, gc=False):
    """The epochs of a share group.

    Args:
        state: Whether there are members.
    """

    state: ShareGroupState = ShareGroupState.EMPTY


class ShareGroup(ModernGroup[ShareGroupMember, Target, ShareGroupEpochs]):
    """One share group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        profile: Of the coordinator.
    """

    group_type: ClassVar = SHARE
    no_target: ClassVar[Target] = NO_TARGET
    record_types: ClassVar = RecordTypes(
        group_key=ShareGroupMetadataKey,
        target_epoch_key=ShareGroupTargetAssignmentMetadataKey,
        target_epoch_value=ShareGroupTargetAssignmentMetadataValue,
        member_key=ShareGroupMemberMetadataKey,
        target_key=ShareGroupTargetAssignmentMemberKey,
        assignment_key=ShareGroupCurrentMemberAssignmentKey,
        new_member=lambda member_id: ShareGroupMember(member_id=member_id),
        with_metadata=with_metadata,
        with_assignment=with_assignment,
        nothing={"assigned": NO_TARGET},
    )
    __slots__ = ()

    def __init__(self, timeline: Timeline, group_id: str, profile: Profile) -> None:
        epoch = profile.consumer_first_epoch
        first = ShareGroupEpochs(group_epoch=epoch, assignment_epoch=epoch)
        super().__init__(timeline, group_id, first, profile)

    @staticmethod
    def session_timeout_ms(config: CoordinatorConfig) -> int:
        """How long a session of a member is."""
        return config.group_share_session_timeout_ms

    def joined(self, member_id: str) -> ShareGroupMember:
        """The member of that id; one that is not there comes into the group without anything.

        Source: ShareGroup.getOrMaybeCreateMember.
        """
        member = super().joined(member_id)
        if member_id not in self.members:
            self.put_member(member)
        return member

    def _replace(self, old: ShareGroupMember | None, new: ShareGroupMember | None) -> None:
        """Source: ShareGroup.updateMember and removeMember."""
        self._count_names(old, new)
        changed = replace(
            self.epochs,
            unreconciled_count=self._counted(old, new),
            is_homogeneous=is_homogeneous({}, self.topic_counts.entries, len(self.members)),
        )
        self._update_state(changed)

    def _update_state(self, epochs: ShareGroupEpochs) -> None:
        """Set the epochs and the state. Source: ShareGroup.maybeUpdateGroupState."""
        state = ShareGroupState.STABLE if self.members.entries else ShareGroupState.EMPTY
        self._epochs.value = epochs if epochs.state is state else replace(epochs, state=state)

    # -- records ---------------------------------------------------------------------------

    def member_record(self, member: ShareGroupMember) -> LogRecord:
        """Make the record of a member's metadata: rack, client and subscribed topics."""
        names = tuple(sorted(member.subscribed_topic_names, key=java_string_key))
        value = ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=names,
        )
        return LogRecord(ShareGroupMemberMetadataKey(self.group_id, member.member_id), value)

    def group_record(self, epoch: int, metadata_hash: int) -> LogRecord:
        """Make the record of another epoch of the group."""
        value = ShareGroupMetadataValue(epoch, metadata_hash)
        return LogRecord(ShareGroupMetadataKey(self.group_id), value)

    def target_record(self, member_id: str, target: Target) -> LogRecord:
        """Make the record of what a member shall have."""
        topics = tuple(TopicPartition(topic_id, partitions) for topic_id, partitions in target)
        value = ShareGroupTargetAssignmentMemberValue(topics)
        return LogRecord(ShareGroupTargetAssignmentMemberKey(self.group_id, member_id), value)

    def assignment_record(self, member: ShareGroupMember) -> LogRecord:
        """Make the record of what a member has."""
        value = ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=int(member.state),
            assigned_partitions=tuple(
                TopicPartitions(topic_id, partitions) for topic_id, partitions in member.assigned
            ),
        )
        key = ShareGroupCurrentMemberAssignmentKey(self.group_id, member.member_id)
        return LogRecord(key, value)

    def _other_keys(self) -> tuple[ShareGroupKey, ...]:
        return (ShareGroupStatePartitionMetadataKey(self.group_id),)

    def _target_from(self, value: ShareGroupTargetAssignmentMemberValue) -> Target:
        topics = tuple((each.topic_id, each.partitions) for each in value.topic_partitions)
        return as_target(held(topics))


def state_record(group_id: str, value: ShareGroupStatePartitionMetadataValue) -> LogRecord:
    """Make the record of the partitions whose state the share coordinator keeps."""
    return LogRecord(ShareGroupStatePartitionMetadataKey(group_id), value)
