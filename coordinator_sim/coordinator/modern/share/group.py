"""A share group and its members: what their records say, and what follows from them.

Topics and partitions of members are in the order of Kafka's hash maps in records: the assignor's
next outcome depends on it.

A topic is to be initialised when a member subscribes to it, and is assigned once that is done.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java, modern/share/{ShareGroup,
ShareGroupMember}.java; GroupMetadataManager.combineInitMaps, attachInitValue, attachTopicName.
"""

from collections.abc import Collection, Mapping, Sequence
from enum import Enum, unique
from typing import ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import Target, as_target, held
from coordinator_sim.coordinator.common.timeline import Timeline
from coordinator_sim.coordinator.epoch_group import RecordTypes
from coordinator_sim.coordinator.modern.group import (
    MemberState,
    ModernEpochs,
    ModernGroup,
    ModernGroupMember,
    is_homogeneous,
)
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.kafka.orders.iteration_order import (
    java_copy_capacity,
    java_hash_order,
    java_string_key,
    uuid_hash,
)
from coordinator_sim.kafka.orders.java_map import JavaHashMap, sized_capacity
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
    TopicInfo,
    TopicPartition,
    TopicPartitions,
    TopicPartitionsInfo,
)
from coordinator_sim.trace.epoch_records import SHARE

UNKNOWN_NAME: Final = "<UNKNOWN>"
"""Name of a topic that is gone."""


class StoredTopic(Struct, frozen=True, gc=False):
    """Partitions of a topic.

    Args:
        name: Of the topic.
        partitions: Their numbers.
        replayed_ms: When the record that says so was applied, which a failover forgets.
    """

    name: str
    partitions: frozenset[int]
    replayed_ms: int = -1


StoredTopics = Mapping[bytes, StoredTopic]
"""By topic id."""


class ShareState(Struct, frozen=True, gc=False):
    """The share partitions of one group, by how far the share coordinator has them.

    Args:
        initializing: Partitions whose InitializeShareGroupState is under way.
        initialized: Partitions that the share coordinator has initialized.
        deleting: Ids of topics whose DeleteShareGroupState is under way.
    """

    initializing: StoredTopics = {}
    initialized: StoredTopics = {}
    deleting: frozenset[bytes] = frozenset()


def combined(one: StoredTopics, other: StoredTopics) -> dict[bytes, StoredTopic]:
    """The partitions of both; names and instants are the other's where it has the topic."""
    found = dict(one)
    for topic_id, topic in other.items():
        known = one.get(topic_id)
        partitions = topic.partitions if known is None else known.partitions | topic.partitions
        found[topic_id] = StoredTopic(topic.name, partitions, topic.replayed_ms)
    return found


def topic_name(topics: KnownTopics, topic_id: bytes) -> str:
    """The name of a topic."""
    topic = topics.by_id.get(topic_id)
    return UNKNOWN_NAME if topic is None else topic.name


def state_of(value: ShareGroupStatePartitionMetadataValue, now_ms: int) -> ShareState:
    """The share state that a record holds; its topics date from `now_ms`."""
    return ShareState(
        _read(value.initializing_topics, now_ms),
        _read(value.initialized_topics, now_ms),
        frozenset(topic.topic_id for topic in value.deleting_topics),
    )


def _read(topics: tuple[TopicPartitionsInfo, ...], now_ms: int) -> dict[bytes, StoredTopic]:
    return {
        each.topic_id: StoredTopic(each.topic_name, frozenset(each.partitions), now_ms)
        for each in topics
    }


def state_value(state: ShareState, topics: KnownTopics) -> ShareGroupStatePartitionMetadataValue:
    """The record's value; topics that are to be forgotten have the names that they have now."""
    deleting = {topic_id: topic_name(topics, topic_id) for topic_id in state.deleting}
    return named_state_value(state, deleting)


def named_state_value(
    state: ShareState, deleting: Mapping[bytes, str]
) -> ShareGroupStatePartitionMetadataValue:
    """The record's value with these names of topics that are to be forgotten.

    Topics and partitions are in ascending order, where Kafka has the order of its hash maps.
    UNSPECIFIED: no client sees that order, and a load does not depend on it.
    """
    return ShareGroupStatePartitionMetadataValue(
        _written(state.initializing),
        _written(state.initialized),
        tuple(TopicInfo(topic_id, deleting[topic_id]) for topic_id in sorted(deleting)),
    )


def _written(topics: StoredTopics) -> tuple[TopicPartitionsInfo, ...]:
    return tuple(
        TopicPartitionsInfo(
            topic_id, topics[topic_id].name, tuple(sorted(topics[topic_id].partitions))
        )
        for topic_id in sorted(topics)
    )


NO_TARGET: Target = ()
"""No partitions."""


class ShareGroupMember(ModernGroupMember, frozen=True, kw_only=True, gc=False):
    """A member of a share group.

    Args:
        subscribed_topic_names: Topics that it names, in the order of its set.
        assigned: What it has, in the order of its map.
    """

    subscribed_topic_names: tuple[str, ...] = ()
    assigned: Target = NO_TARGET


def set_order(names: Sequence[str]) -> tuple[str, ...]:
    """The names in the order of a HashSet made of the list."""
    return tuple(java_hash_order(names, java_copy_capacity(len(names))))


def is_same(one: Target, other: Target) -> bool:
    """Whether two targets have the same partitions; their order is ignored."""
    return one == other or _as_sets(one) == _as_sets(other)


def without_topics(target: Target, topic_ids: Collection[bytes]) -> Target:
    """The target without some topics, in the order of a copy of its map.

    Source: ShareGroupAssignmentBuilder.filterAssignedPartitions.
    """
    if not topic_ids:
        return target
    capacity = sized_capacity(int(len(target) / 0.75 + 1))
    copied = JavaHashMap(uuid_hash, target, capacity=capacity)
    return tuple((topic_id, each) for topic_id, each in copied.items() if topic_id not in topic_ids)


def _as_sets(target: Target) -> dict[bytes, frozenset[int]]:
    return {topic_id: frozenset(partitions) for topic_id, partitions in target}


def is_same_member(one: ShareGroupMember, other: ShareGroupMember) -> bool:
    """Whether nothing of a member has changed. Source: ShareGroupMember.equals."""
    if one == other:
        return True
    names = set(one.subscribed_topic_names), set(other.subscribed_topic_names)
    if names[0] != names[1] or not is_same(one.assigned, other.assigned):
        return False
    like = replace(other, subscribed_topic_names=one.subscribed_topic_names, assigned=one.assigned)
    return one == like


def with_metadata(
    member: ShareGroupMember, value: ShareGroupMemberMetadataValue
) -> ShareGroupMember:
    """The member as its record says. Source: ShareGroupMember.Builder.updateWith."""
    return replace(
        member,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=set_order(value.subscribed_topic_names),
    )


def with_assignment(
    member: ShareGroupMember, value: ShareGroupCurrentMemberAssignmentValue
) -> ShareGroupMember:
    """The member with what its record says that it has. Source: as above."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=as_target(
            held(tuple((each.topic_id, each.partitions) for each in value.assigned_partitions))
        ),
    )


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
    session_setting: ClassVar = "group_share_session_timeout_ms"
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
