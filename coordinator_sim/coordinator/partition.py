"""A partition of `__consumer_offsets` on this broker: its groups, its offsets, its end of the log.

Source: kafka trunk, coordinator-common/.../runtime/CoordinatorRuntime.java: CoordinatorContext.
"""

from collections import deque
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Final

from coordinator_sim.coordinator.effects import Write
from coordinator_sim.coordinator.group_table import GroupTable
from coordinator_sim.coordinator.scala.group_offsets import LoadedOffsets
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.records import LogRecord


@unique
class PartitionState(Enum):
    """What a partition of `__consumer_offsets` is to this broker."""

    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    CLOSED = "closed"


ACTIVE: Final = PartitionState.ACTIVE
"""The usual state, under a name of its own for hot paths."""


@dataclass(slots=True, eq=False)
class OpenBatch:
    """Records of one partition that are applied and not appended yet.

    Args:
        opened_ms: When its first record came.
        times_ms: Of the records, one each.
        writes: The operations that wait for it, in order; some brought no records.
    """

    partition: "Partition"
    opened_ms: int
    records: list[LogRecord] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    writes: list[Write] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Partition(GroupTable):
    """One partition of `__consumer_offsets`: its groups, its offsets, and its end of the log.

    Args:
        deferred: Writes waiting for the high watermark, by the end offset they saw.
        load_started_ms: When the load under way or the last one began.
        loaded_records: Read by the load under way or the last one.
        load_error: Why the load under way will fail; NONE as far as is known.
        loaded_offsets: Found by the load under way, by profiles whose groups keep them.
        uncommitted_groups: Created since the last successful append; a failed one removes them.
        loaded_version: Of the topics that were known when the partition was loaded.
        is_replicated: Whether appends are committed as they come, unless all are held.
        open_batch: Applied and not appended yet; see `linger`.
    """

    index: int
    leader_epoch: int = -1
    state: PartitionState = PartitionState.CLOSED
    deferred: deque[tuple[int, Write]] = field(default_factory=deque)
    uncommitted_groups: list[str] = field(default_factory=list)
    load_started_ms: int = 0
    loaded_records: int = 0
    load_error: ErrorCode = ErrorCode.NONE
    loaded_offsets: LoadedOffsets = field(default_factory=LoadedOffsets)
    loaded_version: int = 0
    is_replicated: bool = True
    open_batch: OpenBatch | None = None

    @property
    def is_settled(self) -> bool:
        """Whether nothing written waits for anything."""
        return self.high_watermark >= self.end_offset and self.open_batch is None

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
