"""When a look for expired offsets happens, and from when an offset's retention counts."""

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.harness.group_driver import GroupDriver
from coordinator_sim.harness.harness import Harness
from tests.unit.coordinator.worlds import world_of


def group_of(profile: str = "4.4") -> GroupDriver:
    """A group on a broker that keeps offsets for a minute, and looks every ten seconds."""
    world = world_of(
        profile,
        offsets_retention_ms=60_000,
        offsets_retention_check_interval_ms=10_000,
        group_coordinator_append_linger_ms=0,
    )
    return GroupDriver(world)


def next_look_ms(world: Harness) -> list[int]:
    """When the next looks are due."""
    return [timer.deadline_ms for timer in world.timers() if timer.key.kind is TimerKind.EXPIRY]


def test_a_look_whose_write_times_out_is_repeated_an_interval_after_that() -> None:
    """Source: CoordinatorTimerImpl.schedule, which retries after its backoff."""
    group = group_of()
    world = group.harness
    group.commit(1)
    world.hold(high_watermark=True)
    world.advance(60_000)
    assert next_look_ms(world) == [70_000]
    world.advance(5_000)
    assert next_look_ms(world) == [75_000]


def test_a_look_whose_write_is_committed_late_is_followed_as_planned() -> None:
    """Its own end does not move the next one."""
    group = group_of()
    world = group.harness
    group.commit(1)
    world.hold(high_watermark=True)
    world.advance(63_000)
    world.commit()
    assert (group.state, next_look_ms(world)) == ("none", [70_000])


def test_a_look_that_the_end_of_the_leadership_cut_off_is_not_repeated() -> None:
    """Source: CoordinatorTimerImpl.schedule, NotCoordinatorException."""
    group = group_of()
    group.commit(1)
    group.harness.hold(high_watermark=True)
    group.harness.advance(60_000)
    group.harness.resign()
    assert next_look_ms(group.harness) == []
