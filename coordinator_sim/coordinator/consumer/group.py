"""A consumer group: what its records say, and what follows from them.

The group changes by the methods here alone, and they are called by the replay of records alone
(`replaying`). Its state is derived after each change. Everything lives on the timeline of the
offsets partition: readers see what is committed, and a refused append takes it back.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java and
modern/consumer/ConsumerGroup.java.
"""

from enum import Enum, unique
from typing import ClassVar, Final

from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.member import ConsumerMember, Epochs
from coordinator_sim.coordinator.consumer.subscription import CopiedCounts, ResolvedRegex
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.modern.group import ModernEpochs, ModernGroup, is_homogeneous
from coordinator_sim.coordinator.timeline import LATEST, Timeline, TimelineTable
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.consumer_group_records import TopicMetadata
from coordinator_sim.trace.epoch_records import CONSUMER

UNOWNED: Final = -1
"""The epoch of a partition that nobody has."""

Target = dict[bytes, tuple[int, ...]]
"""Partitions that a member shall have, by topic id, ascending."""


@unique
class ConsumerGroupState(Enum):
    """The states of a group by their names on the wire; Dead is never entered."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ConsumerGroupEpochs(ModernEpochs, frozen=True, kw_only=True, gc=False):
    """The epochs of a consumer group. Kafka looks whether it is homogeneous when a member changes.

    Args:
        topics: Of the record that releases without a hash write, by name.
        has_topic_record: Whether the log has such a record.
        classic_count: Members of the classic protocol.
        state: What follows from all of it.
    """

    topics: tuple[TopicMetadata, ...] = ()
    has_topic_record: bool = False
    classic_count: int = 0
    state: ConsumerGroupState = ConsumerGroupState.EMPTY


class ConsumerGroup(ModernGroup[ConsumerMember, Target, ConsumerGroupEpochs]):
    """One consumer group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        profile: Of the coordinator.

    Attributes:
        profile: Of the coordinator.
        assignor_counts: How many members would like an assignor.
        partition_epochs: The epoch of the member that has a partition, by topic id and number.
        protocol_counts: How many classic members support a protocol.
        regex_counts: How many members subscribe by an expression.
        resolved: What each expression matched.
    """

    group_type: ClassVar = CONSUMER
    __slots__ = (
        "assignor_counts",
        "partition_epochs",
        "profile",
        "protocol_counts",
        "regex_counts",
        "resolved",
    )

    def __init__(self, timeline: Timeline, group_id: str, profile: Profile) -> None:
        epoch = profile.consumer_first_epoch
        first = ConsumerGroupEpochs(group_epoch=epoch, assignment_epoch=epoch)
        super().__init__(timeline, group_id, first)
        self.profile = profile
        self.assignor_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.regex_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.protocol_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.resolved = TimelineTable[str, ResolvedRegex](timeline, java_string_hash)
        self.partition_epochs = TimelineTable[tuple[bytes, int], int](timeline, _no_order)

    # -- questions -------------------------------------------------------------------------

    @staticmethod
    def session_timeout_ms(config: CoordinatorConfig) -> int:
        """How long a session of a member is."""
        return config.group_consumer_session_timeout_ms

    @property
    def state(self) -> ConsumerGroupState:
        """The current state."""
        return self._epochs.value.state

    def target_of(self, member: ConsumerMember) -> Target:
        """What a member shall have by the last target; what a static one's predecessor should.

        Source: ConsumerGroup.targetAssignment.
        """
        member_id: str | None = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id)
        found = None if member_id is None else self.targets.entries.get(member_id)
        return {} if found is None else found

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that has a partition, or UNOWNED."""
        return self.partition_epochs.entries.get((topic_id, partition), UNOWNED)

    @property
    def has_assignment_epochs(self) -> bool:
        """Whether the epoch at which a member got each partition is stored."""
        return self.profile.consumer_stores_assignment_epochs

    @property
    def old_txn_commit_needs_topics(self) -> bool:
        """Whether a transactional commit of an earlier epoch is refused if a topic is gone."""
        return self.profile.old_txn_commit_needs_topics

    def assignment_epochs(self, member_id: str, _topic: str, topic_id: bytes) -> dict[int, int]:
        """The partitions of a topic that a member has, each with the epoch at which it got it."""
        member = self.members.entries[member_id]
        pending = member.pending_revocation.get(topic_id, {})
        return {**pending, **member.assigned.get(topic_id, {})}

    def regex_topics(self, regex: str | None) -> frozenset[str]:
        """The topics that an expression matched; none while that is not known."""
        found = self.resolved.get(regex) if regex else None
        return frozenset() if found is None else found.topics

    def preferred_assignor(self, position: int = LATEST) -> str | None:
        """The assignor that most members would like; None if nobody asks for one.

        Source: ConsumerGroup.preferredServerAssignor.
        """
        return CopiedCounts(self.assignor_counts.items(position)).winner()

    # -- changes ---------------------------------------------------------------------------

    def set_topics(self, topics: tuple[TopicMetadata, ...] | None) -> None:
        """Set the topics of the record that the log has; None where it has no such record."""
        has_record = topics is not None
        self._update_state(replace(self.epochs, has_topic_record=has_record, topics=topics or ()))

    def put_member(self, member: ConsumerMember) -> None:
        """Add or replace a member.

        Raises:
            OperationAborted: another member has one of the partitions at this epoch or a later
                one.

        Source: ConsumerGroup.updateMember.
        """
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        self._count(old, member)
        if old is not None:
            self._release(old)
        self._take(member, member.assigned)
        self._take(member, member.pending_revocation)
        if (
            old is not None
            and old.instance_id is not None
            and self.profile.consumer_forgets_old_instance
        ):
            self.static_members.remove(old.instance_id)
        if member.instance_id is not None:
            self.static_members.put(member.instance_id, member.member_id)
        self._derive(old, member)

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is there. Source: ConsumerGroup.removeMember."""
        old = self.members.remove(member_id)
        if old is None:
            return
        self._count(old, None)
        self._release(old)
        if old.instance_id is not None:
            self.static_members.remove(old.instance_id)
        self._derive(old, None)

    def resolve(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Remember what an expression matched; None forgets it.

        Source: ConsumerGroup.updateResolvedRegularExpression and removeResolvedRegularExpression.
        """
        old = self.resolved.remove(regex)
        if resolved is not None:
            self.resolved.put(regex, resolved)
        if old is not None:
            self._count_topics(old.topics, -1, by_name=False)
        if resolved is not None:
            self._count_topics(resolved.topics, 1, by_name=False)

    # -- inside ----------------------------------------------------------------------------

    def _count(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Count topics, assignors and expressions of a member that changes."""
        self._count_names(old, new)
        for counted, one, other in (
            (self.assignor_counts, _assignor(old), _assignor(new)),
            (self.regex_counts, _regex(old), _regex(new)),
        ):
            if one is not None:
                _shift(counted, one, -1)
            if other is not None:
                _shift(counted, other, 1)
        for member, step in ((old, -1), (new, 1)):
            for name in () if member is None else member.protocol_names():
                _shift(self.protocol_counts, name, step)

    def _release(self, member: ConsumerMember) -> None:
        """Free the partitions that a member has, unless another has them at another epoch.

        Source: ConsumerGroup.removePartitionEpochs.
        """
        epochs = self.partition_epochs
        for held in (member.assigned, member.pending_revocation):
            for topic_id, partitions in held.items():
                for index in partitions:
                    if epochs.entries.get((topic_id, index)) == member.member_epoch:
                        epochs.remove((topic_id, index))

    def _take(self, member: ConsumerMember, held: Epochs) -> None:
        """Note whose partitions these are. Source: ConsumerGroup.addPartitionEpochs."""
        epoch = member.member_epoch
        epochs = self.partition_epochs
        for topic_id, partitions in held.items():
            for index in partitions:
                known = epochs.entries.get((topic_id, index))
                if known is not None and known >= epoch:
                    raise OperationAborted(
                        f"group {self.group_id}: partition {index} of topic id {topic_id.hex()} is "
                        f"owned at epoch {known} and claimed at {epoch} by {member.member_id}"
                    )
                epochs.put((topic_id, index), epoch)

    def _derive(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Count who is not where the target wants it, and derive the state."""
        epochs = self.epochs
        classic = epochs.classic_count
        classic -= old is not None and old.classic is not None
        classic += new is not None and new.classic is not None
        alike = is_homogeneous(
            self.regex_counts.entries, self.topic_counts.entries, len(self.members)
        )
        changed = replace(
            epochs,
            unreconciled_count=self._counted(old, new),
            classic_count=classic,
            is_homogeneous=alike,
        )
        self._update_state(changed)

    def _update_state(self, epochs: ConsumerGroupEpochs) -> None:
        """Set the epochs and the state. Source: ConsumerGroup.maybeUpdateGroupState."""
        if not self.members.entries:
            state = ConsumerGroupState.EMPTY
        elif epochs.group_epoch > epochs.assignment_epoch:
            state = ConsumerGroupState.ASSIGNING
        elif epochs.unreconciled_count:
            state = ConsumerGroupState.RECONCILING
        else:
            state = ConsumerGroupState.STABLE
        self._epochs.value = epochs if epochs.state is state else replace(epochs, state=state)


def _no_order(_key: tuple[bytes, int]) -> int:
    """The hash of a key whose order shows nowhere."""
    return 0


def _assignor(member: ConsumerMember | None) -> str | None:
    return None if member is None else member.server_assignor


def _regex(member: ConsumerMember | None) -> str | None:
    return None if member is None else member.subscribed_topic_regex or None


def _shift(counts: TimelineTable[str, int], key: str, step: int) -> None:
    count = counts.entries.get(key, 0) + step
    if count:
        counts.put(key, count)
    else:
        counts.remove(key)
