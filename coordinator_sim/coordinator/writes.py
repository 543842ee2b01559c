"""How records are appended: the Java and the Scala strategy, one of which a `Runtime` has.

The Java coordinator applies records as it appends them, takes them back when the append is
refused, and lets every answer wait for the log position that the operation saw. The Scala
coordinator changes its state when the append is through, and only the operation that appended
waits, for its own batch.

Source: kafka trunk, CoordinatorRuntime.CoordinatorContext (append, waitForPendingWrites) and
DeferredEventQueue; kafka 3.9, GroupMetadataManager.appendForGroup on DelayedProduce.
"""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.coordinator.effects import Effect, Parked, Write
from coordinator_sim.coordinator.epoch_tracing import trace_records
from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.linger import ADAPTIVE, linger, run_together
from coordinator_sim.coordinator.partition import Partition
from coordinator_sim.coordinator.runtime import Runtime, Scheduled, Writes
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.profiles import Profile


class JavaWrites:
    """Memory follows the log, and an operation waits for the position that it saw."""

    def add_group(self, partition: Partition, group: Group) -> None:
        """Readers see the group once something is committed after it; a refusal takes it away."""
        partition.add_group(group)
        partition.uncommitted_groups.append(group.group_id)

    def submit(
        self, runtime: Runtime, partition: Partition, parked: Parked | None, effect: Effect
    ) -> None:
        """Append at once, or to the batch that lingers; then wait for the position.

        Source: CoordinatorContext.append, flushCurrentBatch and failCurrentBatch.
        """
        if runtime.tracing and effect.records:
            trace_records(runtime, partition, effect)
        is_lingering = runtime.linger_ms > 0 or runtime.gathering is not None
        if is_lingering and linger(runtime, partition, Write(parked, effect)):
            return
        if effect.records or effect.marker is not None:
            batch, error = runtime.append(partition, effect)
            if error is NO_ERROR:
                partition.offsets.appended(
                    batch, partition.high_watermark, offsets_alone=not effect.is_replayed
                )
                partition.uncommitted_groups.clear()
            else:
                partition.refused(batch, offsets_alone=not effect.is_replayed)
                runtime.undo_groups(partition)
            if runtime.config.idle_timers:
                _touch_timeout(runtime, effect, error)
            if error is not NO_ERROR:
                runtime.conclude(parked, effect, error)
                runtime.release(partition)
                return
        _wait_for_position(runtime, partition, parked, effect)

    def run(self, runtime: Runtime, steps: Sequence[Scheduled]) -> None:
        """Events that wait together share a batch of their partition, if it lingers for them."""
        if runtime.linger_ms == ADAPTIVE:
            run_together(runtime, steps)
            return
        for step in steps:
            step.run(runtime)


def _touch_timeout(runtime: Runtime, effect: Effect, error: ErrorCode) -> None:
    """Turn the wheel by the timeout of a write that is over before it waits for anything.

    A refused one has a timeout too where its batch is appended by an event of its own.

    Source: CoordinatorWriteEvent.run, which arms the timeout unless the write has ended.
    """
    is_alone = effect.transactional or effect.marker is not None
    if error is NO_ERROR or (runtime.linger_ms == ADAPTIVE and not is_alone):
        runtime.timers.touch(runtime.now_ms + runtime.config.offsets_commit_timeout_ms)


def _wait_for_position(
    runtime: Runtime, partition: Partition, parked: Parked | None, effect: Effect
) -> None:
    """Finish an operation once the log position it saw is committed.

    An operation without records still waits behind the writes before it.
    """
    if partition.high_watermark < partition.end_offset:
        _defer(runtime, partition, Write(parked, effect))
    elif partition.deferred:
        partition.deferred.append((partition.end_offset, Write(parked, effect)))
        runtime.release(partition)
    else:
        runtime.conclude(parked, effect, NO_ERROR)


class ScalaWrites:
    """Memory follows what is committed, and an operation waits for its own batch, if it has one."""

    def add_group(self, partition: Partition, group: Group) -> None:
        """The group is there for all; a refusal leaves it."""
        partition.put_group(group)

    def submit(
        self, runtime: Runtime, partition: Partition, parked: Parked | None, effect: Effect
    ) -> None:
        """Append if there is what to append, and wait until that is committed.

        Writes before it that still wait do not hold it up.
        """
        if effect.records or effect.marker is not None or effect.is_empty_batch:
            _, error = runtime.append(partition, effect)
            if error is not NO_ERROR:
                runtime.conclude(parked, effect, error)
                return
            if partition.high_watermark < partition.end_offset:
                _defer(runtime, partition, Write(parked, effect))
                return
        runtime.conclude(parked, effect, NO_ERROR)

    def run(self, runtime: Runtime, steps: Sequence[Scheduled]) -> None:
        """Each event has batches of its own."""
        for step in steps:
            step.run(runtime)


def _defer(runtime: Runtime, partition: Partition, write: Write) -> None:
    """Let a write wait for what is the end of the log now, but not for ever."""
    partition.deferred.append((partition.end_offset, write))
    runtime.arm_write_timeout(write)


_JAVA: Final = JavaWrites()
_SCALA: Final = ScalaWrites()


def writes_of(profile: Profile) -> Writes:
    """The way of the coordinator that a profile is of."""
    return _JAVA if profile.has_coordinator_runtime else _SCALA
