"""A coordinator before its start, after its end, and while nothing but heartbeats happens."""

import pytest

from coordinator_sim.coordinator.idle import SkippedBeat
from coordinator_sim.harness.group_driver import GroupDriver
from coordinator_sim.harness.harness import Harness
from coordinator_sim.trace.events import Event
from tests.unit.coordinator.worlds import world_of

BOTH = pytest.mark.parametrize("profile", ["3.9", "4.4"])


def two_partitions(profile: str, *, started: bool = True) -> Harness:
    """A broker with two offsets partitions whose writes do not linger."""
    return world_of(
        profile,
        started=started,
        offsets_topic_num_partitions=2,
        group_coordinator_append_linger_ms=0,
    )


def test_scala_looks_for_what_expires_an_interval_after_its_start() -> None:
    """Not after it was made. Source: GroupMetadataManager.startup."""
    world = two_partitions("3.9", started=False)
    world.advance(5_000)
    world.startup()
    world.advance(1_000)
    world.startup()
    assert [timer.deadline_ms for timer in world.timers()] == [605_000]


def test_java_gives_up_at_its_end_what_it_leads_still() -> None:
    """The partition that went before is told of once."""
    world = two_partitions("4.4")
    world.resign(0)
    events = world.shutdown().events
    resigned = [each.offsets_partition for each in events if each.event is Event.COORD_RESIGNED]
    assert resigned == [1]


def test_scala_hears_of_no_election_after_its_end() -> None:
    """Who waits when it ends is told nothing, then or later."""
    world = two_partitions("3.9")
    group = GroupDriver(world)
    leader, _ = group.stable(2)
    assert group.join(leader).response is None
    assert world.shutdown().replies == ()
    step = world.resign()
    assert (step.replies, step.events) == ((), ())


@BOTH
def test_idle_sessions_have_their_deadlines_and_skipped_heartbeats_move_them(profile: str) -> None:
    """A heartbeat that a driver skipped counts as one that was sent."""
    world = two_partitions(profile)
    group = GroupDriver(world)
    (leader,) = group.stable(1)
    assert world.coordinator.idle_sessions() == {("g", leader): 10_000}
    world.advance(9_000)
    world.coordinator.skip_heartbeats([SkippedBeat("g", leader, 7_000)])
    assert world.coordinator.idle_sessions() == {("g", leader): 17_000}
    world.advance(7_999)
    assert group.state == "Stable"
    world.advance(1)
    assert group.state == "Empty"


def test_a_rebalance_is_not_idle_and_the_oldest_profile_never() -> None:
    """There a session of the past may start a rebalance at any time."""
    group = GroupDriver(two_partitions("4.4"))
    leader, _ = group.stable(2)
    group.join(leader)
    assert group.harness.coordinator.idle_sessions() is None
    group = GroupDriver(two_partitions("0.10.2"))
    (leader,) = group.stable(1)
    group.harness.advance(1_000)
    group.heartbeat(leader, 1)
    assert group.harness.coordinator.idle_sessions() is None


def test_a_generation_that_not_all_have_synced_is_not_idle() -> None:
    """It is Stable already, and who does not come in time is evicted."""
    group = GroupDriver(two_partitions("4.4"))
    leader, follower = group.stable(2)
    group.join(leader)
    group.join(follower)
    group.sync(leader, group.generation_id, {leader: b""})
    assert group.state == "Stable"
    assert group.harness.coordinator.idle_sessions() is None
    group.sync(follower, group.generation_id)
    assert group.harness.coordinator.idle_sessions() is not None


def test_a_coordinator_whose_log_waits_for_replication_is_not_idle() -> None:
    """Heartbeats wait for it, even when the write itself has given up."""
    world = two_partitions("4.4")
    group = GroupDriver(world)
    (leader,) = group.stable(1)
    world.hold(high_watermark=True)
    group.commit(1, member_id=leader, generation_id=1)
    assert world.coordinator.idle_sessions() is None
    world.advance(5_000)
    assert world.coordinator.idle_sessions() is None
    world.commit()
    assert world.coordinator.idle_sessions() == {("g", leader): 10_000}
