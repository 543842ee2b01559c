"""The table of states, and the offsets partition of a group."""

from itertools import product

import pytest

from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.errors import IllegalTransition
from coordinator_sim.harness.ids import SeededIds
from coordinator_sim.protocol.partitioning import java_string_hash, partition_for
from coordinator_sim.protocol.profiles import DEFAULT_PROFILE
from coordinator_sim.protocol.states import GroupState

EMPTY, PREPARING, SYNCING, STABLE, DEAD = (
    GroupState.EMPTY,
    GroupState.PREPARING_REBALANCE,
    GroupState.AWAITING_SYNC,
    GroupState.STABLE,
    GroupState.DEAD,
)
LEGAL = {
    *product((STABLE, SYNCING, EMPTY), (PREPARING,)),
    *product((PREPARING,), (EMPTY, SYNCING)),
    (SYNCING, STABLE),
    *product(GroupState, (DEAD,)),
}
GROUP_IDS = (
    ("", 0, 0),
    ("a", 97, 47),
    ("groupId", 293428218, 18),
    ("otherGroup", -204443313, 13),
    ("my-group", -1906497762, 12),
    ("connect-cluster", 1440343063, 13),
    ("group-éè", 506317613, 13),
    ("消费者组", 871131088, 38),
    ("group-😀", 508083057, 7),
    ("🚀🚀", 1705651974, 24),
    ("𐀀", 1770496, 46),
    ("group-ajxoaS", -2147483648, 0),
)


@pytest.mark.parametrize(("group_id", "hashed", "partition"), GROUP_IDS)
def test_group_lives_on_the_partition_of_its_java_hash(
    group_id: str, hashed: int, partition: int
) -> None:
    """PART-001, PART-014: 50 partitions; the hash's absolute value, with 0 for the smallest."""
    assert (java_string_hash(group_id), partition_for(group_id, 50)) == (hashed, partition)


@pytest.mark.parametrize(("before", "after"), list(product(GroupState, GroupState)))
def test_transition_is_made_or_refused(before: GroupState, after: GroupState) -> None:
    """STATE-001, STATE-002: the steps of the table are made, all others are refused."""
    runtime = Runtime(CoordinatorConfig(), DEFAULT_PROFILE, SeededIds(), None)
    group = Group(runtime, "g", 0)
    group.state = before
    if (before, after) in LEGAL:
        group._transition(after)
        assert group.state is after
    else:
        with pytest.raises(IllegalTransition):
            group._transition(after)
