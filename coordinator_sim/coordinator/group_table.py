"""The groups of one offsets partition, as they are and as readers of what is committed see them.

Groups and offsets share one timeline: an append that is refused takes both back.

Source: kafka trunk, GroupMetadataManager.groups on TimelineHashMap; see `timeline`.
"""

from dataclasses import dataclass, field

from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.offset_store import OffsetStore
from coordinator_sim.coordinator.timeline import TimelineTable
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.records import GroupMetadataKey, LogBatch


@dataclass(slots=True, eq=False, kw_only=True)
class GroupTable:
    """Groups by id and their offsets, with what readers of either may still see.

    Attributes:
        end_offset: Where the next record goes.
        high_watermark: Everything below is committed.
        offsets: Of the groups, by profiles whose groups do not keep them.
        groups: The entries of the table, to look at; they change by the methods here.
    """

    end_offset: int = 0
    high_watermark: int = 0
    offsets: OffsetStore = field(init=False)
    groups: dict[str, Group] = field(init=False)
    _table: TimelineTable[str, Group] = field(init=False)

    def __post_init__(self) -> None:
        """Begin without groups."""
        self.clear()

    def clear(self) -> None:
        """Drop groups and offsets, and all that is remembered of them."""
        self.offsets = OffsetStore()
        self._table = TimelineTable(self.offsets.timeline, java_string_hash)
        self.groups = self._table.entries

    # -- what is seen ----------------------------------------------------------------------

    def group_as_of(self, group_id: str, position: int) -> Group | None:
        """The group as a reader at that log position sees it; None when it sees none."""
        return self._table.get(group_id, position)

    def groups_as_of(self, position: int) -> list[Group]:
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
        timeline = self.offsets.timeline
        timeline.written = self.end_offset
        timeline.remember()
        self._table.put(group.group_id, group)

    def put_group(self, group: Group) -> None:
        """Add or replace a group."""
        self._table.put(group.group_id, group)

    def order_groups(self, groups: dict[str, Group]) -> None:
        """Keep these groups in this order, by profiles without such tables."""
        self.groups.clear()
        self.groups.update(groups)

    def remove_group(self, group_id: str, written: int) -> None:
        """Apply a group's tombstone; readers up to a log position still see the group.

        Args:
            group_id: Nothing happens when there is no such group.
            written: The end of the log before the tombstone's batch.
        """
        self.begin(written)
        self._table.remove(group_id)

    def begin(self, written: int) -> None:
        """The changes to come follow from a batch after that position, which the log has."""
        timeline = self.offsets.timeline
        timeline.written = written
        if self.high_watermark < self.end_offset:
            timeline.remember()

    def refused(self, batch: LogBatch) -> None:
        """Apply a batch and take it back, with all that was changed since the last append.

        Source: CoordinatorContext.append and failCurrentBatch.
        """
        self.offsets.timeline.remember()
        self.offsets.timeline.written = batch.base_offset
        for record in batch.records:
            if record.value is None and isinstance(record.key, GroupMetadataKey):
                self._table.remove(record.key.group_id)
        self.offsets.refused(batch)
