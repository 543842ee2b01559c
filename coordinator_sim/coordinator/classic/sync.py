"""SyncGroup: the leader's assignment is stored and handed out.

Source: kafka trunk, GroupMetadataManager.classicGroupSync and below.
"""

from msgspec import Struct

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.classic.group import Group, Member
from coordinator_sim.coordinator.classic.join_phase import (
    group_record,
    rebalance_or_complete,
    reset_assignments,
    start_session,
    trace_store_failure,
)
from coordinator_sim.coordinator.modern.consumer.classic_members import sync_with_consumer_group
from coordinator_sim.coordinator.runtime import (
    NO_EFFECT,
    Effect,
    Parked,
    Partition,
    Runtime,
    dead_error,
    metadata_append_error,
)
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.states import AWAITING_SYNC, DEAD, EMPTY, PREPARING_REBALANCE
from coordinator_sim.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from coordinator_sim.trace.events import Event, RebalanceReason


def handle_sync(
    runtime: Runtime, partition: Partition, request: SyncGroupRequest, parked: Parked
) -> Effect | ErrorCode:
    """Answer or park a SyncGroup. Source: classicGroupSyncToClassicGroup."""
    consumer_group = partition.consumer_group(request.group_id)
    if consumer_group is not None:
        return sync_with_consumer_group(runtime, partition, consumer_group, request, parked)
    group = partition.classic_group(request.group_id)
    error = _validate(runtime, group, request)
    if group is None or error is not NO_ERROR:
        runtime.answer(parked, SyncGroupResponse(error_code=error))
        return NO_EFFECT
    if group.state is PREPARING_REBALANCE:
        runtime.answer(parked, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        return NO_EFFECT
    member = group.members[request.member_id]
    if group.state is AWAITING_SYNC:
        member.awaiting_sync = parked
        _has_synced(runtime, group, member)
        if group.leader_id == member.member_id:
            return _store_assignment(runtime, group, request)
        return NO_EFFECT
    _has_synced(runtime, group, member)
    if runtime.profile.sync_extends_session:
        start_session(runtime, group, member)
    runtime.answer(
        parked,
        SyncGroupResponse(
            protocol_type=group.protocol_type,
            protocol_name=group.protocol_name,
            assignment=member.assignment,
        ),
    )
    return NO_EFFECT


def _validate(runtime: Runtime, group: Group | None, request: SyncGroupRequest) -> ErrorCode:
    """Source: classicGroupSync and validateSyncGroup."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is EMPTY and runtime.profile.empty_group_refuses_sync_first:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is DEAD:
        return dead_error(runtime.profile)
    error = group.validate_member(request.member_id, request.group_instance_id)
    if error is not NO_ERROR:
        return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    given_type, given_name = request.protocol_type, request.protocol_name
    if (given_type is not None and _differs(runtime, given_type, group.protocol_type)) or (
        given_name is not None and _differs(runtime, given_name, group.protocol_name)
    ):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return NO_ERROR


def _differs(runtime: Runtime, given: str, known: str | None) -> bool:
    """Source: isProtocolInconsistent; Scala counts a given value against none as different."""
    return given != known and not (known is None and runtime.profile.null_protocol_is_consistent)


def _has_synced(runtime: Runtime, group: Group, member: Member) -> None:
    """Source: removePendingSyncMember."""
    group.pending_sync.pop(member.member_id, None)
    if not group.pending_sync:
        runtime.timers.cancel(TimerKey(TimerKind.SYNC, group.group_id))


def _store_assignment(runtime: Runtime, group: Group, request: SyncGroupRequest) -> Effect:
    given = {entry.member_id: entry.assignment for entry in request.assignments}
    if not runtime.profile.counts_stable_generations:
        runtime.counters.completed_rebalances += 1
    if runtime.tracing:
        group.tell(
            Event.SYNC_LEADER,
            leader_id=group.leader_id,
            member_id=request.member_id,
            members=len(group.members),
            static_members=len(group.static_members),
        )
        _trace_missing(group, given)
    return Effect(
        records=(group_record(runtime, group, group.as_record(given)),),
        follow=StoreAssignment(runtime, group, request, given),
    )


def _trace_missing(group: Group, given: dict[str, bytes]) -> None:
    """Tell of the members that the leader forgot. Source: classicGroupSyncToClassicGroup."""
    missing = [member.member_id for member in group.ordered() if member.member_id not in given]
    if missing:
        group.tell(Event.EMPTY_ASSIGNMENT, attrs={"member_ids": ", ".join(missing)})


class StoreAssignment(Struct, eq=False):
    """The record of a generation's assignment."""

    runtime: Runtime
    group: Group
    request: SyncGroupRequest
    assignments: dict[str, bytes]

    def finish(self, error: ErrorCode) -> None:
        """Hand the assignment out, unless the group moved on while it was being stored.

        Source: the append callback of classicGroupSyncToClassicGroup.
        """
        runtime, group = self.runtime, self.group
        if group.state is not AWAITING_SYNC:
            return
        if group.generation_id != self.request.generation_id:
            return
        if error is NO_ERROR:
            self._hand_out()
            group.stabilise()
            if runtime.profile.counts_stable_generations:
                runtime.counters.completed_rebalances += 1
            return
        code = metadata_append_error(error, runtime.profile)
        trace_store_failure(runtime, group, error, "assignment")
        reset_assignments(runtime, group, code)
        # The effect is dropped, as in Kafka: a record of this rebalance would have to wait for the
        # append under way.
        rebalance_or_complete(
            runtime,
            group,
            RebalanceReason.STORE_ERROR,
            f"Error {code.name} when storing group assignment during SyncGroup "
            f"(member: {self.request.member_id}).",
        )

    def _hand_out(self) -> None:
        """Source: setAndPropagateAssignment and propagateAssignment."""
        runtime, group = self.runtime, self.group
        members = group.ordered()
        for member in members:
            member.assignment = self.assignments.get(member.member_id, b"")
        if runtime.tracing:
            self._trace_assignments()
        protocol_type, protocol_name = group.protocol_type, group.protocol_name
        for member in members:
            parked = member.awaiting_sync
            if parked is None:
                continue
            member.awaiting_sync = None
            runtime.answer(
                parked,
                SyncGroupResponse(
                    protocol_type=protocol_type,
                    protocol_name=protocol_name,
                    assignment=member.assignment,
                ),
            )
            start_session(runtime, group, member)

    def _trace_assignments(self) -> None:
        group = self.group
        for member in group.ordered():
            group.tell(
                Event.ASSIGNED if member.assignment else Event.EMPTY_ASSIGNMENT,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                leader_id=group.leader_id,
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                subscription=member.metadata(group.protocol_name),
                assignment=member.assignment,
                attrs={} if member.assignment else {"sent": "1"},
            )
