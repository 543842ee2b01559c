"""The states of a classic group and the transitions between them.

Source: spec of kafka trunk, group-coordinator/.../classic/ClassicGroupState.java; the third state
is called `AwaitingSync` here and in our trace, and `CompletingRebalance` on the wire since 1.1.
"""

from enum import Enum, IntEnum, unique
from typing import Final

from msgspec import Struct


@unique
class GroupState(Enum):
    """A classic group's state, by its name in the trace.

    `STATE_RULES` says what is done in each state, and what ends it.
    """

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    AWAITING_SYNC = "AwaitingSync"
    STABLE = "Stable"
    DEAD = "Dead"


@unique
class GroupProtocol(Enum):
    """A protocol by its name in `group.coordinator.rebalance.protocols`.

    The classic one is always on; features switch the others on.
    """

    CLASSIC = "classic"
    CONSUMER = "consumer"
    STREAMS = "streams"
    SHARE = "share"


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


class StateRules(Struct, frozen=True, kw_only=True):
    """What a group does in a state, and what ends the state.

    Args:
        meaning: When a group is in the state.
        actions: How requests are answered.
        exits: (next state, what triggers it).
    """

    meaning: str
    actions: tuple[str, ...]
    exits: tuple[tuple[GroupState, str], ...] = ()


STATE_RULES: Final[dict[GroupState, StateRules]] = {
    EMPTY: StateRules(
        meaning="The group has no members. It stays until its last offset has expired.",
        actions=(
            "JoinGroup of a new member is taken",
            "SyncGroup, Heartbeat, LeaveGroup and OffsetCommit of a member: UNKNOWN_MEMBER_ID",
            "OffsetCommit without a generation is taken, as simple consumers send it",
            "OffsetFetch is answered",
        ),
        exits=(
            (PREPARING_REBALANCE, "a member joins"),
            (DEAD, "the last offset expired or was deleted"),
            (DEAD, "DeleteGroups"),
            (DEAD, "the partition is led by another broker"),
        ),
    ),
    PREPARING_REBALANCE: StateRules(
        meaning="Members are asked to join the next generation.",
        actions=(
            "JoinGroup is parked until all have joined or the rebalance timeout is over",
            "Heartbeat and SyncGroup: REBALANCE_IN_PROGRESS, which asks the member to join",
            "LeaveGroup removes the member",
            "OffsetCommit of the last generation is taken; OffsetFetch is answered",
        ),
        exits=(
            (AWAITING_SYNC, "all known members have joined, or the time is over and some have"),
            (EMPTY, "all members have left or failed"),
            (DEAD, "the partition is led by another broker"),
        ),
    ),
    AWAITING_SYNC: StateRules(
        meaning="A generation has begun and waits for the assignment of its leader.",
        actions=(
            "SyncGroup of a follower is parked until the leader brings the assignment",
            "Heartbeat is answered, and restarts the session; up to 2.6.0 REBALANCE_IN_PROGRESS",
            "OffsetCommit: REBALANCE_IN_PROGRESS; OffsetFetch is answered",
        ),
        exits=(
            (STABLE, "the leader's SyncGroup is stored"),
            (PREPARING_REBALANCE, "a new member joins, or one with other metadata"),
            (PREPARING_REBALANCE, "a member leaves or fails"),
            (PREPARING_REBALANCE, "not all members have sent SyncGroup in time"),
            (PREPARING_REBALANCE, "the assignment could not be stored"),
            (DEAD, "the partition is led by another broker"),
        ),
    ),
    STABLE: StateRules(
        meaning="Every member has its assignment.",
        actions=(
            "SyncGroup is answered with the assignment",
            "Heartbeat is answered, and restarts the session",
            "JoinGroup of a follower with the same metadata is answered with this generation",
            "OffsetCommit of this generation is taken; OffsetFetch is answered",
        ),
        exits=(
            (PREPARING_REBALANCE, "a new member joins, or one with other metadata"),
            (PREPARING_REBALANCE, "the leader joins again"),
            (PREPARING_REBALANCE, "a member leaves or fails"),
            (DEAD, "the partition is led by another broker"),
        ),
    ),
    DEAD: StateRules(
        meaning="The group has no members, and its metadata is being removed.",
        actions=(
            "any request of a member: COORDINATOR_NOT_AVAILABLE, or UNKNOWN_MEMBER_ID up to 2.2",
            "OffsetFetch is answered",
        ),
    ),
}
"""What is done in each state. Source: the comments of kafka trunk, ClassicGroupState.java."""


@unique
class StreamsStatus(IntEnum):
    """Statuses of a streams group in a heartbeat response.

    Source: StreamsGroupHeartbeatResponse.Status.
    """

    STALE_TOPOLOGY = 0
    MISSING_SOURCE_TOPICS = 1
    INCORRECTLY_PARTITIONED_TOPICS = 2
    MISSING_INTERNAL_TOPICS = 3
    SHUTDOWN_APPLICATION = 4
    ASSIGNMENT_DELAYED = 5
    MISSING_CLIENT_TAGS = 6
