"""The groups of one offsets partition, as they are and as readers of what is committed see them.

Source: kafka trunk, GroupMetadataManager.groups on TimelineHashMap; see `timeline`.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from coordinator_sim.protocol.records import GroupMetadataKey, LogBatch

if TYPE_CHECKING:
    from coordinator_sim.coordinator.group import Group


@dataclass(slots=True, eq=False, kw_only=True)
class GroupTable:
    """Groups by id, and what is remembered of those that went.

    Args:
        end_offset: Where the next record goes.
        high_watermark: Everything below is committed.
        removed_groups: Removed by a tombstone at that end offset, which is not committed yet.
        doubled_groups: Brought back when the append of their tombstone at that end was refused.
        most_groups: The number of groups that the table has made room for.
    """

    end_offset: int = 0
    high_watermark: int = 0
    groups: "dict[str, Group]" = field(default_factory=dict)
    removed_groups: "list[tuple[int, Group]]" = field(default_factory=list)
    doubled_groups: "dict[str, tuple[int, Group]]" = field(default_factory=dict)
    most_groups: int = 0

    def group_as_of(self, group_id: str, committed: int) -> "Group | None":
        """The group as a reader at that log position sees it; None when it sees none."""
        group = self.groups.get(group_id)
        if group is not None and group.visible_from <= committed:
            return group
        for removed_at, removed in self.removed_groups:
            if removed.group_id == group_id and removed.visible_from <= committed < removed_at:
                return removed
        return None

    def groups_as_of(self, committed: int) -> "list[Group]":
        """Every group that a reader at that log position lists, from the oldest entry on.

        A group that came back may be there twice: see `take_back_removals`.
        """
        seen = [group for group in self.groups.values() if group.visible_from <= committed]
        seen += [
            group
            for removed_at, group in self.removed_groups
            if group.visible_from <= committed < removed_at
        ]
        seen += [
            group
            for written, group in self.doubled_groups.values()
            if group.visible_from <= committed <= written
        ]
        return seen

    def remove_group(self, group_id: str, position: int) -> None:
        """Apply a group's tombstone; readers see the group until `position` is committed.

        Args:
            group_id: Of a group that is there.
            position: The one after the last written before the tombstone's batch; 0 for no reader.
        """
        self.most_groups = max(self.most_groups, len(self.groups))
        group = self.groups.pop(group_id)
        if position > self.high_watermark:
            self.removed_groups.append((position, group))
        doubled = self.doubled_groups.get(group_id)
        if doubled is not None and doubled[0] == position - 1:
            # What is kept for readers at one position is kept once.
            del self.doubled_groups[group_id]

    def take_back_removals(self, batch: LogBatch) -> None:
        """The append of a batch was refused: the groups that its tombstones removed come back.

        QUIRK: a group that comes back is the newest of its table, and readers list it twice until
        the next append is committed. Source: SnapshottableHashTable.executeRevert.
        """
        for record in batch.records:
            key = record.key
            if not isinstance(key, GroupMetadataKey) or record.value is not None:
                continue
            group = self.groups.pop(key.group_id, None)
            if group is not None:
                self.groups[key.group_id] = group
                self.doubled_groups[key.group_id] = (self.end_offset, group)

    def take_back_lingering(self) -> "list[Group]":
        """An open batch failed: the groups that its tombstones removed come back, and are told.

        Those that the batch created are gone by now, those created and removed in it stay so.
        """
        written = self.end_offset
        gone = [group for position, group in self.removed_groups if position == written + 1]
        self.removed_groups = [entry for entry in self.removed_groups if entry[0] <= written]
        back = [group for group in gone if group.visible_from <= written]
        for group in back:
            self.groups[group.group_id] = group
            self.doubled_groups[group.group_id] = (written, group)
        return back

    def settle_removals(self) -> None:
        """Forget the removed groups that no reader sees any more."""
        committed = self.high_watermark
        if self.removed_groups:
            self.removed_groups = [entry for entry in self.removed_groups if entry[0] > committed]
        if self.doubled_groups:
            doubled = self.doubled_groups.items()
            self.doubled_groups = {key: entry for key, entry in doubled if entry[0] >= committed}
