"""A member whose topics the coordinator assigns: what consumer and share members have in common.

Source: kafka 4.4, group-coordinator/.../modern/ModernGroupMember.java and MemberState.java.
"""

from collections.abc import Collection
from enum import unique

from coordinator_sim.coordinator.epoch_group import EpochMember, NumberedState


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
