"""Members that leave a streams group, or are fenced from it; the first target of a group.

Source: kafka 4.4, GroupMetadataManager.streamsGroupLeave, streamsGroupFenceMember,
streamsGroupStaticMemberGroupLeave and computeDelayedTargetAssignment.
"""

from msgspec.structs import replace

from coordinator_sim.coordinator.effects import Effect
from coordinator_sim.coordinator.epoch_group import STATIC_LEAVE_EPOCH, UNKNOWN_TIME
from coordinator_sim.coordinator.epoch_members import (
    cancel_member_timers,
    member_of,
    submit_by_timer,
)
from coordinator_sim.coordinator.epoch_refusals import Refusal, group_of_type
from coordinator_sim.coordinator.runtime import Partition, PartitionState, Runtime
from coordinator_sim.coordinator.streams.group import StreamsGroup
from coordinator_sim.coordinator.streams.member import StreamsGroupMember
from coordinator_sim.coordinator.streams.target import Question, updated_target
from coordinator_sim.coordinator.streams.tasks import NOTHING_HELD
from coordinator_sim.coordinator.streams.timers import InitialAssignment
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.streams_group_heartbeat import (
    StreamsGroupHeartbeatRequest,
    StreamsGroupHeartbeatResponse,
)
from coordinator_sim.trace.epoch_groups import Beside


def leave_streams_group(
    runtime: Runtime, partition: Partition, request: StreamsGroupHeartbeatRequest
) -> Effect | Refusal:
    """A heartbeat that leaves, for good or for a while; its epoch is not compared."""
    group_id = request.group_id
    group = group_of_type(StreamsGroup, group_id, partition.groups.get(group_id))
    if isinstance(group, Refusal):
        return group
    if request.shutdown_application and group.shutdown_member_id is None:
        group.shutdown_member_id = request.member_id
    found = member_of(group, request.member_id, request.instance_id)
    if isinstance(found, Refusal):
        return found
    response = StreamsGroupHeartbeatResponse(
        member_id=request.member_id, member_epoch=request.member_epoch
    )
    if request.instance_id is not None and request.member_epoch == STATIC_LEAVE_EPOCH:
        return Effect(records=(_away(group, found),), response=response)
    return replace(fence_streams_member(runtime, partition, group, found), response=response)


def _away(group: StreamsGroup, member: StreamsGroupMember) -> LogRecord:
    """A static member that will be back keeps what it has; its session goes on as it is."""
    held = member.assigned
    active = {name: dict.fromkeys(numbers, 0) for name, numbers in held.active.items()}
    away = replace(
        member,
        member_epoch=STATIC_LEAVE_EPOCH,
        assigned=replace(held, active=active),
        pending_revocation=NOTHING_HELD,
    )
    return group.assignment_record(away)


def fence_streams_member(
    runtime: Runtime, _partition: Partition, group: StreamsGroup, member: StreamsGroupMember
) -> Effect:
    """The records that remove a member; its timers are cancelled at once.

    Source: streamsGroupFenceMember.
    """
    group_id, epochs = group.group_id, group.epochs
    epoch = epochs.group_epoch + 1
    records = [
        *group.member_tombstones(member.member_id),
        group.group_record(replace(epochs, group_epoch=epoch)),
    ]
    if len(group.members) == 1 and runtime.profile.streams_empty_group_is_assigned:
        records.append(group.target_epoch_record(epoch, UNKNOWN_TIME))
    cancel_member_timers(runtime, group_id, member.member_id)
    return Effect(records=tuple(records))


def expire_initial_delay(runtime: Runtime, delay: InitialAssignment) -> None:
    """Compute the first target of a group; a write that fails is not repeated.

    QUIRK: nothing is computed where no heartbeat after the first has configured the topology; the
    next one does both.
    """
    partition = delay.partition
    if partition.state is not PartitionState.ACTIVE:
        return
    group = partition.groups.get(delay.group_id)
    records: list[LogRecord] = []
    if isinstance(group, StreamsGroup) and not group.is_empty:
        epochs, configured = group.epochs, group.configured()
        if epochs.group_epoch > epochs.assignment_epoch and configured is not None:
            question = Question(group, epochs.group_epoch, None, configured, epochs.settings)
            updated_target(runtime, question, records)
    if records or not partition.is_settled:
        delay_ms = runtime.config_of(delay.group_id).group_streams_initial_rebalance_delay_ms
        beside = Beside(delay_ms=delay_ms)
        submit_by_timer(runtime, partition, Effect(records=tuple(records), beside=beside))
