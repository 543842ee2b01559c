"""The timers that Kafka keeps for its gauges: they change nothing, but they turn the timing wheel.

Each loaded partition counts its groups by size once a minute, by a write without records. Which of
the timers due at one instant fires first may depend on it (see `clock.timer_queue`), so a
comparison with Kafka wants these timers too; nothing else does.

Source: kafka trunk, GroupCoordinatorShard.scheduleClassicGroupSizeCounter; CoordinatorRuntime,
EventBasedCoordinatorTimer.schedule.
"""

from dataclasses import dataclass

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.refusals import NOT_LED
from coordinator_sim.coordinator.runtime import Effect, Partition, PartitionState, Runtime
from coordinator_sim.kafka.errors import ErrorCode

_INTERVAL_MS = 60_000
"""How often groups are counted.

Source: GroupCoordinatorShard.DEFAULT_GROUP_GAUGES_UPDATE_INTERVAL_MS.
"""
_RETRY_MS = 500
"""How soon a failed run is repeated. Source: CoordinatorTimer.schedule without a retry backoff."""


@dataclass(slots=True, frozen=True)
class Gauge:
    """What the timer remembers: the partition whose groups are counted."""

    partition: Partition


def gauge_key(partition: Partition) -> TimerKey:
    """The name of a partition's gauge timer."""
    return TimerKey(TimerKind.GAUGE, "", str(partition.index))


def arm_gauge(runtime: Runtime, partition: Partition, delay_ms: int = _INTERVAL_MS) -> None:
    """Count the groups again after a while, if gauges are wanted at all."""
    if runtime.config.idle_timers:
        now_ms = runtime.now_ms
        key = gauge_key(partition)
        runtime.timers.schedule(key, now_ms + delay_ms, now_ms=now_ms, data=Gauge(partition))


def expire_gauge(runtime: Runtime, gauge: Gauge) -> None:
    """Count, which shows nowhere, and arm the timer anew."""
    partition = gauge.partition
    arm_gauge(runtime, partition)
    runtime.submit(partition, None, Effect(follow=GaugeRetry(runtime, partition)))


@dataclass(slots=True, eq=False)
class GaugeRetry:
    """A run that waited too long for earlier writes is repeated soon."""

    runtime: Runtime
    partition: Partition

    def finish(self, error: ErrorCode) -> None:
        """Arm the timer for the retry, replacing the next run."""
        if error is ErrorCode.NONE or error in NOT_LED:
            return
        if self.partition.state is PartitionState.ACTIVE:
            arm_gauge(self.runtime, self.partition, _RETRY_MS)
