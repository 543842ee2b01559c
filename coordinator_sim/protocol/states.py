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


PREDECESSORS: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset(
        {GroupState.STABLE, GroupState.AWAITING_SYNC, GroupState.EMPTY}
    ),
    GroupState.AWAITING_SYNC: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.AWAITING_SYNC}),
    GroupState.DEAD: frozenset(GroupState),
}
"""For each state, the states it may be entered from: Dead from any, itself included."""
