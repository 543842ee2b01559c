"""JoinGroup: who is admitted, parked or refused.

Each function ports the order of checks of the Kafka method it names, because the order decides
which error wins.

Source: kafka trunk, group-coordinator/.../GroupMetadataManager.java, classicGroupJoin and below.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.classic.group import Group, Member
from coordinator_sim.coordinator.classic.join_phase import (
    Join,
    current_generation,
    end_spinning,
    group_record,
    maybe_complete_join,
    rebalance_or_complete,
    refuse_join,
    start_new_member_timer,
    trace_store_failure,
    update_member,
)
from coordinator_sim.coordinator.classic.static_members import rejoin_static
from coordinator_sim.coordinator.modern.consumer.classic_members import join_consumer_group
from coordinator_sim.coordinator.modern.consumer.group import ConsumerGroup
from coordinator_sim.coordinator.modern.share.group import ShareGroup
from coordinator_sim.coordinator.offsets.expiry import tombstones_of
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
from coordinator_sim.kafka.states import AWAITING_SYNC, DEAD, EMPTY, PREPARING_REBALANCE, STABLE
from coordinator_sim.messages.group_records import GroupMetadataValue
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.trace.events import Event, RebalanceReason

_KNOWN_ID_VERSION: Final = 4


def handle_join(
    runtime: Runtime, partition: Partition, request: JoinGroupRequest, parked: Parked
) -> Effect | ErrorCode:
    """Admit, park or refuse a JoinGroup.

    An empty consumer or streams group gives way to it. QUIRK: that is written only if nothing else
    is.

    Source: classicGroupJoin and classicGroupJoinToClassicGroup; maybeDeleteEmptyConsumerGroup and
    maybeDeleteEmptyStreamsGroup.
    """
    join = Join(request, parked.context, parked)
    vanished: tuple[LogRecord, ...] = ()
    other = partition.groups.get(request.group_id)
    if isinstance(other, ConsumerGroup) and not other.is_empty:
        return join_consumer_group(runtime, partition, other, join)
    if other is not None and not isinstance(other, Group):
        if isinstance(other, ShareGroup) or not other.is_empty:
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        vanished = tombstones_of(runtime, other)
        partition.drop_consumer_group(request.group_id)
    group = partition.classic_group(request.group_id)
    is_new_group = group is None
    if group is None:
        if request.member_id:
            refuse_join(runtime, join, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return NO_EFFECT
        group = create_group(runtime, partition, request.group_id)
    effect: Effect | ErrorCode = NO_EFFECT
    if not _accepts(runtime, group, request.member_id):
        effect = _refuse_by_size(runtime, group, join)
    elif not request.member_id:
        effect = _join_new_member(runtime, group, join)
    else:
        effect = _join_existing_member(runtime, group, join)
    if group.is_spinning:
        end_spinning(runtime, group)
    if is_new_group and effect is NO_EFFECT and runtime.profile.records_new_group:
        return Effect(
            records=(*vanished, group_record(runtime, group, empty_group_value(group))),
            follow=StoreNewGroup(runtime, group, join.parked, runtime.now_ms),
        )
    return effect


def create_group(runtime: Runtime, partition: Partition, group_id: str) -> Group:
    """Add an Empty group."""
    group = Group(runtime, group_id, partition.index)
    runtime.add_group(group)
    runtime.add_new_group(partition, group)
    return group


def _accepts(runtime: Runtime, group: Group, member_id: str) -> bool:
    """Whether the group's size admits this member. Source: acceptJoiningMember.

    While the group prepares, the parked are counted and not the members, so that an over-sized
    group shrinks: the last to rejoin are refused.
    """
    if not runtime.profile.limits_group_size:
        return True
    limit = runtime.config.group_max_size
    member = group.members.get(member_id)
    state = group.state
    if state is EMPTY or state is DEAD:
        return True
    if state is PREPARING_REBALANCE:
        parked_already = member is not None and member.awaiting_join is not None
        return parked_already or group.awaiting_join_count < limit
    return member is not None or len(group.members) < limit


def _refuse_by_size(runtime: Runtime, group: Group, join: Join) -> Effect:
    member = group.members.get(join.request.member_id)
    if member is not None and runtime.tracing:
        group.emit(Event.MEMBER_KICKED, member, reason_text="group.max.size reached")
    if not (runtime.profile.size_refusal_keeps_pending_id and member is None):
        group.remove(join.request.member_id)
    refuse_join(runtime, join, ErrorCode.GROUP_MAX_SIZE_REACHED)
    # QUIRK: Java does not look again whether the rest has joined, so the rebalance waits for its
    # timeout. Source: classicGroupJoinToClassicGroup; GroupCoordinator.doJoinGroup does look.
    if runtime.profile.rechecks_join_after_size_refusal:
        return maybe_complete_join(runtime, group)
    return NO_EFFECT


def _join_new_member(runtime: Runtime, group: Group, join: Join) -> Effect | ErrorCode:
    """A member without an id. Source: classicGroupJoinNewMember."""
    request = join.request
    if group.state is DEAD:
        refuse_join(runtime, join, dead_error(runtime.profile))
        return NO_EFFECT
    if not group.supports_protocols(request.protocol_type, request.protocols):
        # QUIRK: the Empty group that this request created stays behind.
        refuse_join(runtime, join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return NO_EFFECT
    instance_id = request.group_instance_id
    prefix = join.context.client_id if instance_id is None else instance_id
    member_id = f"{prefix}-{runtime.ids.new_uuid()}"
    if instance_id is not None:
        existing_id = group.static_members.get(instance_id)
        if existing_id is not None:
            return rejoin_static(runtime, group, join, group.members[existing_id], member_id)
        return _add_then_rebalance(runtime, group, join, member_id)
    if join.context.api_version >= _KNOWN_ID_VERSION and runtime.profile.member_id_required:
        _hand_out_id(runtime, group, join, member_id)
        return NO_EFFECT
    return _add_then_rebalance(runtime, group, join, member_id)


def _hand_out_id(runtime: Runtime, group: Group, join: Join, member_id: str) -> None:
    """Answer MEMBER_ID_REQUIRED. Source: classicGroupJoinNewDynamicMember."""
    group.pending_members[member_id] = None
    runtime.timers.schedule(
        TimerKey(TimerKind.SESSION, group.group_id, member_id),
        runtime.now_ms + join.request.session_timeout_ms,
        now_ms=runtime.now_ms,
        data=group if runtime.profile.sessions_outlive_group else None,
    )
    if runtime.tracing:
        group.tell(
            Event.MEMBER_ID_ASSIGNED,
            member_id=member_id,
            client_id=join.context.client_id,
            client_host=join.context.client_host,
            session_timeout_ms=join.request.session_timeout_ms,
            attrs={"in_state": group.state.value},
        )
    refuse_join(runtime, join, ErrorCode.MEMBER_ID_REQUIRED, member_id)


def _join_existing_member(runtime: Runtime, group: Group, join: Join) -> Effect | ErrorCode:
    """A member with an id. Source: classicGroupJoinExistingMember."""
    request = join.request
    member_id = request.member_id
    if group.state is DEAD:
        refuse_join(runtime, join, dead_error(runtime.profile), member_id)
        return NO_EFFECT
    if not group.supports_protocols(request.protocol_type, request.protocols):
        refuse_join(runtime, join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, member_id)
        return NO_EFFECT
    if member_id in group.pending_members:
        if request.group_instance_id is not None:
            # QUIRK: Kafka throws IllegalStateException here, which clients see as this error.
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return _add_then_rebalance(runtime, group, join, member_id)
    error = group.validate_member(member_id, request.group_instance_id)
    instance_id = request.group_instance_id
    if instance_id is not None and instance_id not in group.static_members:
        error = ErrorCode.UNKNOWN_MEMBER_ID
    if error is not NO_ERROR:
        refuse_join(runtime, join, error, member_id)
        return NO_EFFECT
    return _rejoin(runtime, group, join, group.members[member_id])


def _rejoin(runtime: Runtime, group: Group, join: Join, member: Member) -> Effect:
    """A current member asks again: rebalance, or repeat what it was told."""
    member_id = member.member_id
    is_leader = group.leader_id == member_id
    state = group.state
    if state is PREPARING_REBALANCE:
        text = f"Member {member_id} is joining group"
        return _update_then_rebalance(runtime, group, join, RebalanceReason.MEMBER_REJOIN, text)
    if state is STABLE and is_leader:
        text = f"Leader {member_id} re-joining group"
        return _update_then_rebalance(runtime, group, join, RebalanceReason.LEADER_REJOIN, text)
    if state is EMPTY:
        refuse_join(runtime, join, ErrorCode.UNKNOWN_MEMBER_ID, member_id)
        return NO_EFFECT
    if member.protocols != join.request.protocols:
        text = f"Updating metadata for member {member_id}"
        return _update_then_rebalance(runtime, group, join, RebalanceReason.METADATA_CHANGED, text)
    tells_members = state is AWAITING_SYNC and is_leader
    runtime.answer(join.parked, current_generation(group, member_id, with_members=tells_members))
    return NO_EFFECT


def _add_then_rebalance(runtime: Runtime, group: Group, join: Join, member_id: str) -> Effect:
    """Add a member and start or go on with a rebalance.

    Source: addMemberThenRebalanceOrCompleteJoin.
    """
    request = join.request
    member = Member(
        member_id,
        request.group_instance_id,
        join.context.client_id,
        join.context.client_host,
        request.session_timeout_ms,
        join.rebalance_timeout_ms,
        request.protocol_type,
        request.protocols,
        b"",
        join.parked,
        None,
        True,  # noqa: FBT003 - is_new; positional for speed
    )
    if group.state is PREPARING_REBALANCE and _may_extend_delay(runtime, group):
        group.new_member_added = True
    how = "pending" if member_id in group.pending_members else "new"
    group.add(member)
    start_new_member_timer(runtime, group, member)
    if runtime.tracing:
        attrs = {"in_state": group.state.value, "member_id_was": how}
        group.emit(Event.MEMBER_ADDED, member, attrs=attrs)
    instance = "null" if request.group_instance_id is None else request.group_instance_id
    text = (
        f"Adding new member {member_id} with group instance id {instance}; "
        f"client reason: {join.client_reason}"
        if runtime.tracing
        else ""
    )
    return rebalance_or_complete(runtime, group, RebalanceReason.MEMBER_JOINED, text)


def _may_extend_delay(runtime: Runtime, group: Group) -> bool:
    if runtime.profile.extends_initial_delay_only_at_generation_0:
        return group.generation_id == 0
    return group.previous_state is EMPTY


def _update_then_rebalance(
    runtime: Runtime, group: Group, join: Join, reason: RebalanceReason, text: str
) -> Effect:
    """Source: updateMemberThenRebalanceOrCompleteJoin."""
    member = group.members[join.request.member_id]
    update_member(runtime, group, member, join)
    full = f"{text} during {group.state.value}; client reason: {join.client_reason}"
    return rebalance_or_complete(runtime, group, reason, full)


def empty_group_value(group: Group) -> GroupMetadataValue:
    """What is stored of a group just created.

    Source: GroupCoordinatorRecordHelpers.newEmptyGroupMetadataRecord.
    """
    return GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=group.current_state_timestamp_ms,
    )


class StoreNewGroup(Struct, eq=False):
    """The record of a group that a JoinGroup created."""

    runtime: Runtime
    group: Group
    parked: Parked
    since_ms: int

    def finish(self, error: ErrorCode) -> None:
        """On error, answer the JoinGroup if it is still parked; the group is undone already."""
        if error is NO_ERROR:
            return
        is_late = self.runtime.now_ms > self.since_ms
        what = "new group, late" if is_late else "new group"
        trace_store_failure(self.runtime, self.group, error, what)
        code = metadata_append_error(error, self.runtime.profile)
        self.runtime.answer(self.parked, JoinGroupResponse(error_code=code, protocol_name=None))
