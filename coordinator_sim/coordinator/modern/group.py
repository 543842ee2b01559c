"""Groups whose members subscribe to topics: what consumer and share groups have in common.

Source: kafka 4.4, group-coordinator/.../modern/{ModernGroup,ModernGroupMember,
MemberState,SubscriptionCount}.java.
"""

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from enum import unique
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.coordinator.common.timeline import Timeline, TimelineTable
from coordinator_sim.coordinator.epoch_group import (
    EpochGroup,
    EpochMember,
    GroupEpochs,
    NumberedState,
    TargetT,
)
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.records import LogRecord


@unique
class MemberState(NumberedState):
    """How far a member has come on its way to its target, by the number in its record."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2
    UNKNOWN = 127


class ModernGroupMember(EpochMember, frozen=True, kw_only=True, gc=False):
    """A member of a consumer or share group.

    Args:
        state: How far it has come; a share member's is stable unless its record differs.
        subscribed_topic_names: Topics that it names.
    """

    state: MemberState = MemberState.STABLE
    subscribed_topic_names: Collection[str] = ()

    def is_reconciled_to(self, epoch: int) -> bool:
        """Whether nothing is left to do for the target of that epoch."""
        return self.state is MemberState.STABLE and self.member_epoch == epoch


class SubscriptionCount(Struct, frozen=True, gc=False):
    """How many members name a topic, and how many expressions match it."""

    by_name: int = 0
    by_regex: int = 0


TopicCounts = Mapping[str, SubscriptionCount]
"""Every topic that is subscribed to, existing or not."""


def _stepped(
    count: SubscriptionCount | None, step: int, *, by_name: bool
) -> SubscriptionCount | None:
    known = SubscriptionCount() if count is None else count
    if by_name:
        after = SubscriptionCount(known.by_name + step, known.by_regex)
    else:
        after = SubscriptionCount(known.by_name, known.by_regex + step)
    return after if after.by_name > 0 or after.by_regex > 0 else None


class CountedTopics:
    """A copy of a group's counts, to see what would be.

    Args:
        counts: Of the group as it is.
    """

    __slots__ = ("counts",)

    def __init__(self, counts: TopicCounts) -> None:
        self.counts = dict(counts)

    def step(self, topics: Iterable[str], step: int, *, by_name: bool) -> None:
        """Count the topics of one member, or of one expression."""
        for topic in topics:
            after = _stepped(self.counts.get(topic), step, by_name=by_name)
            if after is None:
                self.counts.pop(topic, None)
            else:
                self.counts[topic] = after

    def replace(self, old: ModernGroupMember, new: ModernGroupMember | None) -> None:
        """Count what a member named as what it names now."""
        self.step(old.subscribed_topic_names, -1, by_name=True)
        if new is not None:
            self.step(new.subscribed_topic_names, 1, by_name=True)


def is_homogeneous(regex_counts: Mapping[str, int], topics: TopicCounts, member_count: int) -> bool:
    """Whether all members subscribe to the same topics, as Kafka judges it by counting.

    Source: ConsumerGroup.subscriptionType.
    """
    if not regex_counts:
        return all(count.by_name == member_count for count in topics.values())
    if next(iter(regex_counts.values())) != member_count:
        return False
    return all(count.by_regex == 1 and count.by_name <= 0 for count in topics.values())


class ModernEpochs(GroupEpochs, frozen=True, kw_only=True, gc=False):
    """The epochs of such a group.

    Args:
        is_homogeneous: Whether all members subscribe to the same topics, as of when a member last
            changed.
    """

    is_homogeneous: bool = True


ModernMemberT = TypeVar("ModernMemberT", bound=ModernGroupMember)
ModernEpochsT = TypeVar("ModernEpochsT", bound=ModernEpochs)


class ModernGroup(EpochGroup[ModernMemberT, TargetT, ModernEpochsT]):
    """A consumer or share group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        epochs: At first.
        profile: Of the coordinator.

    Attributes:
        topic_counts: How many members name a topic, and how many expressions match it.
    """

    __slots__ = ("topic_counts",)

    def __init__(
        self, timeline: Timeline, group_id: str, epochs: ModernEpochsT, profile: Profile
    ) -> None:
        super().__init__(timeline, group_id, epochs, profile)
        self.topic_counts = TimelineTable[str, SubscriptionCount](timeline, java_string_hash)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to that topic, by name or by expression."""
        return topic in self.topic_counts.entries

    def set_group_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Begin another epoch of the group."""
        self._update_state(replace(self.epochs, group_epoch=epoch, metadata_hash=metadata_hash))

    @abstractmethod
    def group_record(self, epoch: int, metadata_hash: int) -> LogRecord:
        """Make the record of another epoch of the group."""

    def epoch_record(self) -> LogRecord:
        """Make the record of the current epoch."""
        return self.group_record(self.epochs.group_epoch, self.epochs.metadata_hash)

    def _replay_epoch(self, value: Any) -> None:  # noqa: ANN401 - of the group's records
        self.set_group_epoch(value.epoch, value.metadata_hash)

    def check_removable(self) -> None:
        """Source: GroupMetadataManager.replay of ConsumerGroupMetadata and ShareGroupMetadata."""
        self.check_no_members()
        self.check_no_targets("the group is removed while it has targets")
        self.check_no_target_epoch()

    def _count_names(self, old: ModernMemberT | None, new: ModernMemberT | None) -> None:
        """Count the topics that a member named as those that it names now."""
        before = () if old is None else old.subscribed_topic_names
        after = () if new is None else new.subscribed_topic_names
        if set(before) != set(after):
            self._count_topics(before, after, by_name=True)

    def _count_topics(self, old: Iterable[str], new: Iterable[str], *, by_name: bool) -> None:
        counts = self.topic_counts
        steps = [*((topic, -1) for topic in sorted(old)), *((topic, 1) for topic in sorted(new))]
        for topic, step in steps:
            after = _stepped(counts.entries.get(topic), step, by_name=by_name)
            if after is None:
                counts.remove(topic)
            else:
                counts.put(topic, after)
