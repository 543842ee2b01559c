"""DeleteGroups: groups without members are removed with their offsets.

In Java one write for each offsets partition, answered when the tombstones are committed. In Scala
the groups die at once and the tombstones follow, whatever becomes of them.

Source: kafka trunk, GroupCoordinatorService.deleteGroups, GroupCoordinatorShard.deleteGroups and
ClassicGroup.validateDeleteGroup; GroupCoordinator.handleDeleteGroups (Scala) and
GroupMetadataManager.cleanupGroupMetadata.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from coordinator_sim.coordinator.epoch_group import EpochGroup
from coordinator_sim.coordinator.inspection import by_partition
from coordinator_sim.coordinator.modern.share.deletion import (
    DeletingStates,
    ShareDeletions,
    share_deletions,
)
from coordinator_sim.coordinator.offsets.expiry import RemoveGroups, tombstones_of
from coordinator_sim.coordinator.offsets.offset_records import offset_tombstones
from coordinator_sim.coordinator.partition import AnyGroup
from coordinator_sim.coordinator.runtime import (
    Effect,
    Partition,
    PartitionState,
    Runtime,
    operation_error,
    partition_error,
)
from coordinator_sim.coordinator.scala.cleanup import scala_delete_group
from coordinator_sim.coordinator.tracing import trace_groups_deleted
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import (
    java_copy_capacity,
    java_hash_order,
    scala_map_order,
    scala_set_order,
)
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from coordinator_sim.messages.records import LogRecord

Outcomes = tuple[DeletableGroupResult, ...]


def delete_groups(runtime: Runtime, request: DeleteGroupsRequest, context: RequestContext) -> None:
    """Delete groups; a name given twice counts once."""
    names = tuple(dict.fromkeys(request.groups_names))
    if runtime.profile.answers_by_partition:
        DeletionUnderWay(runtime, context).start(by_partition(runtime, names))
        return
    gone: list[tuple[str, int]] = []
    outcomes = {
        name: _delete_at_once(runtime, name, runtime.partition_index(name), gone)
        for name in scala_set_order(names)
    }
    if gone and runtime.tracing:
        trace_groups_deleted(runtime, None, gone)
    ordered = tuple(
        DeletableGroupResult(group_id=name, error_code=outcomes[name])
        for name in scala_map_order(outcomes)
    )
    runtime.reply(context.token, DeleteGroupsResponse(results=ordered))


def deletion_error(group: AnyGroup | None) -> ErrorCode:
    """Why a group cannot be deleted.

    Source: ClassicGroup.validateDeleteGroup, likewise of ConsumerGroup and StreamsGroup.
    """
    if isinstance(group, EpochGroup):
        return ErrorCode.NONE if group.is_empty else ErrorCode.NON_EMPTY_GROUP
    if group is None or group.state is GroupState.DEAD:
        return ErrorCode.GROUP_ID_NOT_FOUND
    return ErrorCode.NONE if group.state is GroupState.EMPTY else ErrorCode.NON_EMPTY_GROUP


# -- Java ----------------------------------------------------------------------------------


class DeletionUnderWay:
    """One DeleteGroups request, and the outcomes of the offsets partitions that have finished."""

    __slots__ = ("_context", "_found", "_missing_count", "runtime")

    def __init__(self, runtime: Runtime, context: RequestContext) -> None:
        self.runtime = runtime
        self._context = context
        self._found: list[Outcomes] = []
        self._missing_count = 0

    def start(self, batches: dict[int, list[str]]) -> None:
        """Write the tombstones of each partition; the answer has the partitions in this order."""
        self._found = [()] * len(batches)
        self._missing_count = len(batches)
        for place, (index, group_ids) in enumerate(batches.items()):
            partition = self.runtime.partitions.get(index)
            if partition is None or partition.state is not PartitionState.ACTIVE:
                self.fail(
                    place,
                    self.in_error_order(group_ids),
                    partition_error(partition, self.runtime.profile),
                )
            elif self.runtime.profile.deletes_share_groups_first:
                share_groups = share_deletions(self.runtime, partition, group_ids)
                first = ShareGroupsFirst(self, partition, place, group_ids, share_groups)
                records = tuple(share_groups.records)
                self.runtime.submit(partition, None, Effect(records=records, follow=first))
                # What follows from it is done before the next partition's turn.
                self.runtime.run_scheduled()
            else:
                self.write(partition, place, group_ids)
        if not batches:
            self._answer()

    def found(self, place: int, outcomes: Outcomes) -> None:
        """One partition is through; answer when it was the last."""
        self._found[place] = outcomes
        self._missing_count -= 1
        if self._missing_count == 0:
            self._answer()

    def write(
        self,
        partition: Partition,
        place: int,
        group_ids: Iterable[str],
        refused: Outcomes = (),
    ) -> None:
        """Delete the groups of one partition; those refused before come first in the answer."""
        runtime = self.runtime
        outcomes: list[DeletableGroupResult] = []
        records: list[LogRecord] = []
        gone: list[tuple[str, int]] = []
        for group_id in group_ids:
            group = partition.groups.get(group_id)
            error = deletion_error(group)
            outcomes.append(DeletableGroupResult(group_id=group_id, error_code=error))
            if group is not None and error is ErrorCode.NONE:
                tombstones = offset_tombstones(partition.offsets.delete_all_offsets(group_id))
                gone.append((group_id, len(tombstones)))
                records += tombstones
                records += tombstones_of(runtime, group)
        if runtime.tracing:
            trace_groups_deleted(runtime, partition, gone)
        effect = Effect(
            records=tuple(records),
            apply=RemoveGroups(runtime, partition, "deleted"),
            follow=DeleteOfPartition(self, place, tuple(outcomes), refused),
        )
        runtime.submit(partition, None, effect)

    def fail(
        self, place: int, group_ids: Iterable[str], error: ErrorCode, refused: Outcomes = ()
    ) -> None:
        """The operation on a partition failed: every group of it has the error."""
        code = operation_error(error, self.runtime.profile)
        failed = tuple(DeletableGroupResult(group_id=name, error_code=code) for name in group_ids)
        self.found(place, refused + failed)

    def in_error_order(self, group_ids: list[str]) -> list[str]:
        """The groups of a partition that fails before any of them is looked at."""
        if self.runtime.profile.deletes_share_groups_first:
            return java_hash_order(group_ids)
        return group_ids

    def _answer(self) -> None:
        results = tuple(outcome for outcomes in self._found for outcome in outcomes)
        self.runtime.reply(self._context.token, DeleteGroupsResponse(results=results))


@dataclass(slots=True, eq=False)
class ShareGroupsFirst:
    """A write that lets the share coordinator forget the share groups of one partition.

    QUIRK: for its sake a deletion of groups waits for the writes before it, though it has not
    begun.
    Source: GroupCoordinatorService.deleteShareGroups, 4.1.
    """

    deletion: DeletionUnderWay
    partition: Partition
    place: int
    group_ids: list[str]
    share_groups: ShareDeletions

    def finish(self, error: ErrorCode) -> None:
        """Go on with the other groups, once the share coordinator has answered."""
        if error is not ErrorCode.NONE:
            failed = self.deletion.in_error_order(self.group_ids)
            self.deletion.fail(self.place, failed, error)
            return
        states = DeletingStates(self.share_groups.errors, self._go_on)
        states.start(self.deletion.runtime, self.share_groups.requests)

    def _go_on(self, errors: dict[str, ErrorCode]) -> None:
        """The groups have been through a HashSet meanwhile, and lost those with errors."""
        refused = tuple(
            DeletableGroupResult(group_id=name, error_code=error) for name, error in errors.items()
        )
        capacity = java_copy_capacity(len(self.group_ids))
        ordered = java_hash_order(self.group_ids, capacity)
        remaining = tuple(name for name in ordered if name not in errors)
        if not remaining:
            self.deletion.found(self.place, refused)
            return
        rest = RestOfDeletion(self.deletion, self.partition, self.place, remaining, refused)
        self.deletion.runtime.scheduled.append(rest)


@dataclass(slots=True, frozen=True)
class RestOfDeletion:
    """The second write of a deletion: an event of its own, after all that the first waited with."""

    deletion: DeletionUnderWay
    partition: Partition
    place: int
    group_ids: tuple[str, ...]
    refused: Outcomes

    def run(self, runtime: Runtime) -> None:
        """Delete the groups, unless the partition was given up meanwhile."""
        if self.partition.state is not PartitionState.ACTIVE:
            error = partition_error(self.partition, runtime.profile)
            self.deletion.fail(self.place, self.group_ids, error, self.refused)
            return
        self.deletion.write(self.partition, self.place, self.group_ids, self.refused)


@dataclass(slots=True, eq=False)
class DeleteOfPartition:
    """The deletions of one partition, applied and waiting for the log."""

    deletion: DeletionUnderWay
    place: int
    outcomes: Outcomes
    refused: Outcomes

    def finish(self, error: ErrorCode) -> None:
        """The tombstones are committed, or were refused, or are late."""
        if error is ErrorCode.NONE:
            self.deletion.found(self.place, self.refused + self.outcomes)
        else:
            failed = [outcome.group_id for outcome in self.outcomes]
            self.deletion.fail(self.place, failed, error, self.refused)


# -- Scala ---------------------------------------------------------------------------------


def _delete_at_once(
    runtime: Runtime, group_id: str, index: int, gone: list[tuple[str, int]]
) -> ErrorCode:
    """Delete one group; nobody asks whether the tombstones arrive. `gone` learns of its offsets.

    A group of generation 0 only stored offsets: it has no record, and gets no tombstone.
    """
    partition = runtime.partitions.get(index)
    if partition is None or partition.state is not PartitionState.ACTIVE:
        return partition_error(partition, runtime.profile)
    group = partition.classic_group(group_id)
    error = deletion_error(group)
    if group is None or error is not ErrorCode.NONE:
        return error
    gone.append((group_id, scala_delete_group(runtime, group)))
    return ErrorCode.NONE
