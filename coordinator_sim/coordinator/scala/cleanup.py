"""How the Scala coordinator removes offsets, and groups that are left without any.

Memory first, and tombstones after, which nobody waits for. OffsetDelete, deleted topics, expiry and
DeleteGroups all do so, each with its own choice of offsets.

Source: kafka 3.9, GroupMetadataManager.cleanupGroupMetadata.
"""

from collections.abc import Callable, Iterable

from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.offsets.expiry import drop_group
from coordinator_sim.coordinator.offsets.offset_records import group_tombstone, offset_tombstones
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.coordinator.scala.group_offsets import Place
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.group_records import OffsetCommitKey
from coordinator_sim.messages.records import LogRecord

Selector = Callable[[Group], list[Place]]
"""Removes offsets of a group; those that were committed, in Kafka's order."""


def clean_up(
    runtime: Runtime, groups: Iterable[Group], selector: Selector, *, cause: str = "no offsets"
) -> int:
    """Remove offsets, and groups that are left without any.

    Returns:
        How many committed offsets went.

    Source: cleanupGroupMetadata.
    """
    count = 0
    for group in list(groups):
        partition = runtime.partitions[group.offsets_partition]
        group_id = group.group_id
        # QUIRK: tombstones go where the id belongs, also when a foreign record brought the group.
        home = runtime.partitions.get(runtime.partition_index(group_id))
        removed = selector(group)
        count += len(removed)
        records: list[LogRecord] = list(
            offset_tombstones(
                OffsetCommitKey(group_id, place.topic, place.partition) for place in removed
            )
        )
        if group.state is GroupState.EMPTY and not group.offsets.has_any():
            drop_group(runtime, partition, group, cause=cause)
            group.bury()
            # A group of generation 0 only stored offsets: there is no record of it.
            if group.generation_id > 0:
                records.append(group_tombstone(group_id))
        if records and home is not None:
            runtime.append_unacknowledged(home, tuple(records))
    return count


def scala_delete_group(runtime: Runtime, group: Group) -> int:
    """Remove an Empty group with all its offsets, also those under way; how many were committed.

    Source: GroupCoordinator.handleDeleteGroups.
    """
    return clean_up(runtime, (group,), _forget_all, cause="deleted")


def _forget_all(group: Group) -> list[Place]:
    removed = group.offsets.remove_all()
    group.offsets.pending.clear()
    group.offsets.transactional.clear()
    return removed
