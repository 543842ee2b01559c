"""Heartbeat, LeaveGroup, and what happens to members whose time runs out.

Source: kafka trunk, GroupMetadataManager: classicGroupHeartbeat, classicGroupLeave,
expireClassicGroupMemberHeartbeat, expirePendingSync.
"""

from msgspec.structs import replace

from coordinator_sim.coordinator.classic.group import Group, Member
from coordinator_sim.coordinator.classic.join_phase import (
    cancel_session,
    complete_join,
    complete_join_of,
    maybe_complete_join,
    prepare_rebalance,
    rebalance_or_complete,
    start_session,
)
from coordinator_sim.coordinator.modern.consumer.leaving import leave_by_classic_request
from coordinator_sim.coordinator.runtime import NO_EFFECT, Effect, Partition, Runtime, dead_error
from coordinator_sim.coordinator.tracing import trace_fenced_leave
from coordinator_sim.errors import OperationAborted
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.orders.iteration_order import scala_map_order, scala_set_order
from coordinator_sim.kafka.states import AWAITING_SYNC, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.messages.join_group import JoinGroupResponse
from coordinator_sim.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from coordinator_sim.trace.events import Event, RebalanceReason

HEARTBEAT_OK = HeartbeatResponse()
_HEARTBEAT_REBALANCE = HeartbeatResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS)
_HEARTBEAT_UNKNOWN = HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)


def handle_heartbeat(
    runtime: Runtime, group: Group | None, request: HeartbeatRequest
) -> HeartbeatResponse | ErrorCode:
    """Restart a session. An error code is an error to be sent at once, past waiting writes.

    Source: classicGroupHeartbeatToClassicGroup and validateClassicGroupHeartbeat.
    """
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    state = group.state
    if state is DEAD:
        return dead_error(runtime.profile)
    if state is AWAITING_SYNC and not runtime.profile.heartbeats_count_while_syncing:
        # QUIRK: the generation is not even looked at.
        is_member = request.member_id in group.members
        return _HEARTBEAT_REBALANCE if is_member else _HEARTBEAT_UNKNOWN
    member = group.members.get(request.member_id)
    if member is None or request.group_instance_id is not None:
        error = group.validate_member(request.member_id, request.group_instance_id)
        if member is None or error is not NO_ERROR:
            return error
    if request.generation_id != group.generation_id:
        return ErrorCode.ILLEGAL_GENERATION
    if state is EMPTY:
        return _HEARTBEAT_UNKNOWN
    start_session(runtime, group, member)
    return _HEARTBEAT_REBALANCE if state is PREPARING_REBALANCE else HEARTBEAT_OK


def handle_leave(
    runtime: Runtime, partition: Partition, request: LeaveGroupRequest
) -> Effect | ErrorCode:
    """Remove members. Source: classicGroupLeaveToClassicGroup."""
    consumer_group = partition.consumer_group(request.group_id)
    if consumer_group is not None:
        return leave_by_classic_request(runtime, partition, consumer_group, request)
    group = partition.classic_group(request.group_id)
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if group.state is DEAD:
        return Effect(response=LeaveGroupResponse(error_code=dead_error(runtime.profile)))
    if not runtime.profile.leave_batch_rebalances_once:
        return _leave_one_by_one(runtime, partition, group, request)
    results = tuple(_leave(runtime, group, entry) for entry in request.members)
    left = [result.member_id for result in results if result.error_code is NO_ERROR]
    effect = NO_EFFECT
    if left:
        text = f"explicit `LeaveGroup` request for ({', '.join(left)}) members."
        effect = _after_leaving(runtime, group, text)
    return replace(effect, response=LeaveGroupResponse(members=results))


def _after_leaving(runtime: Runtime, group: Group, text: str) -> Effect:
    if group.state in {STABLE, AWAITING_SYNC}:
        return rebalance_or_complete(runtime, group, RebalanceReason.MEMBER_LEFT, text)
    return maybe_complete_join(runtime, group)


def _leave_one_by_one(
    runtime: Runtime, partition: Partition, group: Group, request: LeaveGroupRequest
) -> Effect:
    """Remove members, each followed by its own check. Source: GroupCoordinator.handleLeaveGroup.

    A pending id that leaves starts no rebalance of a Stable group, as it does where the removals
    are followed by one check. Source: classicGroupLeaveToClassicGroup, which counts it among the
    members that left.
    """
    results = []
    for entry in request.members:
        was_pending = entry.member_id in group.pending_members
        result = _leave(runtime, group, entry)
        results.append(result)
        if result.error_code is not NO_ERROR:
            continue
        if was_pending:
            effect = maybe_complete_join(runtime, group)
        else:
            reason = entry.reason if entry.reason is not None else "not provided"
            text = f"Removing member {entry.member_id} on LeaveGroup; client reason: {reason}"
            effect = _after_leaving(runtime, group, text)
        runtime.submit(partition, None, effect)
    return Effect(response=LeaveGroupResponse(members=tuple(results)))


def _leave(runtime: Runtime, group: Group, entry: MemberIdentity) -> MemberResponse:
    """One entry; ids are echoed as sent."""
    error = NO_ERROR
    if not entry.member_id:
        # An administrator removes a static member by its instance id alone.
        member_id = group.static_members.get(entry.group_instance_id or "")
        if entry.group_instance_id is None or member_id is None:
            error = ErrorCode.UNKNOWN_MEMBER_ID
        else:
            _remove_leaver(runtime, group, group.members[member_id], entry)
    elif entry.member_id in group.pending_members and _is_static_leaver(runtime, group, entry):
        error = ErrorCode.FENCED_INSTANCE_ID
    elif entry.member_id in group.pending_members:
        if runtime.tracing:
            group.tell(
                Event.MEMBER_LEFT,
                member_id=entry.member_id,
                reason_text=entry.reason,
                client_reason=entry.reason,
                attrs={"pending": "1"},
            )
        group.remove(entry.member_id)
        if runtime.profile.pending_leave_cancels_timer:
            cancel_session(runtime, group, entry.member_id)
    else:
        error = group.validate_member(entry.member_id, entry.group_instance_id)
        if error is NO_ERROR:
            _remove_leaver(runtime, group, group.members[entry.member_id], entry)
        elif error is ErrorCode.FENCED_INSTANCE_ID and runtime.tracing:
            trace_fenced_leave(group, entry)
    return MemberResponse(
        member_id=entry.member_id, group_instance_id=entry.group_instance_id, error_code=error
    )


def _is_static_leaver(runtime: Runtime, group: Group, entry: MemberIdentity) -> bool:
    """Whether a pending id comes with the instance id of somebody else, where that matters.

    Raises:
        OperationAborted: nobody has that instance id, which Kafka did not expect.
    """
    is_asked = runtime.profile.pending_leaver_may_not_be_static
    if not is_asked or entry.group_instance_id is None:
        return False
    if entry.group_instance_id not in group.static_members:
        raise OperationAborted(f"pending member {entry.member_id} is static")
    return True


def _remove_leaver(runtime: Runtime, group: Group, member: Member, entry: MemberIdentity) -> None:
    """Source: removeCurrentMemberFromClassicGroup."""
    # QUIRK: a SyncGroup that the leaver parked is never answered.
    cancel_session(runtime, group, member.member_id)
    if runtime.tracing:
        group.emit(
            Event.MEMBER_LEFT,
            member,
            reason_text=entry.reason,
            client_reason=entry.reason,
            attrs={"protocols": ",".join(protocol.name for protocol in member.protocols)},
        )
    _remove_member(runtime, group, member)


def _remove_member(runtime: Runtime, group: Group, member: Member) -> None:
    """Tell a parked JoinGroup that its id is gone, and forget the member.

    Older Scala forgets the JoinGroup with the member, and never answers it.
    """
    parked = member.awaiting_join
    if parked is not None and not runtime.profile.removed_joiner_is_answered:
        parked.is_answered = True
    gone = JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID, protocol_name=None)
    complete_join_of(runtime, group, member, gone)
    group.remove(member.member_id)


def expire_own_session(runtime: Runtime, group: Group, member_id: str) -> Effect:
    """A timer ran out that belongs to this very group: of a handed-out id, or of what was unloaded.

    Source: GroupCoordinator.onExpireHeartbeat.
    """
    if group.state is DEAD:
        if runtime.tracing:
            group.tell(Event.LIFECYCLE, member_id=member_id, reason_text="session of a dead group")
        return NO_EFFECT
    if member_id in group.pending_members or runtime.profile.stale_session_rebalances:
        return expire_session(runtime, group, member_id)
    # QUIRK: an id that left or was refused meanwhile is removed, and told of, once more.
    if runtime.tracing:
        group.tell(Event.PENDING_EXPIRED, member_id=member_id)
    return NO_EFFECT


def expire_session(runtime: Runtime, group: Group, member_id: str) -> Effect:
    """A session, a new member's wait, or a handed-out id ran out.

    Source: expireClassicGroupMemberHeartbeat.
    """
    if member_id in group.pending_members:
        group.remove(member_id)
        if runtime.tracing:
            group.tell(Event.PENDING_EXPIRED, member_id=member_id)
        return _complete_after_expiry(runtime, group)
    member = group.members.get(member_id)
    is_stale = member is None and group.state is not EMPTY
    if is_stale and runtime.profile.stale_session_rebalances:
        # QUIRK: a member that is long gone fails once more.
        text = f"session of {member_id} expired, which is no member any more"
        return rebalance_or_complete(runtime, group, RebalanceReason.MEMBER_FAILED, text)
    if member is None or member.has_satisfied_heartbeat():
        return NO_EFFECT
    if runtime.tracing:
        group.emit(Event.MEMBER_FAILED, member, reason_text="session expired")
    _remove_member(runtime, group, member)
    if group.state in {STABLE, AWAITING_SYNC}:
        text = f"removing member {member_id} on heartbeat expiration."
        return rebalance_or_complete(runtime, group, RebalanceReason.MEMBER_FAILED, text)
    return _complete_after_expiry(runtime, group)


def _complete_after_expiry(runtime: Runtime, group: Group) -> Effect:
    """End the join phase if nobody else is awaited. Source: removeMemberAndUpdateClassicGroup."""
    # QUIRK: an expiry ends an initial rebalance early; Scala leaves the initial delay running.
    if not runtime.profile.expiry_completes_initial_join:
        return maybe_complete_join(runtime, group)
    if group.state is PREPARING_REBALANCE and group.has_all_joined():
        return complete_join(runtime, group)
    return NO_EFFECT


def expire_pending_sync(runtime: Runtime, group: Group, generation: object) -> Effect:
    """Evict the members that have not synced, static ones too. Source: expirePendingSync."""
    if generation != group.generation_id or not group.pending_sync:
        return NO_EFFECT
    evicted = list(group.pending_sync)
    if runtime.profile.sync_expiry_stops_at_replaced_member:
        evicted = scala_set_order(scala_map_order(evicted))
    for member_id in evicted:
        if runtime.profile.sync_expiry_stops_at_replaced_member and member_id not in group.members:
            group.remove_all(evicted[: evicted.index(member_id)])
            raise OperationAborted(f"{member_id} is no member any more")
        cancel_session(runtime, group, member_id)
        # QUIRK: a static member that was replaced before it synced is still here under its old id,
        # though it is no member any more. Source: ClassicGroup.replaceStaticMember.
        member = group.members.get(member_id)
        if runtime.tracing and member is not None:
            group.emit(
                Event.MEMBER_KICKED,
                member,
                reason_text="did not sync in time",
                attrs={"cause": "sync_timeout"},
            )
    group.remove_all(evicted)
    text = f"Removing [{', '.join(evicted)}] on pending sync request expiration"
    return prepare_rebalance(runtime, group, RebalanceReason.SYNC_TIMEOUT, text)
