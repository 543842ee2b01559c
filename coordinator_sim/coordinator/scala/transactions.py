"""The end of a transaction in the Scala coordinator: groups see it after the marker is in the log.

Source: kafka 3.9, GroupMetadataManager.scheduleHandleTxnCompletion and handleTxnCompletion.
"""

from dataclasses import dataclass

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.offsets.transactions import marker_effect
from coordinator_sim.coordinator.runtime import Parked, Partition, Runtime
from coordinator_sim.kafka.completion import CompleteTransaction
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import scala_map_order


def scala_complete(
    runtime: Runtime, partition: Partition, request: CompleteTransaction, parked: Parked
) -> None:
    """Write the marker; the groups count or drop the offsets of the producer after it."""
    due = Materialisation(partition.index, request.producer_id, request.committed)
    runtime.submit(partition, parked, marker_effect(request, MaterialiseLater(runtime, due)))


@dataclass(slots=True, eq=False)
class Materialisation:
    """The end of a transaction whose marker is in the log, not yet seen by the groups."""

    partition: int
    producer_id: int
    committed: bool

    def run(self, runtime: Runtime) -> None:
        """Let the groups see it."""
        materialise(runtime, self)


def schedule_materialisation(runtime: Runtime, due: Materialisation) -> None:
    """Let the groups see the end of a transaction in a step of its own, now or later.

    Source: scheduleHandleTxnCompletion.
    """
    if runtime.config.marker_materialisation_ms == 0:
        runtime.scheduled.append(due)
        return
    key = TimerKey(TimerKind.TRANSACTION, "", f"{due.partition} {due.producer_id}")
    pending = runtime.timers.get(key)
    if pending is not None:
        # The scheduler has one thread: the end before comes first.
        runtime.timers.cancel(key)
        if isinstance(pending.data, Materialisation):
            materialise(runtime, pending.data)
    deadline_ms = runtime.now_ms + runtime.config.marker_materialisation_ms
    runtime.timers.schedule(key, deadline_ms, now_ms=runtime.now_ms, data=due)


@dataclass(slots=True, eq=False)
class MaterialiseLater:
    """What follows the append of a marker."""

    runtime: Runtime
    due: Materialisation

    def finish(self, error: ErrorCode) -> None:
        """The marker is committed, or is not in the log at all."""
        if error is ErrorCode.NONE:
            schedule_materialisation(self.runtime, self.due)


def materialise(runtime: Runtime, due: Materialisation) -> None:
    """Let the offsets of a transaction count, or drop them. Source: handleTxnCompletion."""
    producer_id = due.producer_id
    for group_id in scala_map_order(runtime.open_groups.get(producer_id, ())):
        group = runtime.groups.get(group_id)
        if group is None or group.offsets_partition != due.partition:
            continue
        if not group.offsets.complete_txn(producer_id, committed=due.committed):
            return
        open_groups = runtime.open_groups[producer_id]
        open_groups.pop(group_id, None)
        if not open_groups:
            del runtime.open_groups[producer_id]


def forget_producers(runtime: Runtime, group_id: str) -> None:
    """An unloaded group takes part in no transaction. Source: removeGroupFromAllProducers."""
    for open_groups in runtime.open_groups.values():
        open_groups.pop(group_id, None)
