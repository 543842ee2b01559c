"""What the Scala coordinator does in its own way when it takes a partition over, or gives it up.

Source: kafka 3.9, GroupMetadataManager.doLoadGroupsAndOffsets and removeGroupsAndOffsets.
"""

from collections.abc import Container, Iterable

from msgspec.structs import replace

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.loading import cancel_timers
from coordinator_sim.coordinator.offsets.offset_records import NO_RETENTION
from coordinator_sim.coordinator.runtime import Partition, Runtime
from coordinator_sim.coordinator.scala.group_offsets import Held, LoadedOffsets, Place, Stored
from coordinator_sim.kafka.orders.iteration_order import (
    HashOrder,
    old_scala_map_order,
    old_scala_set_order,
    scala_map_order,
    scala_set_order,
    scala_trie_order,
)


class ScalaTakeover:
    """Groups in one map of the broker, which keep their own offsets."""

    def groups_to_open(self, runtime: Runtime, partition: Partition) -> list[str]:
        """The groups with a record, then those that only have offsets."""
        _install_offsets(runtime, partition)
        return list(partition.groups)

    def start_timers(self, runtime: Runtime, partition: Partition) -> None:
        """A partition has none of its own: one job of the broker looks for what expires."""

    def end_writes(self, runtime: Runtime, partition: Partition) -> None:
        """An append outlives the leadership: its writer finds its group dead."""

    def groups_to_close(self, runtime: Runtime, partition: Partition) -> list[str]:
        """The partition's groups in the order of the broker's map.

        Source: removeGroupsForPartition goes through all its groups.
        """
        return [
            group.group_id
            for group in runtime.groups_in_cache_order()
            if group.group_id in partition.groups
        ]

    def groups_closed(self, runtime: Runtime, partition: Partition) -> None:
        """Cancel every timer that the end of the groups has left armed."""
        cancel_timers(runtime, partition)


def _install_offsets(runtime: Runtime, partition: Partition) -> None:
    """Give the loaded groups their offsets; ids that only have offsets become groups.

    The partition's groups come out in the order in which they are opened: those with a record,
    then those that only have offsets.

    Source: doLoadGroupsAndOffsets.
    """
    loaded = partition.loaded_offsets
    pending: dict[str, dict[int, dict[Place, Held]]] = {}
    for producer_id, held in loaded.pending.items():
        for (group_id, place), offset in held.items():
            of_producer = pending.setdefault(group_id, {}).setdefault(producer_id, {})
            of_producer[place] = offset
            runtime.open_groups.setdefault(producer_id, {})[group_id] = None
    recorded = partition.classic_groups()
    is_old_scala = runtime.profile.hash_order is HashOrder.SCALA_2_12
    names = old_scala_map_order(recorded) if is_old_scala else loaded.recorded_order()
    opened = {group_id: recorded[group_id] for group_id in names}
    ids = [group_id for group_id, found in loaded.committed.items() if found]
    bare = _bare_order(recorded, ids, pending)
    if is_old_scala:
        grouped = old_scala_set_order(old_scala_map_order(ids))
        bare = [group_id for group_id in grouped if group_id not in recorded]
    for group_id in bare:
        opened[group_id] = Group(runtime, group_id, partition.index)
    for group_id in dict.fromkeys((*ids, *pending)):
        group = opened[group_id]
        committed = loaded.committed.get(group_id, {})
        if runtime.profile.offsets_carry_expiry:
            kept_ms = runtime.config.offsets_retention_ms
            committed = {place: _with_expiry(one, kept_ms) for place, one in committed.items()}
        group.offsets.load(committed, pending.get(group_id, {}))
    partition.order_groups(opened)
    partition.loaded_offsets = LoadedOffsets()


def _with_expiry(stored: Stored, kept_ms: int) -> Stored:
    """An offset whose record, of version 0, does not say when it expires. Source: loadGroup."""
    value, base_offset = stored
    if value.expire_timestamp != NO_RETENTION:
        return stored
    expires_ms = value.commit_timestamp + kept_ms
    return replace(value, expire_timestamp=expires_ms), base_offset


def _bare_order(
    recorded: Container[str], committed: Iterable[str], pending: Iterable[str]
) -> list[str]:
    """The ids that only have offsets, in the order of a set of them.

    `groupBy` makes a trie of those with committed offsets, however few; without any a plain set
    takes those with open transactions from their table.
    """
    bare = [group_id for group_id in committed if group_id not in recorded]
    open_ids = [group_id for group_id in pending if group_id not in recorded]
    if bare:
        return scala_trie_order(dict.fromkeys((*bare, *open_ids)))
    return scala_set_order(scala_map_order(open_ids))
