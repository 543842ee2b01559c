"""A consumer group and its members: what their records say, and what follows from them.

The group changes by the replay of records alone. Its state is derived after each change.
Everything lives on the timeline of the offsets partition: readers see what is committed, and a
refused append takes it back.

Topic ids and partitions are in ascending order in every record, where Kafka has the order of its
hash maps. UNSPECIFIED: no client sees that order, and a load does not depend on it.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java and modern/consumer/{ConsumerGroup,
ConsumerGroupMember,ResolvedRegularExpression}.java.
"""

from collections.abc import Iterable, Mapping
from enum import Enum, unique
from typing import Any, ClassVar, Final

from msgspec import Struct, field
from msgspec.structs import replace

from coordinator_sim.coordinator.common.timeline import LATEST, Timeline, TimelineTable
from coordinator_sim.coordinator.epoch_group import AssignmentEpochs, RecordTypes
from coordinator_sim.coordinator.modern.group import (
    MemberState,
    ModernEpochs,
    ModernGroup,
    ModernGroupMember,
    is_homogeneous,
)
from coordinator_sim.coordinator.topics import KnownTopics
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.orders.iteration_order import java_bucket, java_string_key
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.consumer_group_records import (
    ClassicMemberMetadata,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupKey,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    TopicMetadata,
    TopicPartition,
    TopicPartitions,
)
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.epoch_records import CONSUMER

Epochs = Mapping[bytes, Mapping[int, int]]
"""Partitions by topic id, each with the epoch at which the member got it."""
Owned = tuple[tuple[bytes, tuple[int, ...]], ...]
"""Partitions that a member reports."""

NONE_OWNED: Final[Epochs] = {}
"""No partitions: what a member has before a record tells it; such a record makes another map."""


class ConsumerGroupMember(ModernGroupMember, frozen=True, kw_only=True, gc=False):
    """A member of a consumer group.

    Args:
        subscribed_topic_names: Topics that it named.
        subscribed_topic_regex: Expression for more topics; empty or None for none.
        server_assignor: The assignor that it would like.
        assigned: What it has and may use.
        pending_revocation: What it has and must give up.
        classic: What a member of the classic protocol has beside; None for others.
    """

    subscribed_topic_names: frozenset[str] = frozenset()
    subscribed_topic_regex: str | None = ""
    server_assignor: str | None = None
    assigned: Epochs = field(default_factory=lambda: NONE_OWNED)
    pending_revocation: Epochs = NONE_OWNED
    classic: ClassicMemberMetadata | None = None

    @property
    def uses_classic_protocol(self) -> bool:
        """Whether it joins by JoinGroup."""
        return self.classic is not None

    @property
    def is_revoking(self) -> bool:
        """Whether it has partitions that it must give up."""
        return self.state is MemberState.UNREVOKED_PARTITIONS

    def protocol_names(self) -> tuple[str, ...]:
        """The protocols that a classic member supports, as it prefers them; none of others."""
        classic = self.classic
        return () if classic is None else tuple([each.name for each in classic.supported_protocols])


def with_metadata(
    member: ConsumerGroupMember, value: ConsumerGroupMemberMetadataValue
) -> ConsumerGroupMember:
    """The member as its record says. Source: ConsumerGroupMember.Builder.updateWith."""
    return replace(
        member,
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=value.classic_member_metadata,
    )


def with_assignment(
    member: ConsumerGroupMember, value: ConsumerGroupCurrentMemberAssignmentValue
) -> ConsumerGroupMember:
    """The member with what its record says that it has. Source: as above."""
    return replace(
        member,
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state),
        assigned=_epochs(value.assigned_partitions, value.member_epoch),
        pending_revocation=_epochs(value.partitions_pending_revocation, value.member_epoch),
    )


def _epochs(topics: Iterable[TopicPartitions], member_epoch: int) -> Epochs:
    """Partitions with their epochs; where the record has none, the member's own.

    Source: Utils.assignmentFromTopicPartitions.
    """
    usual = max(member_epoch, 0)
    found: dict[bytes, dict[int, int]] = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            found[topic.topic_id] = dict.fromkeys(topic.partitions, usual)
        else:
            found[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return found


def owns_any(owned: Owned | None, partitions: Epochs) -> bool:
    """Whether a member that reports these still has some of the partitions.

    A member that reports nothing at all says that it has what it had.

    Source: CurrentAssignmentBuilder.ownsRevokedPartitions.
    """
    if owned is None:
        return True
    return any(
        index in held
        for topic_id, indexes in owned
        if (held := partitions.get(topic_id)) is not None
        for index in indexes
    )


def is_subset(owned: Owned | None, partitions: Epochs) -> bool:
    """Whether a member reports no more than these. Source: GroupMetadataManager.isSubset."""
    if owned is None:
        return False
    for topic_id, indexes in owned:
        held = partitions.get(topic_id)
        if held is None or any(index not in held for index in indexes):
            return False
    return True


_FIRST_CAPACITY: Final = 16


class ResolvedRegex(Struct, frozen=True, gc=False):
    """What an expression matched.

    Args:
        topics: Names.
        version: Of the topics that were looked through.
        timestamp_ms: When that was.
    """

    topics: frozenset[str] = frozenset()
    version: int = -1
    timestamp_ms: int = -1


class CopiedCounts:
    """How many members would like each name, in the order of a HashMap made of Kafka's table.

    QUIRK: of two assignors that are liked equally the one that the map yields first wins, and the
    order of that map depends on how it came about.

    Args:
        counts: Of the group as it is, in the order of its table.

    Source: ConsumerGroup.computePreferredServerAssignor and computeSubscribedRegularExpressions.
    """

    __slots__ = ("_capacity", "_counts")

    def __init__(self, counts: Iterable[tuple[str, int]]) -> None:
        self._counts = list(counts)
        wanted = len(self._counts) * 4 // 3 + 1
        self._capacity = 1 << (wanted - 1).bit_length() if self._counts else _FIRST_CAPACITY

    def replace(self, old: str | None, new: str | None) -> None:
        """Count what a member liked as what it likes now; None is nothing."""
        if old is not None:
            self._step(old, -1)
        if new is not None:
            self._step(new, 1)

    def _step(self, name: str, step: int) -> None:
        for place, (known, count) in enumerate(self._counts):
            if known == name:
                self._counts[place] = (name, count + step)
                if count + step == 0:
                    del self._counts[place]
                return
        # HashMap.compute puts a new key at the head of its bucket, and grows before it does.
        while len(self._counts) * 4 > self._capacity * 3:
            self._capacity *= 2
        self._counts.insert(0, (name, step))

    def copied(self) -> "CopiedCounts":
        """The same in the order of a HashMap made of the table."""
        self._counts.sort(key=lambda entry: java_bucket(java_string_hash(entry[0]), self._capacity))
        return self

    def names(self) -> list[str]:
        """The names in their order."""
        return [name for name, _ in self._counts]

    def winner(self) -> str | None:
        """The name that is liked most; None where nobody asks for one."""
        return max(self._counts, key=lambda entry: entry[1])[0] if self._counts else None


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


class TopicsSeen(Struct, frozen=True):
    """What a look at the topics found.

    Args:
        has_changed: Whether they are not as they were.
        metadata_hash: For the record of the epoch; 0 where topics have a record of their own.
        records: That record, where it is to be written; it comes before the epoch's.
        topics: What it says; None where there is a hash.
    """

    has_changed: bool
    metadata_hash: int = 0
    records: tuple[LogRecord, ...] = ()
    topics: tuple[TopicMetadata, ...] | None = None


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


class ConsumerGroup(ModernGroup[ConsumerGroupMember, Target, ConsumerGroupEpochs]):
    """One consumer group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        profile: Of the coordinator.

    Attributes:
        assignor_counts: How many members would like an assignor.
        partition_epochs: The epoch of the member that has a partition, by topic id and number.
        protocol_counts: How many classic members support a protocol.
        regex_counts: How many members subscribe by an expression.
        resolved: What each expression matched.
    """

    group_type: ClassVar = CONSUMER
    session_setting: ClassVar = "group_consumer_session_timeout_ms"
    no_target: ClassVar[Target] = {}
    record_types: ClassVar = RecordTypes(
        group_key=ConsumerGroupMetadataKey,
        target_epoch_key=ConsumerGroupTargetAssignmentMetadataKey,
        target_epoch_value=ConsumerGroupTargetAssignmentMetadataValue,
        member_key=ConsumerGroupMemberMetadataKey,
        target_key=ConsumerGroupTargetAssignmentMemberKey,
        assignment_key=ConsumerGroupCurrentMemberAssignmentKey,
        new_member=lambda member_id: ConsumerGroupMember(member_id=member_id),
        with_metadata=with_metadata,
        with_assignment=with_assignment,
        nothing={"assigned": NONE_OWNED, "pending_revocation": NONE_OWNED},
    )
    __slots__ = (
        "assignor_counts",
        "partition_epochs",
        "protocol_counts",
        "regex_counts",
        "resolved",
    )

    def __init__(self, timeline: Timeline, group_id: str, profile: Profile) -> None:
        epoch = profile.consumer_first_epoch
        first = ConsumerGroupEpochs(group_epoch=epoch, assignment_epoch=epoch)
        super().__init__(timeline, group_id, first, profile)
        self.assignor_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.regex_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.protocol_counts = TimelineTable[str, int](timeline, java_string_hash)
        self.resolved = TimelineTable[str, ResolvedRegex](timeline, java_string_hash)
        self.partition_epochs = TimelineTable[tuple[bytes, int], int](timeline, _no_order)

    # -- questions -------------------------------------------------------------------------

    @property
    def state(self) -> ConsumerGroupState:
        """The current state."""
        return self._epochs.value.state

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

    def assignment_epochs(self, member_id: str) -> AssignmentEpochs:
        """Reads the epochs at which a member got its partitions."""
        member = self.members.entries[member_id]
        held, pending = member.assigned, member.pending_revocation

        def epoch_of(_topic: str, topic_id: bytes, partition: int) -> int | None:
            epoch = held.get(topic_id, {}).get(partition)
            return pending.get(topic_id, {}).get(partition) if epoch is None else epoch

        return epoch_of

    def topics_seen(self, topics: KnownTopics, names: Iterable[str]) -> TopicsSeen:
        """Compare topics with those that the group's epoch was written with.

        From 4.1 on a hash of them stands in the record of the epoch; before, a record of its own
        has them by name, id and number of partitions.

        Args:
            topics: Of the cluster.
            names: What members will subscribe to; those that do not exist count for nothing.

        Source: ModernGroup.computeMetadataHash; 4.0, ModernGroup.computeSubscriptionMetadata and
        GroupMetadataManager.consumerGroupHeartbeat.
        """
        if self.profile.consumer_hashes_topics:
            metadata_hash = topics.hash_of_all(names)
            return TopicsSeen(metadata_hash != self.epochs.metadata_hash, metadata_hash)
        by_name = topics.by_name
        existing = sorted((name for name in names if name in by_name), key=java_string_key)
        found = tuple(
            TopicMetadata(by_name[name].topic_id, name, by_name[name].partition_count)
            for name in existing
        )
        if found == self.epochs.topics:
            return TopicsSeen(has_changed=False, topics=found)
        return TopicsSeen(has_changed=True, records=(self.topics_record(found),), topics=found)

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

    def resolve(self, regex: str, resolved: ResolvedRegex | None) -> None:
        """Remember what an expression matched; None forgets it.

        Source: ConsumerGroup.updateResolvedRegularExpression and removeResolvedRegularExpression.
        """
        old = self.resolved.remove(regex)
        if resolved is not None:
            self.resolved.put(regex, resolved)
        matched = () if resolved is None else resolved.topics
        self._count_topics(() if old is None else old.topics, matched, by_name=False)

    # -- records ---------------------------------------------------------------------------

    def member_record(self, member: ConsumerGroupMember) -> LogRecord:
        """Make the record of a member's metadata."""
        names = tuple(sorted(member.subscribed_topic_names, key=java_string_key))
        value = ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=names,
            subscribed_topic_regex=member.subscribed_topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=member.classic,
        )
        return LogRecord(ConsumerGroupMemberMetadataKey(self.group_id, member.member_id), value)

    def group_record(self, epoch: int, metadata_hash: int) -> LogRecord:
        """Make the record of another epoch of the group."""
        value = ConsumerGroupMetadataValue(epoch, metadata_hash)
        return LogRecord(ConsumerGroupMetadataKey(self.group_id), value)

    def target_record(self, member_id: str, target: Target) -> LogRecord:
        """Make the record of what a member shall have."""
        topics = tuple(TopicPartition(topic_id, target[topic_id]) for topic_id in sorted(target))
        value = ConsumerGroupTargetAssignmentMemberValue(topics)
        return LogRecord(ConsumerGroupTargetAssignmentMemberKey(self.group_id, member_id), value)

    def assignment_record(self, member: ConsumerGroupMember) -> LogRecord:
        """Make the record of what a member has, with its epochs where those are stored."""
        value = ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=int(member.state),
            assigned_partitions=self._stored(member.assigned),
            partitions_pending_revocation=self._stored(member.pending_revocation),
        )
        key = ConsumerGroupCurrentMemberAssignmentKey(self.group_id, member.member_id)
        return LogRecord(key, value)

    def _stored(self, held: Epochs) -> tuple[TopicPartitions, ...]:
        topics = []
        for topic_id in sorted(held):
            epochs = held[topic_id]
            partitions = tuple(sorted(epochs))
            stored = tuple(epochs[index] for index in partitions)
            has_epochs = self.profile.consumer_stores_assignment_epochs
            topics.append(TopicPartitions(topic_id, partitions, stored if has_epochs else None))
        return tuple(topics)

    def regex_record(self, regex: str, resolved: ResolvedRegex) -> LogRecord:
        """Make the record of what an expression matched."""
        value = ConsumerGroupRegularExpressionValue(
            topics=tuple(sorted(resolved.topics, key=java_string_key)),
            version=resolved.version,
            timestamp=resolved.timestamp_ms,
        )
        return LogRecord(ConsumerGroupRegularExpressionKey(self.group_id, regex), value)

    def regex_tombstone(self, regex: str) -> LogRecord:
        """Make the tombstone of an expression that no member subscribes by."""
        return LogRecord(ConsumerGroupRegularExpressionKey(self.group_id, regex), None)

    def topics_record(self, topics: tuple[TopicMetadata, ...]) -> LogRecord:
        """Make the record of the group's topics, in releases without a hash of them."""
        value = ConsumerGroupPartitionMetadataValue(topics)
        return LogRecord(ConsumerGroupPartitionMetadataKey(self.group_id), value)

    def topics_tombstone(self) -> LogRecord:
        """The topics of the group are stored as a hash now, or the group goes."""
        return LogRecord(ConsumerGroupPartitionMetadataKey(self.group_id), None)

    def _other_keys(self) -> tuple[ConsumerGroupKey, ...]:
        regexes = self.resolved.keys()
        return (
            *(ConsumerGroupRegularExpressionKey(self.group_id, each) for each in regexes),
            ConsumerGroupPartitionMetadataKey(self.group_id),
        )

    def _target_from(self, value: ConsumerGroupTargetAssignmentMemberValue) -> Target:
        return {each.topic_id: tuple(sorted(each.partitions)) for each in value.topic_partitions}

    def _replay_other(self, key: Any, value: Any) -> None:  # noqa: ANN401 - as in the base
        """Apply a record of topics or of an expression."""
        if isinstance(key, ConsumerGroupRegularExpressionKey):
            resolved = None
            if value is not None:
                resolved = ResolvedRegex(frozenset(value.topics), value.version, value.timestamp)
            self.resolve(key.regular_expression, resolved)
        elif value is None:
            self.set_topics(None)
        else:
            ordered = sorted(value.topics, key=lambda each: java_string_key(each.topic_name))
            # Records of the first releases have racks, which do not count.
            self.set_topics(tuple(replace(each, partition_metadata=()) for each in ordered))

    # -- inside ----------------------------------------------------------------------------

    def _replace(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
        """Source: ConsumerGroup.updateMember and removeMember."""
        self._count(old, new)
        if old is not None:
            self._release(old)
        if new is not None:
            self._take(new, new.assigned)
            self._take(new, new.pending_revocation)
        self._derive(old, new)

    def _forgets_instance(self) -> bool:
        return self.profile.consumer_forgets_old_instance

    def _count(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
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

    def _release(self, member: ConsumerGroupMember) -> None:
        """Free the partitions that a member has, unless another has them at another epoch.

        Source: ConsumerGroup.removePartitionEpochs.
        """
        epochs = self.partition_epochs
        for held in (member.assigned, member.pending_revocation):
            for topic_id, partitions in held.items():
                for index in partitions:
                    if epochs.entries.get((topic_id, index)) == member.member_epoch:
                        epochs.remove((topic_id, index))

    def _take(self, member: ConsumerGroupMember, held: Epochs) -> None:
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

    def _derive(self, old: ConsumerGroupMember | None, new: ConsumerGroupMember | None) -> None:
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


def _assignor(member: ConsumerGroupMember | None) -> str | None:
    return None if member is None else member.server_assignor


def _regex(member: ConsumerGroupMember | None) -> str | None:
    return None if member is None else member.subscribed_topic_regex or None


def _shift(counts: TimelineTable[str, int], key: str, step: int) -> None:
    count = counts.entries.get(key, 0) + step
    if count:
        counts.put(key, count)
    else:
        counts.remove(key)
