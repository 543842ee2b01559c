"""Timers that outlive the leadership of their partition."""

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.harness.group_driver import GroupDriver
from tests.unit.coordinator.worlds import world_of


def armed_after_resigning(profile: str) -> list[TimerKind]:
    """The timers left when a partition goes while an assignment waits for the log."""
    world = world_of(profile, group_coordinator_append_linger_ms=0)
    driver = GroupDriver(world)
    (leader,) = driver.stable(1)
    driver.join(leader)
    world.hold(high_watermark=True)
    driver.sync(leader, driver.generation_id, {leader: b"all"})
    world.resign(0)
    kinds = [timer.key.kind for timer in world.timers()]
    world.elect(0, 2)
    assert world.advance(60_000).replies == ()
    return kinds


def test_java_follow_up_of_a_failed_write_arms_timers_that_run_in_vain() -> None:
    """The timers are cancelled first, then the assignment fails: a session and a join begin."""
    assert armed_after_resigning("4.1") == [TimerKind.ORPHAN, TimerKind.ORPHAN]


def test_scala_has_no_timer_left() -> None:
    """The session of a Dead group's member is gone."""
    assert TimerKind.ORPHAN not in armed_after_resigning("3.9")
