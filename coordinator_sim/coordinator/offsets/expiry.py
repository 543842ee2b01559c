"""Offsets that nobody needs any more, and groups that are left without any.

Java looks through each loaded partition at an interval, the first time one interval after its load.
Scala has one job for all, in `scala.cleanup`; what may expire is decided here for both.

Source: kafka trunk, GroupCoordinatorShard.cleanupGroupMetadata, OffsetMetadataManager
.cleanupExpiredOffsets, ClassicGroup.offsetExpirationCondition, OffsetExpirationConditionImpl.
"""

from dataclasses import dataclass
from typing import Final

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.classic.group import Group, is_consumer
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.modern.share.group import ShareGroup
from coordinator_sim.coordinator.offsets.offset_records import group_tombstone, offset_tombstones
from coordinator_sim.coordinator.partition import AnyGroup
from coordinator_sim.coordinator.runtime import NOT_LED, Effect, Partition, Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.timers import cancel_initial_delay
from coordinator_sim.coordinator.tracing import trace_offsets_expired
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.records import LogBatch, LogRecord
from coordinator_sim.trace.events import Event


def expiry_key(partition: Partition) -> TimerKey:
    """The name of a partition's expiry timer."""
    return TimerKey(TimerKind.EXPIRY, "", str(partition.index))


def arm_expiry(runtime: Runtime, partition: Partition) -> None:
    """Look through the partition one interval from now. Source: scheduleGroupMetadataExpiration."""
    deadline_ms = runtime.now_ms + runtime.config.offsets_retention_check_interval_ms
    key = expiry_key(partition)
    runtime.timers.schedule(key, deadline_ms, now_ms=runtime.now_ms, data=partition)


def expire_offsets(runtime: Runtime, partition: Partition) -> None:
    """Append a tombstone for every expired offset and every group that is left without any.

    Share groups have no offsets here, and never expire.

    Source: GroupCoordinatorShard.cleanupGroupMetadata.
    """
    records: list[LogRecord] = []
    doomed: list[str] = []
    expired = 0
    for group_id in partition.group_ids():
        group = partition.groups[group_id]
        if isinstance(group, ShareGroup):
            continue
        keys, is_all = expired_offsets(runtime, partition, group)
        records += offset_tombstones(keys)
        expired += len(keys)
        if is_looked_through(partition, group):
            accumulates = runtime.profile.counts_expiry_records
            runtime.counters.offset_expirations += len(records) if accumulates else len(keys)
        if is_all and _is_empty(group):
            records += tombstones_of(runtime, group)
            doomed.append(group_id)
    if expired and runtime.tracing:
        trace_offsets_expired(runtime, partition, expired)
    arm_expiry(runtime, partition)
    removal = RemoveGroups(runtime, partition)
    effect = Effect(
        records=tuple(records),
        apply=removal if doomed else None,
        follow=ExpiryRetry(runtime, partition),
    )
    runtime.submit(partition, None, effect)


def expired_offsets(
    runtime: Runtime, partition: Partition, group: AnyGroup
) -> tuple[list[OffsetCommitKey], bool]:
    """The expired offsets of a group in Kafka's order, and whether no others hold an Empty one.

    An Empty group subscribes to nothing, and all of its offsets may expire.

    Source: OffsetMetadataManager.cleanupExpiredOffsets.
    """
    store = partition.offsets
    group_id = group.group_id
    is_open = store.has_open_transactions(group_id)
    if not is_looked_through(partition, group):
        return [], not is_open
    keys: list[OffsetCommitKey] = []
    is_all = not is_open
    for topic, offsets in store.all_of(group_id):
        if group.is_subscribed_to(topic):
            continue
        for index, value in offsets:
            key = OffsetCommitKey(group_id, topic, index)
            if is_expired(runtime, group, value) and not store.is_open(key):
                keys.append(key)
            else:
                is_all = False
    return keys, is_all


def is_looked_through(partition: Partition, group: AnyGroup) -> bool:
    """Whether a run looks at single offsets of the group, and counts what it found."""
    return partition.offsets.has_offsets(group.group_id) and may_expire_offsets(group)


def may_expire_offsets(group: AnyGroup) -> bool:
    """Whether offsets of the group expire at all while it is as it is.

    Source: ClassicGroup.offsetExpirationCondition and ConsumerGroup.offsetExpirationCondition.
    """
    if not isinstance(group, Group):
        return isinstance(group, ConsumerGroup | StreamsGroup)
    if group.protocol_type is None or group.state is GroupState.EMPTY:
        return True
    is_known = is_consumer(group.protocol_type) and group.subscriptions.topics() is not None
    return is_known and group.state is GroupState.STABLE


def is_expired(runtime: Runtime, group: AnyGroup, value: OffsetCommitValue) -> bool:
    """Whether an offset's time is over: its own if it has one, else the broker's retention.

    Retention counts from the commit, or in a group that is known to have lost its members from
    the loss.

    Source: OffsetExpirationConditionImpl.isOffsetExpired.
    """
    now_ms = runtime.wall_ms
    if value.expire_timestamp != -1:
        return now_ms >= value.expire_timestamp
    base_ms = value.commit_timestamp
    if isinstance(group, Group):
        is_left = group.protocol_type is not None and group.state is GroupState.EMPTY
        if is_left and group.current_state_timestamp_ms != -1:
            base_ms = group.current_state_timestamp_ms
    return now_ms - base_ms >= runtime.config.offsets_retention_ms


def _is_empty(group: AnyGroup) -> bool:
    if not isinstance(group, Group):
        return group.is_empty
    return group.state is GroupState.EMPTY


def tombstones_of(runtime: Runtime, group: AnyGroup) -> tuple[LogRecord, ...]:
    """The records that remove a group, its offsets aside; its own timers are called off.

    Source: GroupMetadataManager.createGroupTombstoneRecordsAndCancelTimers.
    """
    if isinstance(group, StreamsGroup):
        cancel_initial_delay(runtime, group.group_id)
    if not isinstance(group, Group):
        return group.tombstones()
    return (group_tombstone(group.group_id),)


CONVERTED: Final = "converted"
"""Cause of a group's end that goes on as another type."""


@dataclass(slots=True, eq=False)
class RemoveGroups:
    """Groups whose tombstones are in a batch, which take them out of the partition's table."""

    runtime: Runtime
    partition: Partition
    cause: str = "no offsets"

    def applied(self, batch: LogBatch, written: int) -> None:  # noqa: ARG002 - of the protocol
        """Forget them; readers see them until the batch is committed."""
        for record in batch.records:
            if record.value is None and isinstance(record.key, GroupMetadataKey):
                group = self.partition.classic_group(record.key.group)
                if group is not None:
                    _forget(self.runtime, group, self.cause)


def drop_group(
    runtime: Runtime,
    partition: Partition,
    group: Group,
    *,
    cause: str = "no offsets",
) -> None:
    """Forget a group, and tell the trace the cause."""
    partition.remove_group(group.group_id)
    _forget(runtime, group, cause)


def _forget(runtime: Runtime, group: Group, cause: str) -> None:
    runtime.remove_group(group.group_id)
    if runtime.tracing and cause != CONVERTED:
        group.tell(
            Event.GROUP_DEAD,
            state_from=group.state,
            state_to=GroupState.DEAD,
            attrs={"cause": cause},
        )


@dataclass(slots=True, eq=False)
class ExpiryRetry:
    """A run whose write failed is repeated one interval later. Source: CoordinatorTimerImpl."""

    runtime: Runtime
    partition: Partition

    def finish(self, error: ErrorCode) -> None:
        """Arm the timer anew, counted from the failure."""
        if error is not ErrorCode.NONE and error not in NOT_LED:
            arm_expiry(self.runtime, self.partition)
