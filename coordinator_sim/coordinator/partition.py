"""A partition of `__consumer_offsets` on this broker: its groups, its offsets, its end of the log.

Source: kafka trunk, coordinator-common/.../runtime/CoordinatorRuntime.java: CoordinatorContext.
"""

from dataclasses import dataclass, field

from coordinator_sim.coordinator.common.runtime import OpenBatch, PartitionState
from coordinator_sim.coordinator.effects import Write
from coordinator_sim.coordinator.group_table import GroupTable
from coordinator_sim.coordinator.scala.group_offsets import LoadedOffsets
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.records import LogBatch


@dataclass(slots=True, eq=False)
class Partition(GroupTable):
    """One partition of `__consumer_offsets`: its groups, its offsets, and its end of the log.

    Args:
        load_started_ms: When the load under way or the last one began.
        loaded_records: Read by the load under way or the last one.
        load_error: Why the load under way will fail; NONE as far as is known.
        loaded_offsets: Found by the load under way, by profiles whose groups keep them.
        uncommitted_groups: Created since the last successful append; a failed one removes them.
        loaded_version: Of the topics that were known when the partition was loaded.
        is_replicated: Whether appends are committed as they come, unless all are held.
    """

    uncommitted_groups: list[str] = field(default_factory=list)
    load_started_ms: int = 0
    loaded_records: int = 0
    load_error: ErrorCode = ErrorCode.NONE
    loaded_offsets: LoadedOffsets = field(default_factory=LoadedOffsets)
    loaded_version: int = 0
    is_replicated: bool = True

    def apply(self, batch: OpenBatch, write: Write, wall_ms: int) -> None:
        """Apply an operation's records, which readers see when the batch is committed."""
        written, effect = self.end_offset, write.effect
        added = LogBatch(
            partition=self.index,
            base_offset=written + len(batch.records),
            timestamp_ms=wall_ms,
            records=write.records,
        )
        if effect.apply is not None:
            effect.apply.applied(added, written)
        self.offsets.lingering(added, written, offsets_alone=not effect.is_replayed)

    def forget(self) -> None:
        """Drop groups and offsets, and the end of a log that was never replicated."""
        self.clear()
        self.uncommitted_groups.clear()
        self.loaded_offsets = LoadedOffsets()
        if not self.is_replicated:
            self.end_offset = self.high_watermark
            self.is_replicated = True


def partition_error(partition: Partition | None, profile: Profile) -> ErrorCode:
    """Why a partition takes no requests. Source: CoordinatorRuntime.withActiveContextOrThrow."""
    is_loading = partition is not None and partition.state is PartitionState.LOADING
    if is_loading and not profile.loading_is_not_coordinator:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ErrorCode.NOT_COORDINATOR
