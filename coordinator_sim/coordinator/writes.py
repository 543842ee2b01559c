"""When a write is finished: the two ways of Kafka's coordinators.

The Java coordinator applies records as it appends them and lets every answer wait for the log
position that the operation saw. The Scala coordinator changes its state when the append is
through, and only the operation that appended waits, for its own batch. Nothing here appends.

Source: kafka trunk, CoordinatorRuntime.CoordinatorContext (waitForPendingWrites) and
DeferredEventQueue; kafka 3.9, GroupMetadataManager.appendForGroup on DelayedProduce.
"""

from typing import TYPE_CHECKING

from coordinator_sim.protocol.errors import NO_ERROR

if TYPE_CHECKING:
    from coordinator_sim.coordinator.runtime import Partition, Runtime, Write


def settle_by_position(runtime: "Runtime", partition: "Partition", write: "Write") -> None:
    """Finish an operation once the log position it saw is committed.

    An operation without records still waits behind the writes before it.
    """
    if partition.high_watermark < partition.end_offset:
        partition.deferred.append((partition.end_offset, write))
        runtime.arm_write_timeout(write)
    elif partition.deferred:
        partition.deferred.append((partition.end_offset, write))
        runtime.release(partition)
    else:
        runtime.finish(write, NO_ERROR)


def settle_by_batch(
    runtime: "Runtime", partition: "Partition", write: "Write", *, has_batch: bool
) -> None:
    """Finish an operation at once, or, if it appended, when its own batch is committed.

    Writes before it that still wait do not hold it up.
    """
    if has_batch and partition.high_watermark < partition.end_offset:
        partition.deferred.append((partition.end_offset, write))
        runtime.arm_write_timeout(write)
    else:
        runtime.finish(write, NO_ERROR)
