"""The timers of Kafka's gauges."""

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.harness.group_driver import GroupDriver
from coordinator_sim.harness.harness import Harness
from tests.unit.coordinator.worlds import world_of


def gauges(harness: Harness) -> list[int]:
    """When the gauges are due."""
    return [t.deadline_ms for t in harness.timers() if t.key.kind is TimerKind.GAUGE]


def test_gauge_runs_every_minute_and_says_nothing() -> None:
    """Each loaded partition has its gauge, which is armed anew when it fires."""
    broker = world_of(idle_timers=True)
    assert gauges(broker) == [60_000]
    step = broker.advance(60_000)
    assert (step.replies, step.batches) == ((), ())
    assert gauges(broker) == [120_000]


def test_gauge_that_waits_too_long_is_repeated_soon() -> None:
    """A run behind uncommitted writes times out and comes again after half a second."""
    broker = world_of(idle_timers=True)
    broker.hold(high_watermark=True)
    GroupDriver(broker).commit(1)
    broker.advance(65_000)
    assert gauges(broker) == [65_500]


def test_gauge_goes_with_the_leadership() -> None:
    """A resigned partition counts nothing, even if a run was waiting."""
    broker = world_of(idle_timers=True)
    broker.hold(high_watermark=True)
    GroupDriver(broker).commit(1)
    broker.advance(60_000)
    broker.resign()
    assert gauges(broker) == []


def test_no_gauge_unless_wanted_and_kept_by_that_kafka() -> None:
    """Drivers that compare nothing go without; Scala's coordinator has none."""
    assert gauges(world_of()) == []
    assert gauges(world_of("3.9", idle_timers=True)) == []
