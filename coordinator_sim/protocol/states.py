"""The states of a classic group and the transitions between them.

Source: spec of kafka trunk, group-coordinator/.../classic/ClassicGroupState.java; the third state
is called `AwaitingSync` here and in our trace, and `CompletingRebalance` on the wire since 1.1.
"""

from enum import Enum, unique
from typing import Final


@unique
class GroupState(Enum):
    """A classic group's state, by its name in the trace."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    AWAITING_SYNC = "AwaitingSync"
    STABLE = "Stable"
    DEAD = "Dead"


# Names of their own: Python 3.11 takes some 60 ns to find a member by its class.
EMPTY: Final = GroupState.EMPTY
PREPARING_REBALANCE: Final = GroupState.PREPARING_REBALANCE
AWAITING_SYNC: Final = GroupState.AWAITING_SYNC
STABLE: Final = GroupState.STABLE
DEAD: Final = GroupState.DEAD

PREDECESSORS: Final[dict[GroupState, frozenset[GroupState]]] = {
    EMPTY: frozenset({PREPARING_REBALANCE}),
    PREPARING_REBALANCE: frozenset({STABLE, AWAITING_SYNC, EMPTY}),
    AWAITING_SYNC: frozenset({PREPARING_REBALANCE}),
    STABLE: frozenset({AWAITING_SYNC}),
    DEAD: frozenset(GroupState),
}
"""For each state, the states it may be entered from: Dead from any, itself included."""
