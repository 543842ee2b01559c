"""A group whose members subscribe to topics: what consumer and share groups have in common.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java.
"""

from collections.abc import Collection, Iterable
from typing import TypeVar

from msgspec.structs import replace

from coordinator_sim.coordinator.consumer.subscription import (
    SubscriptionCount,
    counted_down,
    counted_up,
)
from coordinator_sim.coordinator.epoch_group import EpochGroup, GroupEpochs, MemberT, TargetT
from coordinator_sim.coordinator.timeline import Timeline, TimelineTable
from coordinator_sim.kafka.partitioning import java_string_hash


class ModernEpochs(GroupEpochs, frozen=True, kw_only=True, gc=False):
    """The epochs of such a group.

    Args:
        is_homogeneous: Whether all members subscribe to the same topics, as of when a member last
            changed.
    """

    is_homogeneous: bool = True


ModernEpochsT = TypeVar("ModernEpochsT", bound=ModernEpochs)


class ModernGroup(EpochGroup[MemberT, TargetT, ModernEpochsT]):
    """A consumer or share group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        epochs: At first.

    Attributes:
        topic_counts: How many members name a topic, and how many expressions match it.
    """

    __slots__ = ("topic_counts",)

    def __init__(self, timeline: Timeline, group_id: str, epochs: ModernEpochsT) -> None:
        super().__init__(timeline, group_id, epochs)
        self.topic_counts = TimelineTable[str, SubscriptionCount](timeline, java_string_hash)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to that topic, by name or by expression."""
        return topic in self.topic_counts.entries

    def set_group_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Begin another epoch of the group."""
        self._update_state(replace(self.epochs, group_epoch=epoch, metadata_hash=metadata_hash))

    def check_removable(self) -> None:
        """Check that all other records of the group were removed before the group's.

        Raises:
            OperationAborted: one was not.

        Source: GroupMetadataManager.replay of ConsumerGroupMetadata and ShareGroupMetadata.
        """
        self.check_members_gone()
        self.check_targets_gone("the group is removed while it has targets")
        self.check_target_epoch_gone()

    def _count_names(self, old: Collection[str], new: Collection[str]) -> None:
        """Count the topics that a member named as those that it names now."""
        if set(old) != set(new):
            self._count_topics(old, new, by_name=True)

    def _count_topics(self, old: Iterable[str], new: Iterable[str], *, by_name: bool) -> None:
        for topic in sorted(old):
            counted_down(self.topic_counts, topic, by_name=by_name)
        for topic in sorted(new):
            counted_up(self.topic_counts, topic, by_name=by_name)
