"""When a write is finished: the two ways of Kafka's coordinators.

The Java coordinator applies records as it appends them and lets every answer wait for the log
position that the operation saw. The Scala coordinator changes its state when the append is
through, and only the operation that appended waits, for its own batch. Nothing here appends.

Source: kafka trunk, CoordinatorRuntime.CoordinatorContext (waitForPendingWrites) and
DeferredEventQueue; kafka 3.9, GroupMetadataManager.appendForGroup on DelayedProduce.
"""

from typing import TYPE_CHECKING

from coordinator_sim.coordinator.effects import Write
from coordinator_sim.protocol.errors import NO_ERROR

if TYPE_CHECKING:
    from coordinator_sim.coordinator.effects import Effect, Parked
    from coordinator_sim.coordinator.runtime import Partition, Runtime


def settle_by_position(
    runtime: "Runtime", partition: "Partition", parked: "Parked | None", effect: "Effect"
) -> None:
    """Finish an operation once the log position it saw is committed.

    An operation without records still waits behind the writes before it.
    """
    if partition.high_watermark < partition.end_offset:
        write = Write(parked, effect)
        partition.deferred.append((partition.end_offset, write))
        runtime.arm_write_timeout(write)
    elif partition.deferred:
        partition.deferred.append((partition.end_offset, Write(parked, effect)))
        runtime.release(partition)
    else:
        runtime.conclude(parked, effect, NO_ERROR)


def settle_by_batch(
    runtime: "Runtime", partition: "Partition", parked: "Parked | None", effect: "Effect"
) -> None:
    """Finish an operation that appended when its own batch is committed, which may be at once.

    Writes before it that still wait do not hold it up.
    """
    if partition.high_watermark < partition.end_offset:
        write = Write(parked, effect)
        partition.deferred.append((partition.end_offset, write))
        runtime.arm_write_timeout(write)
    else:
        runtime.conclude(parked, effect, NO_ERROR)
