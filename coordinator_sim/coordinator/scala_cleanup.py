"""How offsets go in the Scala coordinator: OffsetDelete, deleted topics, expiry, transactions.

All of it removes from memory first and appends tombstones after, which nobody waits for. A group
that is Empty and without offsets dies on the way.

Source: kafka 3.9, GroupMetadataManager.cleanupGroupMetadata, handleTxnCompletion and
doLoadGroupsAndOffsets; GroupCoordinator.handleDeleteOffsets and handleDeletedPartitions.
"""

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from msgspec.structs import replace

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.expiry import drop_group, is_expired, may_expire_offsets
from coordinator_sim.coordinator.group import Group
from coordinator_sim.coordinator.offset_records import (
    NO_RETENTION,
    group_tombstone,
    offset_tombstones,
)
from coordinator_sim.coordinator.runtime import Parked, Partition, Runtime
from coordinator_sim.coordinator.scala_offsets import (
    Held,
    LoadedOffsets,
    Place,
    immutable_order,
)
from coordinator_sim.coordinator.subscriptions import is_consumer
from coordinator_sim.coordinator.tracing import (
    trace_offsets_expired,
    trace_partitions_deleted,
    trace_topics_deleted,
)
from coordinator_sim.protocol.admin_messages import (
    DeletedOffset,
    DeletedOffsetTopic,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.iteration_order import (
    old_scala_set_order,
    scala_map_order,
    scala_set_order,
    scala_trie_order,
)
from coordinator_sim.protocol.partitioning import partition_for
from coordinator_sim.protocol.records import LogRecord, OffsetCommitKey, OffsetCommitValue
from coordinator_sim.protocol.states import GroupState
from coordinator_sim.protocol.table_order import HashOrder, old_scala_map_order

Selector = Callable[[Group], list[Place]]
"""Removes offsets of a group; those that were committed, in Kafka's order."""

EXPIRY_KEY = TimerKey(TimerKind.EXPIRY, "")
"""The name of the broker's one expiry job."""


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
        count_of_partitions = runtime.config.offsets_topic_num_partitions
        home = runtime.partitions.get(partition_for(group_id, count_of_partitions))
        removed = selector(group)
        count += len(removed)
        records: list[LogRecord] = list(
            offset_tombstones(
                OffsetCommitKey(group_id, place.topic, place.partition) for place in removed
            )
        )
        if group.state is GroupState.EMPTY and not group.offsets.has_any():
            drop_group(runtime, partition, group, 0, cause=cause)
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


# -- by name -------------------------------------------------------------------------------


def scala_offset_delete(
    runtime: Runtime,
    group: Group,
    request: OffsetDeleteRequest,
    parked: Parked,
) -> None:
    """Delete offsets of topics that the group is not subscribed to.

    Source: handleDeleteOffsets; GroupCoordinatorAdapter.deleteOffsets.
    """
    places = [Place(topic.name, index) for topic in request.topics for index in topic.partitions]
    doomed = places
    if group.state is not GroupState.EMPTY:
        doomed = [place for place in places if not _is_subscribed(group, place.topic)]
    refused = dict.fromkeys(place for place in places if place not in frozenset(doomed))
    if doomed:
        # QUIRK: a group without members that has no offset left dies by an OffsetDelete.
        count = clean_up(runtime, (group,), lambda one: one.offsets.remove(doomed))
        runtime.counters.offset_deletions += count
        if runtime.tracing:
            trace_partitions_deleted(group, doomed, count)
    topics: dict[str, list[DeletedOffset]] = {}
    for place in immutable_order((*refused, *doomed)):
        is_refused = place in refused
        error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_refused else ErrorCode.NONE
        topics.setdefault(place.topic, []).append(DeletedOffset(place.partition, error))
    answer = OffsetDeleteResponse(
        topics=tuple(DeletedOffsetTopic(name, tuple(found)) for name, found in topics.items())
    )
    runtime.answer(parked, answer)


def _is_subscribed(group: Group, topic: str) -> bool:
    """Source: GroupMetadata.isSubscribedToTopic."""
    topics = group.subscriptions.topics()
    return topics is None or topic in topics


def scala_partitions_deleted(runtime: Runtime, places: list[Place]) -> None:
    """Partitions are gone: so are their offsets. Source: handleDeletedPartitions."""
    count = clean_up(
        runtime, runtime.groups_in_cache_order(), lambda group: group.offsets.remove(places)
    )
    if runtime.tracing:
        trace_topics_deleted(runtime, places, count)


# -- expiry --------------------------------------------------------------------------------


def start_expiry(runtime: Runtime) -> None:
    """Run the expiry job now, when there is nothing yet, and at an interval from now on."""
    if runtime.timers.get(EXPIRY_KEY) is None:
        deadline_ms = runtime.now_ms + runtime.config.offsets_retention_check_interval_ms
        runtime.timers.schedule(EXPIRY_KEY, deadline_ms, now_ms=runtime.now_ms)


def scala_expire(runtime: Runtime) -> None:
    """Remove expired offsets of every group; a failed append is not repeated."""
    count = clean_up(
        runtime, runtime.groups_in_cache_order(), lambda group: _remove_expired(runtime, group)
    )
    runtime.counters.offset_expirations += count
    if count and runtime.tracing:
        trace_offsets_expired(runtime, None, count)
    start_expiry(runtime)


def _remove_expired(runtime: Runtime, group: Group) -> list[Place]:
    """Source: GroupMetadata.removeExpiredOffsets."""
    if runtime.profile.offsets_carry_expiry:
        now_ms = runtime.now_ms
        return group.offsets.remove_expired(lambda _, value: value.expire_timestamp_ms < now_ms)
    if not may_expire_offsets(group):
        return []
    in_use: frozenset[str] = frozenset()
    if is_consumer(group) and group.state is GroupState.STABLE:
        in_use = group.subscriptions.topics() or in_use

    def expired(place: Place, value: OffsetCommitValue) -> bool:
        return place.topic not in in_use and is_expired(runtime, group, value)

    return group.offsets.remove_expired(expired)


# -- transactions --------------------------------------------------------------------------


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


# -- load ----------------------------------------------------------------------------------


def install_offsets(runtime: Runtime, partition: Partition) -> None:
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
    recorded = partition.groups
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
            committed = {place: _with_expiry(held, kept_ms) for place, held in committed.items()}
        group.offsets.load(committed, pending.get(group_id, {}))
    partition.order_groups(opened)
    partition.loaded_offsets = LoadedOffsets()


def _with_expiry(held: Held, kept_ms: int) -> Held:
    """An offset whose record, of version 0, does not say when it expires. Source: loadGroup."""
    value, base_offset = held
    if value.expire_timestamp_ms != NO_RETENTION:
        return held
    expires_ms = value.commit_timestamp_ms + kept_ms
    return replace(value, expire_timestamp_ms=expires_ms), base_offset


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
