"""A partition of `__consumer_offsets` on this broker: its groups and its offsets.

Groups are there as they are, and as readers of what is committed see them. Groups and offsets share
one timeline: an append that is refused takes both back.

Source: kafka trunk, GroupMetadataManager.groups on TimelineHashMap; see `common.timeline`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeVar, get_args

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.common.runtime import CoordinatorShard, OpenBatch, PartitionState
from coordinator_sim.coordinator.common.timeline import TimelineTable
from coordinator_sim.coordinator.effects import Write
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.modern.share.group import ShareGroup, ShareState, state_of
from coordinator_sim.coordinator.offsets.offset_store import OffsetStore
from coordinator_sim.coordinator.scala.group_offsets import LoadedOffsets
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.states import EMPTY
from coordinator_sim.messages.consumer_group_records import ConsumerGroupKey
from coordinator_sim.messages.group_records import GroupMetadataKey
from coordinator_sim.messages.records import LogBatch, LogRecord
from coordinator_sim.messages.share_group_records import (
    ShareGroupKey,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
)
from coordinator_sim.messages.streams_group_records import StreamsGroupKey

AnyGroup = Group | ConsumerGroup | ShareGroup | StreamsGroup
"""A group of any type."""
AssignedGroup = TypeVar("AssignedGroup", ConsumerGroup, StreamsGroup)


@dataclass(slots=True, eq=False, kw_only=True)
class Partition(CoordinatorShard):
    """One partition of `__consumer_offsets`: its groups, its offsets, and its end of the log.

    Attributes:
        profile: Of the coordinator.
        present_ms: The present, for stamps of what records do not date.
        offsets: Of the groups, by profiles whose groups do not keep them.
        groups: The entries of the table, to look at; they change by the methods here.
        share_states: What the share coordinator keeps for share groups, by their ids.
        load_started_ms: When the load under way or the last one began.
        loaded_records: Read by the load under way or the last one.
        load_error: Why the load under way will fail; NONE as far as is known.
        loaded_offsets: Found by the load under way, by profiles whose groups keep them.
        uncommitted_groups: Created since the last successful append; a failed one removes them.
        loaded_version: Of the topics that were known when the partition was loaded.
        is_replicated: Whether appends are committed as they come, unless all are held.
    """

    profile: Profile
    present_ms: Callable[[], int]
    offsets: OffsetStore = field(init=False)
    groups: dict[str, AnyGroup] = field(init=False)
    share_states: TimelineTable[str, ShareState] = field(init=False)
    _table: TimelineTable[str, AnyGroup] = field(init=False)
    uncommitted_groups: list[str] = field(default_factory=list)
    load_started_ms: int = 0
    loaded_records: int = 0
    load_error: ErrorCode = ErrorCode.NONE
    loaded_offsets: LoadedOffsets = field(default_factory=LoadedOffsets)
    loaded_version: int = 0
    is_replicated: bool = True

    def __post_init__(self) -> None:
        """Begin without groups."""
        self.clear()

    def clear(self) -> None:
        """Drop groups and offsets, and all that is remembered of them."""
        self.offsets = OffsetStore(self.replay)
        self.timeline = self.offsets.timeline
        self._table = TimelineTable(self.timeline, java_string_hash)
        self.groups = self._table.entries
        self.share_states = TimelineTable(self.timeline, java_string_hash)

    # -- what is seen ----------------------------------------------------------------------

    def classic_group(self, group_id: str) -> Group | None:
        """The group as it is, if it is a classic one."""
        group = self.groups.get(group_id)
        return group if isinstance(group, Group) else None

    def classic_groups(self) -> dict[str, Group]:
        """Every classic group as it is, by id."""
        return {name: group for name, group in self.groups.items() if isinstance(group, Group)}

    def consumer_group(self, group_id: str) -> ConsumerGroup | None:
        """The group as it is, if it is a consumer group."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ConsumerGroup) else None

    def group_as_of(self, group_id: str, position: int) -> AnyGroup | None:
        """The group as a reader at that log position sees it; None when it sees none."""
        return self._table.get(group_id, position)

    def groups_as_of(self, position: int) -> list[AnyGroup]:
        """Every group that a reader at that log position lists, in the order of Kafka's table.

        QUIRK: one that came back when the append of its tombstone was refused is listed twice until
        the next append is committed. Source: SnapshottableHashTable.executeRevert.
        """
        return [group for _, group in self._table.items(position)]

    def group_ids(self) -> list[str]:
        """The ids of all groups in the order of Kafka's table."""
        return self._table.keys()

    # -- changes ---------------------------------------------------------------------------

    def add_group(self, group: Group) -> None:
        """Add a group that nothing is appended for yet: a refused append takes it away again."""
        self.expect_append()
        self._table.put(group.group_id, group)

    def expect_append(self) -> None:
        """The next change follows from records that are appended soon; a refusal undoes it."""
        timeline = self.timeline
        timeline.written = self.end_offset
        timeline.remember()

    def put_group(self, group: AnyGroup) -> None:
        """Add or replace a group."""
        self._table.put(group.group_id, group)

    def order_groups(self, groups: dict[str, Group]) -> None:
        """Keep these groups in this order, by profiles without such tables."""
        self.groups.clear()
        self.groups.update(groups)

    def drop_consumer_group(self, group_id: str) -> None:
        """Remove a consumer group for which nothing is appended yet: a refused append undoes it."""
        self.expect_append()
        self._table.remove(group_id)

    def _persisted(
        self, kind: type[AssignedGroup], group_id: str, *, create: bool
    ) -> AssignedGroup | None:
        """The consumer or streams group that a record is of.

        A classic group that only stored offsets gives way to it. A tombstone never makes a group:
        a classic group whose consumer group was removed in the same batch stays.

        Raises:
            OperationAborted: there is a classic group with members, or one of another type.

        Source: GroupMetadataManager.getOrMaybeCreatePersistedConsumerGroup, ...StreamsGroup.
        """
        group = self.groups.get(group_id)
        if isinstance(group, kind):
            return group
        if not create:
            return None
        _check_gives_way(group_id, group)
        made = kind(self.timeline, group_id, self.profile)
        self._table.put(group_id, made)
        return made

    def _persisted_share(self, group_id: str, *, create: bool) -> ShareGroup | None:
        """The share group that a record is of.

        Raises:
            OperationAborted: the group of that id is of another type.

        Source: GroupMetadataManager.getOrMaybeCreatePersistedShareGroup.
        """
        group = self.groups.get(group_id)
        if group is None and create:
            group = ShareGroup(self.timeline, group_id, self.profile)
            self._table.put(group_id, group)
        if group is not None and not isinstance(group, ShareGroup):
            raise OperationAborted(f"group {group_id} is of another type than its record")
        return group

    def replay(self, record: LogRecord) -> None:
        """Apply a record of a group that is not classic or a group's tombstone, in batch order.

        `OffsetStore` applies offsets; classic groups are changed by their handlers, and at a load.
        """
        # Values go with their keys.
        key = record.key
        if isinstance(key, GroupMetadataKey):
            if record.value is None:
                self._table.remove(key.group)
        elif (kind := _GROUP_TYPES.get(type(key))) is not None:
            self._replay(kind, key, record.value)

    def _replay(self, kind: type, key: Any, value: Any) -> None:  # noqa: ANN401 - of any group
        persisted = self._persisted_share if kind is ShareGroup else partial(self._persisted, kind)
        group: ConsumerGroup | ShareGroup | StreamsGroup | None
        group = persisted(key.group_id, create=value is not None)
        if isinstance(value, ShareGroupStatePartitionMetadataValue):
            self.share_states.put(key.group_id, state_of(value, self.present_ms()))
        elif isinstance(key, ShareGroupStatePartitionMetadataKey):
            self.share_states.remove(key.group_id)
        elif group is not None and group.replay(key, value):
            self._table.remove(key.group_id)

    def remove_group(self, group_id: str) -> None:
        """Forget a group, if it is there."""
        self._table.remove(group_id)

    def begin(self, written: int) -> None:
        """The changes to come follow from a batch after that position, which the log has."""
        timeline = self.timeline
        timeline.written = written
        if self.high_watermark < self.end_offset:
            timeline.remember()

    def refused(self, batch: LogBatch, *, offsets_alone: bool = False) -> None:
        """Apply a batch and take it back, with all that was changed since the last append.

        Args:
            batch: That the log did not take.
            offsets_alone: Whether records that are no offsets are passed over.

        Source: CoordinatorContext.append and failCurrentBatch.
        """
        self.timeline.remember()
        self.timeline.written = batch.base_offset
        self.offsets.refused(batch, offsets_alone=offsets_alone)

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


_GROUP_TYPES: Final[dict[type, type[ConsumerGroup | ShareGroup | StreamsGroup]]] = {
    **dict.fromkeys(get_args(ConsumerGroupKey), ConsumerGroup),
    **dict.fromkeys(get_args(ShareGroupKey), ShareGroup),
    **dict.fromkeys(get_args(StreamsGroupKey), StreamsGroup),
}
"""The type of the group that a record is of, by the struct of its key."""


def _check_gives_way(group_id: str, group: AnyGroup | None) -> None:
    if group is not None and not (isinstance(group, Group) and _is_simple(group)):
        raise OperationAborted(f"group {group_id} is of another type, with members or a state")


def _is_simple(group: Group) -> bool:
    """Whether a classic group only stored offsets. Source: ClassicGroup.isSimpleGroup."""
    return group.protocol_type is None and group.state is EMPTY and not group.pending_members


def partition_error(partition: Partition | None, profile: Profile) -> ErrorCode:
    """Why a partition takes no requests. Source: CoordinatorRuntime.withActiveContextOrThrow."""
    is_loading = partition is not None and partition.state is PartitionState.LOADING
    if is_loading and not profile.loading_is_not_coordinator:
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return ErrorCode.NOT_COORDINATOR
