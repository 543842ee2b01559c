"""A share group: what its records say, and what follows from them.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroup.java and modern/share/ShareGroup.java.
"""

from enum import Enum, unique
from typing import ClassVar

from msgspec.structs import replace

from coordinator_sim.assignors.share_contract import Target
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.modern.group import ModernEpochs, ModernGroup, is_homogeneous
from coordinator_sim.coordinator.share.member import NO_TARGET, ShareMember
from coordinator_sim.coordinator.timeline import Timeline
from coordinator_sim.kafka.profiles import Profile
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


class ShareGroup(ModernGroup[ShareMember, Target, ShareGroupEpochs]):
    """One share group.

    Args:
        timeline: Of the offsets partition; a group that is not in its table yet has its own.
        group_id: The group.
        profile: Of the coordinator.
    """

    group_type: ClassVar = SHARE
    __slots__ = ()

    def __init__(self, timeline: Timeline, group_id: str, profile: Profile) -> None:
        epoch = profile.consumer_first_epoch
        first = ShareGroupEpochs(group_epoch=epoch, assignment_epoch=epoch)
        super().__init__(timeline, group_id, first)

    @staticmethod
    def session_timeout_ms(config: CoordinatorConfig) -> int:
        """How long a session of a member is."""
        return config.group_share_session_timeout_ms

    def target_of(self, member_id: str) -> Target:
        """What a member shall have by the last target."""
        found = self.targets.get(member_id)
        return NO_TARGET if found is None else found

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
        self._derive(old, member)

    def remove_member(self, member_id: str) -> None:
        """Remove a member, if it is there. Source: ShareGroup.removeMember."""
        old = self.members.remove(member_id)
        if old is not None:
            self._derive(old, None)

    def _derive(self, old: ShareMember | None, new: ShareMember | None) -> None:
        """Count the topics of a member that changes, and who has not reached the target."""
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
