"""What the Java coordinator does in its own way when it takes a partition over, or gives it up.

Source: kafka trunk, GroupCoordinatorShard.onLoaded; CoordinatorRuntime.CoordinatorContext.unload.
"""

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.expiry import arm_expiry
from coordinator_sim.coordinator.gauges import arm_gauge
from coordinator_sim.coordinator.loading import group_timers
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.kafka.errors import ErrorCode


class JavaTakeover:
    """A table of groups for each partition, which comes and goes with the log."""

    def groups_to_open(self, _runtime: Runtime, partition: Partition) -> list[str]:
        """The groups in the order of their table; their offsets are in the partition's."""
        return partition.group_ids()

    def start_timers(self, runtime: Runtime, partition: Partition) -> None:
        """Each partition has an expiry and a gauge timer."""
        arm_expiry(runtime, partition)
        arm_gauge(runtime, partition)

    def end_writes(self, runtime: Runtime, partition: Partition) -> None:
        """Every write fails, and its follow-up may have armed timers again.

        QUIRK: timers armed in an unload run on, whoever leads the partition by then, and find a
        Dead group.
        Source: CoordinatorContext.unload cancels the timers before it fails the writes.
        """
        runtime.fail_writes(partition, ErrorCode.NOT_COORDINATOR)
        for timer in group_timers(runtime, partition):
            name = TimerKey(TimerKind.ORPHAN, timer.key.group_id, str(timer.arm_seq))
            runtime.timers.rename(timer, name)

    def groups_to_close(self, _runtime: Runtime, partition: Partition) -> list[str]:
        """The groups in the order of their table."""
        return partition.group_ids()

    def groups_closed(self, _runtime: Runtime, _partition: Partition) -> None:
        """Timers armed meanwhile run on."""
