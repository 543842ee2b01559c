"""Taking over a partition of `__consumer_offsets`, and giving it up.

What survives a failover is exactly what a replay of the partition gives. What only one of Kafka's
coordinators does here is a `Takeover`: `JavaTakeover` is Java's, `scala.loading` has Scala's.

Source: kafka trunk, GroupCoordinatorShard.onLoaded; GroupMetadataManager.replay and onUnloaded;
OffsetMetadataManager.replay; CoordinatorRuntime.CoordinatorContext.unload.
"""

from collections.abc import Container
from typing import Protocol

from coordinator_sim.clock.timer_queue import Timer, TimerKey, TimerKind
from coordinator_sim.coordinator.classic.group import Group, Member, subscriptions_of
from coordinator_sim.coordinator.classic.join_phase import (
    OwnSession,
    complete_join_of,
    prepare_rebalance,
    start_session,
)
from coordinator_sim.coordinator.epoch_members import start_timers_of
from coordinator_sim.coordinator.epoch_tracing import (
    trace_group_loaded,
    trace_group_unloaded,
)
from coordinator_sim.coordinator.metrics import arm_gauge, gauge_key
from coordinator_sim.coordinator.offsets.expiry import arm_expiry, expiry_key
from coordinator_sim.coordinator.partition import AnyGroup
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime
from coordinator_sim.coordinator.scala.group_offsets import LoadedOffsets
from coordinator_sim.coordinator.scala.transactions import forget_producers
from coordinator_sim.coordinator.tracing import trace_member_loaded
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import OFFSETS_TOPIC
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from coordinator_sim.messages.join_group import JoinGroupRequestProtocol, JoinGroupResponse
from coordinator_sim.messages.records import LogBatch, OpaqueKey
from coordinator_sim.messages.sync_group import SyncGroupResponse
from coordinator_sim.trace.events import Event, RebalanceReason

_SESSIONS = frozenset({TimerKind.SESSION, TimerKind.REPEAT})
_GROUP_TIMERS = _SESSIONS | {
    TimerKind.JOIN,
    TimerKind.SYNC,
    TimerKind.CONSUMER_SESSION,
    TimerKind.CONSUMER_REBALANCE,
    TimerKind.CONSUMER_JOIN,
    TimerKind.CONSUMER_SYNC,
    TimerKind.STREAMS_INITIAL_DELAY,
}


class Takeover(Protocol):
    """What a coordinator does in its own way when it takes a partition over, or gives it up."""

    def groups_to_open(self, runtime: Runtime, partition: Partition) -> list[str]:
        """Every loaded group, with its offsets, in the order in which they are opened."""
        ...

    def start_timers(self, runtime: Runtime, partition: Partition) -> None:
        """All groups are open: arm the timers of the partition itself."""
        ...

    def end_writes(self, runtime: Runtime, partition: Partition) -> None:
        """The partition is given up: tell those whose writes are under way."""
        ...

    def groups_to_close(self, runtime: Runtime, partition: Partition) -> list[str]:
        """Every group in the order in which they die."""
        ...

    def groups_closed(self, runtime: Runtime, partition: Partition) -> None:
        """All groups are dead: see to the timers that their end has armed."""
        ...


class JavaTakeover:
    """A table of groups for each partition, which comes and goes with the log."""

    def groups_to_open(self, _runtime: Runtime, partition: Partition) -> list[str]:
        """The groups in the order of their table; their offsets are in the partition's."""
        return partition.group_ids()

    def start_timers(self, runtime: Runtime, partition: Partition) -> None:
        """Each partition has an expiry and a gauge timer."""
        arm_expiry(runtime, partition)
        arm_gauge(runtime, partition)

    def end_writes(self, runtime: Runtime, partition: Partition) -> None:
        """Every write fails, and its follow-up may have armed timers again.

        QUIRK: timers armed in an unload run on, whoever leads the partition by then, and find a
        Dead group.
        Source: CoordinatorContext.unload cancels the timers before it fails the writes.
        """
        runtime.fail_writes(partition, ErrorCode.NOT_COORDINATOR)
        for timer in group_timers(runtime, partition):
            name = TimerKey(TimerKind.ORPHAN, timer.key.group_id, str(timer.arm_seq))
            runtime.timers.rename(timer, name)

    def groups_to_close(self, _runtime: Runtime, partition: Partition) -> list[str]:
        """The groups in the order of their table."""
        return partition.group_ids()

    def groups_closed(self, _runtime: Runtime, _partition: Partition) -> None:
        """Timers armed meanwhile run on."""


def replay_batch(runtime: Runtime, partition: Partition, batch: LogBatch) -> None:
    """Apply a stored batch; the last record of a key wins.

    A batch above the high watermark is applied too, and is seen by readers once committed. What
    this coordinator appended itself is committed as far as it was told; what is new to it comes
    from another leader, and is. A record that contradicts its group ends the load: a broker gives
    the partition up then.

    Source: CoordinatorLoaderImpl.doLoad, whose exception CoordinatorRuntime takes for the load's.
    """
    if partition.load_error is not ErrorCode.NONE:
        return
    try:
        _replay_batch(runtime, partition, batch)
    except OperationAborted:
        partition.load_error = ErrorCode.UNKNOWN_SERVER_ERROR


def _replay_batch(runtime: Runtime, partition: Partition, batch: LogBatch) -> None:
    end_offset = batch.next_offset
    if end_offset > partition.end_offset:
        partition.end_offset = partition.high_watermark = end_offset
    follows = runtime.profile.has_coordinator_runtime
    is_told = runtime.tracing and not follows
    partition.begin(batch.base_offset)
    partition.loaded_records += len(batch.records)
    for record in batch.records:
        key, value = record.key, record.value
        if isinstance(key, OpaqueKey):
            # Of another group type, or left over from an upgrade taken back.
            # Source: CoordinatorLoaderImpl.processMemoryRecords, UnknownRecordTypeException.
            continue
        if isinstance(key, GroupMetadataKey):
            if isinstance(value, GroupMetadataValue):
                _replay_group(runtime, partition, key.group, value, is_told=is_told)
            else:
                partition.remove_group(key.group)
        elif not isinstance(key, OffsetCommitKey):
            partition.replay(record)
        elif follows and isinstance(value, OffsetCommitValue) and key.group not in partition.groups:
            partition.put_group(Group(runtime, key.group, partition.index))
    if follows:
        partition.offsets.appended(batch, partition.high_watermark, offsets_alone=True)
    else:
        partition.loaded_offsets.replay(batch)


def _replay_group(
    runtime: Runtime,
    partition: Partition,
    group_id: str,
    value: GroupMetadataValue,
    *,
    is_told: bool,
) -> None:
    group = Group(runtime, group_id, partition.index)
    group.restore(value)
    for stored in value.members:
        member = _member_of(stored, value)
        group.add(member)
        if is_told:
            trace_member_loaded(group, member)
    group.subscriptions = subscriptions_of(
        group.protocol_type, group.protocol_name, group.members.values()
    )
    partition.put_group(group)


def _member_of(stored: MemberMetadata, value: GroupMetadataValue) -> Member:
    """A stored member: of its protocols only the chosen one is known."""
    # QUIRK: until it rejoins, a member with several protocols therefore looks changed.
    timeout_ms = stored.rebalance_timeout
    return Member(
        stored.member_id,
        stored.group_instance_id,
        stored.client_id,
        stored.client_host,
        stored.session_timeout,
        stored.session_timeout if timeout_ms == -1 else timeout_ms,
        value.protocol_type,
        (JoinGroupRequestProtocol(value.protocol or "", stored.subscription),),
        stored.assignment,
    )


def finish_load(
    runtime: Runtime, takeover: Takeover, partition: Partition, error: ErrorCode
) -> None:
    """Open the partition for requests and start every member's session. Source: onLoaded."""
    if error is ErrorCode.NONE:
        error = partition.load_error
    partition.load_error = ErrorCode.NONE
    if error is not ErrorCode.NONE:
        _fail_load(runtime, partition, error)
        return
    partition.state = PartitionState.ACTIVE
    open_groups(runtime, takeover, partition)
    takeover.start_timers(runtime, partition)
    if runtime.tracing:
        _trace_load_done(runtime, partition)


def open_groups(runtime: Runtime, takeover: Takeover, partition: Partition) -> None:
    """Start the timers of every group that was replayed. Source: GroupMetadataManager.onLoaded."""
    partition.loaded_version = runtime.topics.version
    for group_id in takeover.groups_to_open(runtime, partition):
        _open(runtime, partition, partition.groups[group_id])


def _open(runtime: Runtime, partition: Partition, group: AnyGroup) -> None:
    """Start the timers of a group that was loaded."""
    if isinstance(group, Group):
        _open_classic(runtime, group)
        return
    if runtime.tracing:
        trace_group_loaded(runtime, group)
    start_timers_of(runtime, partition, group)


def _open_classic(runtime: Runtime, group: Group) -> None:
    is_first = runtime.profile.over_capacity_rebalances_first
    runtime.add_group(group)
    if runtime.tracing:
        _trace_loaded(group)
    if is_first:
        _shrink(runtime, group)
    for member in group.ordered():
        start_session(runtime, group, member)
    if not is_first:
        _shrink(runtime, group)


def _fail_load(runtime: Runtime, partition: Partition, error: ErrorCode) -> None:
    partition.state = PartitionState.FAILED
    partition.clear()
    partition.loaded_offsets = LoadedOffsets()
    if runtime.tracing:
        runtime.emit(
            Event.LOAD_FAILED,
            offsets_partition=partition.index,
            error_code=error,
            attrs={"epoch": str(partition.leader_epoch)},
        )


def _trace_load_done(runtime: Runtime, partition: Partition) -> None:
    runtime.emit(
        Event.LOAD_DONE,
        offsets_partition=partition.index,
        latency_us=(runtime.now_ms - partition.load_started_ms) * 1_000,
        attrs={"epoch": str(partition.leader_epoch), "records": str(partition.loaded_records)},
    )


def _shrink(runtime: Runtime, group: Group) -> None:
    """Let a group of too many members rebalance; nobody has joined yet to be stored."""
    limit = runtime.config.group_max_size
    if runtime.profile.limits_group_size and len(group.members) > limit:
        text = (
            f"Freshly-loaded group {group.group_id} (size {len(group.members)}) is over capacity "
            f"{limit}. Rebalancing in order to give a chance for consumers to commit offsets"
        )
        prepare_rebalance(runtime, group, RebalanceReason.OVER_CAPACITY, text)


def _trace_loaded(group: Group) -> None:
    group.tell(
        Event.GROUP_LOADED,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader_id=group.leader_id,
        members=len(group.members),
        static_members=len(group.static_members),
        state_to=group.state,
    )


def unload(
    runtime: Runtime, takeover: Takeover, partition: Partition, leader_epoch: int | None
) -> None:
    """Close the partition: answer what is parked, drop timers, forget groups and offsets."""
    epoch = {} if leader_epoch is None else {"epoch": str(leader_epoch)}
    if runtime.tracing:
        runtime.emit(Event.COORD_RESIGNED, offsets_partition=partition.index, attrs=epoch)
    cancel_timers(runtime, partition)
    takeover.end_writes(runtime, partition)
    for group_id in takeover.groups_to_close(runtime, partition):
        group = partition.groups[group_id]
        if not isinstance(group, Group):
            if runtime.tracing:
                trace_group_unloaded(runtime, group)
            continue
        runtime.remove_group(group_id)
        forget_producers(runtime, group_id)
        _kill(runtime, group)
    takeover.groups_closed(runtime, partition)
    offsets = partition.offsets.count() + sum(
        len(group.offsets.committed) for group in partition.classic_groups().values()
    )
    counts = {"groups": str(len(partition.groups)), "offsets": str(offsets)}
    partition.forget()
    partition.state = PartitionState.CLOSED
    if runtime.tracing:
        runtime.emit(Event.UNLOAD_DONE, offsets_partition=partition.index, attrs=epoch | counts)


def begin_anew(runtime: Runtime, deleted: Container[str]) -> None:
    """Reset closed partitions to offset 0 if the offsets topic was deleted."""
    for partition in runtime.partitions.values():
        if OFFSETS_TOPIC in deleted and partition.state is PartitionState.CLOSED:
            partition.end_offset = partition.high_watermark = 0


def cancel_timers(runtime: Runtime, partition: Partition) -> None:
    """Drop the partition's timers, those of groups whose creation was undone included.

    Drops what another thread is to do for its groups as well.

    Source: CoordinatorTimerImpl.cancelAll, CoordinatorExecutorImpl.cancelAll.
    """
    timers = runtime.timers
    for key in [key for key in runtime.in_background if key[0] == partition.index]:
        del runtime.in_background[key]
    timers.cancel(expiry_key(partition))
    timers.cancel(gauge_key(partition))
    for timer in group_timers(runtime, partition):
        if timer.key.kind not in _SESSIONS or not runtime.profile.sessions_outlive_group:
            timers.cancel(timer.key)
        elif not isinstance(timer.data, Group | OwnSession):
            timer.data = runtime.groups.get(timer.key.group_id)


def group_timers(runtime: Runtime, partition: Partition) -> list[Timer]:
    """The armed timers of the partition's groups."""
    return [
        timer
        for timer in runtime.timers
        if timer.key.kind in _GROUP_TIMERS
        and runtime.partition_index(timer.key.group_id) == partition.index
    ]


def _kill(runtime: Runtime, group: Group) -> None:
    """Make a group Dead and tell its parked members. Source: onUnloaded."""
    if runtime.tracing:
        group.emit(Event.GROUP_UNLOADED)
    group.die()
    refused = ErrorCode.NOT_COORDINATOR
    for member in group.ordered():
        if group.previous_state is GroupState.PREPARING_REBALANCE:
            answer = JoinGroupResponse(
                error_code=refused, member_id=member.member_id, protocol_name=None
            )
            complete_join_of(runtime, group, member, answer)
        elif member.awaiting_sync is not None:
            runtime.answer(member.awaiting_sync, SyncGroupResponse(error_code=refused))
            member.awaiting_sync = None
