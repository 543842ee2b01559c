"""States of a member of the consumer protocol, and what it has or is to have.

Source: kafka 4.4, clients/.../consumer/internals/MemberState.java, and
AbstractMembershipManager.LocalAssignment.
"""

from enum import Enum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.effects import StreamsTasks

NO_TASKS: Final = StreamsTasks()
PartitionsById = dict[bytes, tuple[int, ...]]
"""Topic id -> numbers of its partitions, ascending."""


@unique
class MemberState(Enum):
    """State of a member."""

    # Enum's own hash is a Python function, called whenever a set of states is asked for one.
    __hash__ = object.__hash__

    UNSUBSCRIBED = "UNSUBSCRIBED"
    JOINING = "JOINING"
    RECONCILING = "RECONCILING"
    ACKNOWLEDGING = "ACKNOWLEDGING"
    STABLE = "STABLE"
    FENCED = "FENCED"
    PREPARE_LEAVING = "PREPARE_LEAVING"
    LEAVING = "LEAVING"
    FATAL = "FATAL"
    STALE = "STALE"


_IN_GROUP: Final = (
    MemberState.JOINING,
    MemberState.STABLE,
    MemberState.RECONCILING,
    MemberState.ACKNOWLEDGING,
)
_LEAVES: Final = (MemberState.PREPARE_LEAVING, MemberState.LEAVING)
TAKES_ASSIGNMENT: Final = frozenset(_IN_GROUP)
"""States in which a new assignment is taken; in all others it is ignored."""
OUT_OF_GROUP: Final = frozenset(
    {MemberState.UNSUBSCRIBED, MemberState.FENCED, MemberState.FATAL, MemberState.STALE}
)
"""States of a member that is in no group, and sends no heartbeats."""
BEATS_AT_ONCE: Final = frozenset(
    {MemberState.ACKNOWLEDGING, MemberState.LEAVING, MemberState.JOINING}
)
"""States whose heartbeat does not wait for the interval."""
PREVIOUS: Final[dict[MemberState, frozenset[MemberState]]] = {
    MemberState.STABLE: TAKES_ASSIGNMENT - {MemberState.STABLE},
    MemberState.RECONCILING: TAKES_ASSIGNMENT,
    MemberState.ACKNOWLEDGING: frozenset({MemberState.RECONCILING}),
    MemberState.FATAL: frozenset((*_IN_GROUP, *_LEAVES, MemberState.UNSUBSCRIBED)),
    MemberState.FENCED: frozenset((*_IN_GROUP, *_LEAVES)),
    MemberState.JOINING: frozenset(
        {MemberState.FENCED, MemberState.UNSUBSCRIBED, MemberState.STALE}
    ),
    MemberState.PREPARE_LEAVING: frozenset((*_IN_GROUP, MemberState.UNSUBSCRIBED)),
    MemberState.LEAVING: frozenset({MemberState.PREPARE_LEAVING}),
    MemberState.UNSUBSCRIBED: frozenset((*_LEAVES, MemberState.FENCED)),
    MemberState.STALE: frozenset({MemberState.LEAVING}),
}
"""State -> the states that it may follow; every state may follow itself."""


class LocalAssignment(Struct, frozen=True):
    """Partitions with a number of the member's own, which tells equal assignments apart.

    Args:
        epoch: Grows by one with every change of the target; -1 for no assignment.
        partitions: The partitions.
        tasks: The tasks of a member of a streams group, which has no partitions here.
    """

    epoch: int
    partitions: PartitionsById
    tasks: StreamsTasks = NO_TASKS

    def changed_to(
        self, partitions: PartitionsById, tasks: StreamsTasks
    ) -> "LocalAssignment | None":
        """Return the assignment that follows; None if the same is assigned already."""
        if self.epoch != NO_EPOCH and partitions == self.partitions and tasks == self.tasks:
            return None
        return LocalAssignment(self.epoch + 1, partitions, tasks)


NO_EPOCH: Final = -1
NO_ASSIGNMENT: Final = LocalAssignment(NO_EPOCH, {})
"""The assignment of a member that was assigned nothing, not even the empty set."""
