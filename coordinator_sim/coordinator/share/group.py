"""A share group: what its records say, and what follows from them.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java and modern/share/ShareGroup.java.
"""

from enum import Enum, unique

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import Target
from coordinator_sim.coordinator.consumer.group import NOT_CHECKED
from coordinator_sim.coordinator.consumer.subscription import (
    SubscriptionCount,
    counted_down,
    counted_up,
    is_homogeneous,
)
from coordinator_sim.coordinator.share.member import NO_TARGET, ShareMember
from coordinator_sim.coordinator.timeline import Timeline, TimelineTable, TimelineValue
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.profiles import Profile


@unique
class ShareGroupState(Enum):
    """The states of a group by their names on the wire; Dead is never entered."""

    EMPTY = "Empty"
    STABLE = "Stable"
    DEAD = "Dead"


class ShareHeads(Struct, frozen=True, gc=False):
    """The numbers of a group.

    Args:
        group_epoch: Grows whenever a new assignment is needed.
        metadata_hash: Of the subscribed topics when the epoch was written.
        assignment_epoch: The group's epoch when the target was computed.
        assignment_timestamp_ms: When that was; 0 when unknown.
        is_homogeneous: Whether all members subscribe to the same topics, as of when a member last
            changed.
        state: Whether there are members.
    """

    group_epoch: int
    assignment_epoch: int
    metadata_hash: int = 0
    assignment_timestamp_ms: int = 0
    is_homogeneous: bool = True
    state: ShareGroupState = ShareGroupState.EMPTY


class ShareGroup:
    """One share group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        profile: Of the coordinator.

    Attributes:
        members: By id.
        targets: What each member shall have; one without an entry shall have nothing.
        topic_counts: How many members name a topic.
        refresh: When the topics' hash is compared again at the latest, and the group epoch that
            was written when it last was; no part of the log, so a load begins anew.
        seen_version: Of the topics when it was last compared or asked for.
    """

    __slots__ = (
        "_heads",
        "group_id",
        "members",
        "refresh",
        "seen_version",
        "targets",
        "topic_counts",
    )

    def __init__(self, timeline: Timeline, group_id: str, profile: Profile) -> None:
        self.group_id = group_id
        self.members = TimelineTable[str, ShareMember](timeline, java_string_hash)
        self.targets = TimelineTable[str, Target](timeline, java_string_hash)
        self.topic_counts = TimelineTable[str, SubscriptionCount](timeline, java_string_hash)
        epoch = profile.consumer_first_epoch
        self._heads = TimelineValue(timeline, ShareHeads(epoch, epoch))
        self.refresh = NOT_CHECKED
        self.seen_version = 0

    # -- questions -------------------------------------------------------------------------

    @property
    def heads(self) -> ShareHeads:
        """The numbers as they are."""
        return self._heads.value

    def heads_as_of(self, position: int) -> ShareHeads:
        """The numbers as a reader at that log position sees them."""
        return self._heads.as_of(position)

    @property
    def is_empty(self) -> bool:
        """Whether there are no members."""
        return not self.members.entries

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to that topic."""
        return topic in self.topic_counts.entries

    def target_of(self, member_id: str) -> Target:
        """What a member shall have by the last target."""
        found = self.targets.get(member_id)
        return NO_TARGET if found is None else found

    # -- changes ---------------------------------------------------------------------------

    def set_group_epoch(self, epoch: int, metadata_hash: int) -> None:
        """Begin another epoch of the group."""
        self._heads.value = replace(self.heads, group_epoch=epoch, metadata_hash=metadata_hash)

    def set_assignment_epoch(self, epoch: int, timestamp_ms: int) -> None:
        """The target is of that epoch now."""
        self._heads.value = replace(
            self.heads, assignment_epoch=epoch, assignment_timestamp_ms=timestamp_ms
        )

    def put_target(self, member_id: str, target: Target) -> None:
        """Set what a member shall have."""
        self.targets.put(member_id, target)

    def remove_target(self, member_id: str) -> None:
        """Let a member have nothing."""
        self.targets.remove(member_id)

    def joined(self, member_id: str) -> ShareMember:
        """The member of that id; one that is not there comes without anything.

        Source: ShareGroup.getOrMaybeCreateMember.
        """
        member = self.members.get(member_id)
        if member is None:
            member = ShareMember(member_id=member_id)
            self.put_member(member)
        return member

    def put_member(self, member: ShareMember) -> None:
        """Add or replace a member. Source: ShareGroup.updateMember."""
        old = self.members.get(member.member_id)
        self.members.put(member.member_id, member)
        self._count(() if old is None else old.topic_names, member.topic_names)

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is there. Source: ShareGroup.removeMember."""
        old = self.members.remove(member_id)
        if old is not None:
            self._count(old.topic_names, ())

    # -- inside ----------------------------------------------------------------------------

    def _count(self, old: tuple[str, ...], new: tuple[str, ...]) -> None:
        """Count the topics of a member that changes."""
        counts = self.topic_counts
        if set(old) != set(new):
            for topic in sorted(old):
                counted_down(counts, topic, by_name=True)
            for topic in sorted(new):
                counted_up(counts, topic, by_name=True)
        self._heads.value = replace(
            self.heads,
            is_homogeneous=is_homogeneous({}, counts.entries, len(self.members)),
            state=ShareGroupState.STABLE if self.members.entries else ShareGroupState.EMPTY,
        )
