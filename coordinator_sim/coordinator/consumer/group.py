"""A consumer group: what its records say, and what follows from them.

The group changes by the methods here alone, and they are called by the replay of records alone
(`replaying`). Its state is derived after each change. Everything lives on the timeline of the
offsets partition: readers see what is committed, and a refused append takes it back.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java and
modern/consumer/ConsumerGroup.java.
"""

from enum import Enum, unique
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.member import ConsumerMember, Epochs
from coordinator_sim.coordinator.consumer.subscription import (
    CopiedCounts,
    ResolvedRegex,
    SubscriptionCount,
    counted_down,
    counted_up,
    is_homogeneous,
)
from coordinator_sim.coordinator.timeline import LATEST, Timeline, TimelineTable, TimelineValue
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.consumer_records import TopicMetadata
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.profiles import Profile

UNOWNED: Final = -1
"""The epoch of a partition that nobody has."""

NOT_CHECKED: Final = (0, 0)
"""The topics' hash is compared with the next heartbeat."""

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


class Heads(Struct, frozen=True, gc=False):
    """The numbers of a group.

    Args:
        group_epoch: Grows whenever a new assignment is needed.
        metadata_hash: Of the subscribed topics when the epoch was written.
        assignment_epoch: The group's epoch when the target was computed.
        assignment_timestamp_ms: When that was; 0 when unknown.
        topics: Of the record that releases without a hash write, by name.
        has_topic_record: Whether the log has such a record.
        unreconciled_count: Members that are not where the target wants them.
        classic_count: Members of the classic protocol.
        is_homogeneous: Whether all members subscribe to the same topics, as far as Kafka knows: it
            looks when a member changes, not when an expression does.
        state: What follows from all of it.
    """

    group_epoch: int
    assignment_epoch: int
    metadata_hash: int = 0
    assignment_timestamp_ms: int = 0
    topics: tuple[TopicMetadata, ...] = ()
    has_topic_record: bool = False
    unreconciled_count: int = 0
    classic_count: int = 0
    is_homogeneous: bool = True
    state: ConsumerGroupState = ConsumerGroupState.EMPTY


class ConsumerGroup:
    """One consumer group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        profile: Of the coordinator.

    Attributes:
        members: By id.
        targets: What each member shall have; one without an entry shall have nothing.
        static_members: Instance id to member id.
        topic_counts: How many members name a topic, and how many expressions match it.
        assignor_counts: How many members would like an assignor.
        partition_epochs: The epoch of the member that has a partition, by topic id and number.
        protocol_counts: How many classic members support a protocol.
        regex_counts: How many members subscribe by an expression.
        resolved: What each expression matched.
        refresh: When the topics' hash is compared again at the latest, and the group epoch that
            was written when it last was; no part of the log, so a load begins anew.
        seen_version: Of the topics when it was last compared or asked for.
    """

    __slots__ = (
        "_forgets_instance",
        "_heads",
        "assignor_counts",
        "group_id",
        "members",
        "partition_epochs",
        "protocol_counts",
        "refresh",
        "regex_counts",
        "resolved",
        "seen_version",
        "static_members",
        "targets",
        "topic_counts",
    )

    def __init__(self, timeline: Timeline, group_id: str, profile: Profile) -> None:
        self.group_id = group_id
        self._forgets_instance = profile.consumer_forgets_old_instance
        self.members = TimelineTable[str, ConsumerMember](timeline, java_string_hash)
        self.targets = TimelineTable[str, Target](timeline, java_string_hash)
        self.static_members = TimelineTable[str, str](timeline, java_string_hash)
        self.topic_counts = TimelineTable[str, SubscriptionCount](timeline, java_string_hash)
        self.assignor_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.regex_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.protocol_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.resolved = TimelineTable[str, ResolvedRegex](timeline, java_string_hash)
        self.partition_epochs = TimelineTable[tuple[bytes, int], int](timeline, _no_order)
        epoch = profile.consumer_first_epoch
        self._heads = TimelineValue(timeline, Heads(epoch, epoch))
        self.refresh = NOT_CHECKED
        self.seen_version = 0

    # -- questions -------------------------------------------------------------------------

    @property
    def heads(self) -> Heads:
        """The numbers as they are."""
        return self._heads.value

    def heads_as_of(self, position: int) -> Heads:
        """The numbers as a reader at that log position sees them."""
        return self._heads.as_of(position)

    @property
    def state(self) -> ConsumerGroupState:
        """The state as it is."""
        return self._heads.value.state

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return not self.members.entries

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        """The member of that instance id."""
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def lost_member(self, instance_id: str) -> str | None:
        """The id of a member that is gone, but still has that instance id; None as a rule.

        QUIRK: up to 4.3 a member that took another instance id left the old one behind.
        """
        member_id = self.static_members.get(instance_id)
        return member_id if member_id is not None and member_id not in self.members else None

    def target_of(self, member: ConsumerMember) -> Target:
        """What a member shall have by the last target; what a static one's predecessor should.

        Source: ConsumerGroup.targetAssignment.
        """
        member_id: str | None = member.member_id
        if member.instance_id is not None:
            member_id = self.static_members.get(member.instance_id)
        found = None if member_id is None else self.targets.get(member_id)
        return {} if found is None else found

    def partition_epoch(self, topic_id: bytes, partition: int) -> int:
        """The epoch of the member that has a partition, or UNOWNED."""
        return self.partition_epochs.entries.get((topic_id, partition), UNOWNED)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to that topic, by name or by expression."""
        return topic in self.topic_counts.entries

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

    def set_group_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Begin another epoch of the group."""
        self._set(replace(self.heads, group_epoch=epoch, metadata_hash=metadata_hash))

    def set_assignment_epoch(self, epoch: int, timestamp_ms: int) -> None:
        """The target is of that epoch now."""
        count = sum(not member.is_reconciled_to(epoch) for member in self.members.entries.values())
        self._set(
            replace(
                self.heads,
                assignment_epoch=epoch,
                assignment_timestamp_ms=timestamp_ms,
                unreconciled_count=count,
            )
        )

    def set_topics(self, topics: tuple[TopicMetadata, ...] | None) -> None:
        """The log has a record of these topics; None for none any more."""
        self._set(replace(self.heads, has_topic_record=topics is not None, topics=topics or ()))

    def put_target(self, member_id: str, target: Target) -> None:
        """Set what a member shall have."""
        self.targets.put(member_id, target)

    def remove_target(self, member_id: str) -> None:
        """Let a member have nothing."""
        self.targets.remove(member_id)

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
        if old is not None and old.instance_id is not None and self._forgets_instance:
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
        counts = self.topic_counts
        for topic in () if old is None else sorted(old.topics):
            counted_down(counts, topic, by_name=False)
        if resolved is not None:
            self.resolved.put(regex, resolved)
            for topic in sorted(resolved.topics):
                counted_up(counts, topic, by_name=False)

    # -- inside ----------------------------------------------------------------------------

    def _count(self, old: ConsumerMember | None, new: ConsumerMember | None) -> None:
        """Count topics, assignors and expressions of a member that changes."""
        counts = self.topic_counts
        old_names = frozenset[str]() if old is None else old.subscribed_topic_names
        new_names = frozenset[str]() if new is None else new.subscribed_topic_names
        if old_names != new_names:
            for topic in sorted(old_names):
                counted_down(counts, topic, by_name=True)
            for topic in sorted(new_names):
                counted_up(counts, topic, by_name=True)
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
        heads = self.heads
        epoch = heads.assignment_epoch
        count = heads.unreconciled_count
        count -= old is not None and not old.is_reconciled_to(epoch)
        count += new is not None and not new.is_reconciled_to(epoch)
        classic = heads.classic_count
        classic -= old is not None and old.classic is not None
        classic += new is not None and new.classic is not None
        alike = is_homogeneous(
            self.regex_counts.entries, self.topic_counts.entries, len(self.members)
        )
        self._set(
            replace(heads, unreconciled_count=count, classic_count=classic, is_homogeneous=alike)
        )

    def _set(self, heads: Heads) -> None:
        """The one door of the state. Source: ConsumerGroup.maybeUpdateGroupState."""
        if not self.members.entries:
            state = ConsumerGroupState.EMPTY
        elif heads.group_epoch > heads.assignment_epoch:
            state = ConsumerGroupState.ASSIGNING
        elif heads.unreconciled_count:
            state = ConsumerGroupState.RECONCILING
        else:
            state = ConsumerGroupState.STABLE
        self._heads.value = heads if heads.state is state else replace(heads, state=state)


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
