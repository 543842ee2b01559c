"""JoinGroup and the join phase: who is admitted, when the phase ends, who leads.

Each function ports the order of checks of the Kafka method it names, because the order decides
which error wins.

Source: kafka trunk, group-coordinator/.../GroupMetadataManager.java, classicGroupJoin and below.
"""

from dataclasses import dataclass
from typing import Final

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.group import Group, Member
from coordinator_sim.coordinator.refusals import metadata_append_error
from coordinator_sim.coordinator.runtime import NO_EFFECT, Effect, Parked, Partition, Runtime
from coordinator_sim.coordinator.sessions import start_new_member_timer, start_session
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    JoinGroupRequest,
    JoinGroupResponse,
    RequestContext,
    SyncGroupResponse,
)
from coordinator_sim.protocol.records import GroupMetadataKey, GroupMetadataValue, LogRecord
from coordinator_sim.protocol.states import GroupState
from coordinator_sim.trace.events import Event, RebalanceReason

_KNOWN_ID_VERSION: Final = 4
_SKIP_ASSIGNMENT_VERSION: Final = 9


class Join:
    """One JoinGroup under way: the request and who sent it, for the functions that share them."""

    __slots__ = ("context", "parked", "rebalance_timeout_ms", "request")

    def __init__(self, request: JoinGroupRequest, context: RequestContext, parked: Parked) -> None:
        self.request = request
        self.context = context
        self.parked = parked
        # JoinGroup v0 has one timeout for both. Source: JoinGroupRequest's constructor.
        self.rebalance_timeout_ms = (
            request.session_timeout_ms if context.api_version == 0 else request.rebalance_timeout_ms
        )

    @property
    def client_reason(self) -> str:
        """The client's reason as Kafka logs it. Source: JoinGroupRequest.joinReason."""
        return self.request.reason or "not provided"


def handle_join(runtime: Runtime, partition: Partition, join: Join) -> Effect | ErrorCode:
    """Admit, park or refuse a JoinGroup. Source: classicGroupJoinToClassicGroup."""
    request = join.request
    group = partition.groups.get(request.group_id)
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
    if is_new_group and effect is NO_EFFECT and runtime.profile.records_new_group:
        return Effect(
            records=(group_record(runtime, group, empty_group_value(group)),),
            follow=StoreNewGroup(runtime, group, join.parked),
        )
    return effect


def create_group(runtime: Runtime, partition: Partition, group_id: str) -> Group:
    """Add an Empty group; readers see it once something is committed after it."""
    group = Group(runtime, group_id, partition.index)
    group.visible_from = partition.end_offset + 1
    partition.groups[group_id] = group
    runtime.groups[group_id] = group
    partition.uncommitted_groups.append(group_id)
    return group


def empty_group_value(group: Group) -> GroupMetadataValue:
    """What is stored of a group just created.

    Source: GroupCoordinatorRecordHelpers.newEmptyGroupMetadataRecord.
    """
    return GroupMetadataValue(
        protocol_type="",
        generation_id=0,
        protocol_name=None,
        leader=None,
        current_state_timestamp_ms=group.current_state_timestamp_ms,
    )


def group_record(runtime: Runtime, group: Group, value: GroupMetadataValue) -> LogRecord:
    """The record of a group in the profile's version."""
    return LogRecord(GroupMetadataKey(group.group_id), value, runtime.profile.group_value_version)


def refuse_join(runtime: Runtime, join: Join, error: ErrorCode, member_id: str = "") -> None:
    """Answer a JoinGroup with an error."""
    runtime.answer(join.parked, JoinGroupResponse(error_code=error, member_id=member_id))


def complete_join_of(
    runtime: Runtime, group: Group, member: Member, response: JoinGroupResponse
) -> None:
    """Answer a member's parked JoinGroup, if it has one. Source: completeJoinFuture."""
    parked = member.awaiting_join
    if parked is not None:
        member.awaiting_join = None
        group.awaiting_join_count -= 1
        runtime.answer(parked, response)


def _accepts(runtime: Runtime, group: Group, member_id: str) -> bool:
    """Whether the group's size admits this member. Source: acceptJoiningMember.

    While the group prepares, the parked are counted and not the members, so that an over-sized
    group shrinks: the last to rejoin are refused.
    """
    limit = runtime.config.group_max_size
    member = group.members.get(member_id)
    match group.state:
        case GroupState.EMPTY | GroupState.DEAD:
            return True
        case GroupState.PREPARING_REBALANCE:
            parked_already = member is not None and member.awaiting_join is not None
            return parked_already or group.awaiting_join_count < limit
        case _:
            return member is not None or len(group.members) < limit


def _refuse_by_size(runtime: Runtime, group: Group, join: Join) -> Effect:
    member = group.members.get(join.request.member_id)
    if member is not None and runtime.tracing:
        group.emit(Event.MEMBER_KICKED, member, reason_text="group.max.size reached")
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
    if group.state is GroupState.DEAD:
        refuse_join(runtime, join, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return NO_EFFECT
    if not group.supports_protocols(request.protocol_type, request.protocols):
        # QUIRK: the Empty group that this request created stays behind.
        refuse_join(runtime, join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        return NO_EFFECT
    instance_id = request.group_instance_id
    prefix = join.context.client_id if instance_id is None else instance_id
    member_id = f"{prefix}-{runtime.ids.new_uuid()}"
    if instance_id is not None:
        return _join_new_static(runtime, group, join, member_id)
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
    )
    if runtime.tracing:
        runtime.emit(
            Event.MEMBER_ID_ASSIGNED,
            group_id=group.group_id,
            offsets_partition=group.offsets_partition,
            generation=group.generation_id,
            member_id=member_id,
            client_id=join.context.client_id,
            client_host=join.context.client_host,
            session_timeout_ms=join.request.session_timeout_ms,
        )
    refuse_join(runtime, join, ErrorCode.MEMBER_ID_REQUIRED, member_id)


def _join_existing_member(runtime: Runtime, group: Group, join: Join) -> Effect | ErrorCode:
    """A member with an id. Source: classicGroupJoinExistingMember."""
    request = join.request
    member_id = request.member_id
    if group.state is GroupState.DEAD:
        refuse_join(runtime, join, ErrorCode.COORDINATOR_NOT_AVAILABLE, member_id)
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
    if error is not ErrorCode.NONE:
        refuse_join(runtime, join, error, member_id)
        return NO_EFFECT
    return _rejoin(runtime, group, join, group.members[member_id])


def _rejoin(runtime: Runtime, group: Group, join: Join, member: Member) -> Effect:
    """A current member asks again: rebalance, or repeat what it was told."""
    member_id = member.member_id
    is_leader = group.leader_id == member_id
    state = group.state
    if state is GroupState.PREPARING_REBALANCE:
        text = f"Member {member_id} is joining group"
        return _update_then_rebalance(runtime, group, join, RebalanceReason.MEMBER_REJOIN, text)
    if state is GroupState.STABLE and is_leader:
        text = f"Leader {member_id} re-joining group"
        return _update_then_rebalance(runtime, group, join, RebalanceReason.LEADER_REJOIN, text)
    if state is GroupState.EMPTY:
        refuse_join(runtime, join, ErrorCode.UNKNOWN_MEMBER_ID, member_id)
        return NO_EFFECT
    if member.protocols != join.request.protocols:
        text = f"Updating metadata for member {member_id}"
        return _update_then_rebalance(runtime, group, join, RebalanceReason.METADATA_CHANGED, text)
    tells_members = state is GroupState.AWAITING_SYNC and is_leader
    runtime.answer(join.parked, current_generation(group, member_id, with_members=tells_members))
    return NO_EFFECT


def current_generation(group: Group, member_id: str, *, with_members: bool) -> JoinGroupResponse:
    """The generation as a JoinGroup is told of it."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=group.member_list() if with_members else (),
    )


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
    if group.state is GroupState.PREPARING_REBALANCE and _may_extend_delay(runtime, group):
        group.new_member_added = True
    group.add(member)
    start_new_member_timer(runtime, group, member)
    if runtime.tracing:
        group.emit(Event.MEMBER_ADDED, member)
    text = (
        f"Adding new member {member_id} with group instance id {request.group_instance_id}; "
        f"client reason: {join.client_reason}"
        if runtime.tracing
        else ""
    )
    return rebalance_or_complete(runtime, group, RebalanceReason.MEMBER_JOINED, text)


def _may_extend_delay(runtime: Runtime, group: Group) -> bool:
    if runtime.profile.extends_initial_delay_only_at_generation_0:
        return group.generation_id == 0
    return group.previous_state is GroupState.EMPTY


def _update_then_rebalance(
    runtime: Runtime, group: Group, join: Join, reason: RebalanceReason, text: str
) -> Effect:
    """Source: updateMemberThenRebalanceOrCompleteJoin."""
    member = group.members[join.request.member_id]
    _update_member(runtime, group, member, join)
    full = f"{text} during {group.state.value}; client reason: {join.client_reason}"
    return rebalance_or_complete(runtime, group, reason, full)


def _update_member(runtime: Runtime, group: Group, member: Member, join: Join) -> None:
    group.update(member, join.request.protocols, join.parked)
    if runtime.profile.refreshes_timeouts:
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms


# -- the join phase ------------------------------------------------------------------------


def rebalance_or_complete(
    runtime: Runtime, group: Group, reason: RebalanceReason, text: str
) -> Effect:
    """Source: maybePrepareRebalanceOrCompleteJoin."""
    if group.can_rebalance():
        return prepare_rebalance(runtime, group, reason, text)
    return maybe_complete_join(runtime, group)


def prepare_rebalance(runtime: Runtime, group: Group, reason: RebalanceReason, text: str) -> Effect:
    """Leave the generation and wait for everyone to rejoin. Source: prepareRebalance."""
    if group.state is GroupState.AWAITING_SYNC:
        reset_assignments(runtime, group, ErrorCode.REBALANCE_IN_PROGRESS)
    is_initial = group.state is GroupState.EMPTY and runtime.profile.initial_rebalance_delay
    if is_initial:
        delay_ms = runtime.config.group_initial_rebalance_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms() - delay_ms, 0)
        _arm_initial(runtime, group, delay_ms, remaining_ms)
    group.begin_rebalance(reason, text)
    if is_initial:
        return NO_EFFECT
    if group.has_all_joined():
        return complete_join(runtime, group)
    _arm_join(runtime, group)
    return NO_EFFECT


def maybe_complete_join(runtime: Runtime, group: Group) -> Effect:
    """End the join phase if everyone has joined. Source: maybeCompleteJoinPhase.

    An initial rebalance ends by its timer alone.
    """
    if group.state is not GroupState.PREPARING_REBALANCE:
        return NO_EFFECT
    if group.previous_state is GroupState.EMPTY and runtime.profile.initial_rebalance_delay:
        return NO_EFFECT
    return complete_join(runtime, group) if group.has_all_joined() else NO_EFFECT


def complete_join(runtime: Runtime, group: Group) -> Effect:
    """End the join phase: a new generation, or nobody left. Source: completeClassicGroupJoin."""
    timers = runtime.timers
    timers.cancel(TimerKey(TimerKind.JOIN, group.group_id))
    _drop_not_rejoined(runtime, group)
    if group.state is GroupState.DEAD:
        return NO_EFFECT
    if not group.elect_joined_leader() and group.members:
        # Only static members are left and none rejoined: wait for a session to end, or for one.
        _arm_join(runtime, group)
        return NO_EFFECT
    group.begin_generation()
    if group.state is GroupState.EMPTY:
        return Effect(
            records=(group_record(runtime, group, group.as_record({})),),
            follow=StoreEmptyGroup(runtime, group),
        )
    leader = group.leader_id
    for member in group.ordered():
        member_id = member.member_id
        if member.awaiting_join is not None:
            response = current_generation(group, member_id, with_members=member_id == leader)
            complete_join_of(runtime, group, member, response)
        start_session(runtime, group, member)
        member.is_new = False
        group.pending_sync[member_id] = None
    if runtime.profile.sync_timeout:
        timers.schedule(
            TimerKey(TimerKind.SYNC, group.group_id),
            runtime.now_ms + group.rebalance_timeout_ms(),
            now_ms=runtime.now_ms,
            data=group.generation_id,
        )
    return NO_EFFECT


def _drop_not_rejoined(runtime: Runtime, group: Group) -> None:
    """Remove the dynamic members that did not rejoin; static ones stay.

    Source: completeClassicGroupJoin (KIP-345; before it, everyone was removed).
    """
    if len(group.members) == group.awaiting_join_count:
        return
    dropped = [
        member
        for member in group.ordered()
        if member.awaiting_join is None and member.group_instance_id is None
    ]
    for member in dropped:
        runtime.timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member.member_id))
        if runtime.tracing:
            group.emit(Event.MEMBER_KICKED, member, reason_text="did not rejoin in time")
    group.remove_all([member.member_id for member in dropped])


def expire_initial_join(runtime: Runtime, group: Group, data: object) -> Effect:
    """The initial delay ran out: extend it if somebody joined meanwhile, else end the phase.

    Source: tryCompleteInitialRebalanceElseSchedule.
    """
    if not isinstance(data, InitialDelay):
        raise InvariantViolation(f"join timer of {group.group_id} without its delay")
    if not (group.new_member_added and data.remaining_ms != 0):
        return complete_join(runtime, group)
    group.new_member_added = False
    delay_ms = min(runtime.config.group_initial_rebalance_delay_ms, data.remaining_ms)
    _arm_initial(runtime, group, delay_ms, max(data.remaining_ms - data.delay_ms, 0))
    return NO_EFFECT


@dataclass(slots=True, frozen=True)
class InitialDelay:
    """What the timer of an initial rebalance remembers: its own length, and what may follow."""

    delay_ms: int
    remaining_ms: int


def _arm_initial(runtime: Runtime, group: Group, delay_ms: int, remaining_ms: int) -> None:
    runtime.timers.schedule(
        TimerKey(TimerKind.JOIN, group.group_id),
        runtime.now_ms + delay_ms,
        now_ms=runtime.now_ms,
        data=InitialDelay(delay_ms, remaining_ms),
    )


def _arm_join(runtime: Runtime, group: Group) -> None:
    runtime.timers.schedule(
        TimerKey(TimerKind.JOIN, group.group_id),
        runtime.now_ms + group.rebalance_timeout_ms(),
        now_ms=runtime.now_ms,
    )


def reset_assignments(runtime: Runtime, group: Group, error: ErrorCode) -> None:
    """Forget the generation's assignments and tell every parked SyncGroup why.

    Source: resetAndPropagateAssignmentWithError and propagateAssignment.
    """
    for member in group.ordered():
        member.assignment = b""
        parked = member.awaiting_sync
        if parked is not None:
            member.awaiting_sync = None
            runtime.answer(parked, SyncGroupResponse(error_code=error))
            start_session(runtime, group, member)


# -- static members ------------------------------------------------------------------------


def _join_new_static(
    runtime: Runtime, group: Group, join: Join, member_id: str
) -> Effect | ErrorCode:
    """Source: classicGroupJoinNewStaticMember and updateStaticMemberThenRebalanceOrCompleteJoin."""
    existing_id = group.static_members.get(join.request.group_instance_id or "")
    if existing_id is None:
        return _add_then_rebalance(runtime, group, join, member_id)
    old_leader = group.leader_id or ""
    old = group.members[existing_id]
    member = replace_static_member(runtime, group, old, member_id)
    # QUIRK: the first session of the new id runs with the old timeout.
    start_session(runtime, group, member)
    before = StaticMemberBefore(
        existing_id, member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms
    )
    _update_member(runtime, group, member, join)
    instance = join.request.group_instance_id
    reason = f"client reason: {join.client_reason}"
    if group.state is GroupState.STABLE:
        if group.select_protocol() == (group.protocol_name or ""):
            assignments = {m.member_id: m.assignment for m in group.members.values()}
            return Effect(
                records=(group_record(runtime, group, group.as_record(assignments)),),
                follow=StoreStaticMember(runtime, group, member, join, before, old_leader),
            )
        text = f"protocol changes with static member {member_id} of instance {instance}; {reason}"
        kind = RebalanceReason.STATIC_PROTOCOL_CHANGE
        return rebalance_or_complete(runtime, group, kind, text)
    if group.state is GroupState.AWAITING_SYNC:
        text = f"Updating metadata for static member {member_id} of instance {instance}; {reason}"
        return prepare_rebalance(runtime, group, RebalanceReason.METADATA_CHANGED, text)
    if group.state in {GroupState.EMPTY, GroupState.DEAD}:
        # QUIRK: Kafka throws IllegalStateException here, which clients see as this error.
        return ErrorCode.UNKNOWN_SERVER_ERROR
    return maybe_complete_join(runtime, group)


def replace_static_member(runtime: Runtime, group: Group, old: Member, new_id: str) -> Member:
    """Fence the old id's parked requests and hand its place to a new id.

    Source: ClassicGroup.replaceStaticMember.
    """
    fenced = ErrorCode.FENCED_INSTANCE_ID
    if old.awaiting_join is not None or old.awaiting_sync is not None:
        if runtime.tracing:
            group.emit(Event.MEMBER_FENCED, old)
    complete_join_of(
        runtime, group, old, JoinGroupResponse(error_code=fenced, member_id=old.member_id)
    )
    if old.awaiting_sync is not None:
        runtime.answer(old.awaiting_sync, SyncGroupResponse(error_code=fenced))
        old.awaiting_sync = None
    new = group.replace_static(old, new_id)
    if runtime.tracing:
        group.emit(Event.STATIC_REPLACED, new, reason_text=f"was {old.member_id}")
    return new


@dataclass(slots=True, frozen=True)
class StaticMemberBefore:
    """A static member before its replacement, to go back to when storing it fails."""

    member_id: str
    protocols: tuple[object, ...]
    rebalance_timeout_ms: int
    session_timeout_ms: int


# -- after the append ----------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class StoreNewGroup:
    """The record of a group that a JoinGroup created."""

    runtime: Runtime
    group: Group
    parked: Parked

    def finish(self, error: ErrorCode) -> None:
        """On error, answer the JoinGroup if it is still parked; the group is undone already."""
        if error is ErrorCode.NONE:
            return
        _trace_store_failure(self.runtime, self.group, error)
        code = metadata_append_error(error, self.runtime.profile)
        self.runtime.answer(self.parked, JoinGroupResponse(error_code=code))


@dataclass(slots=True, eq=False)
class StoreEmptyGroup:
    """The record of a generation that ended empty: a failure is only told to the trace."""

    runtime: Runtime
    group: Group

    def finish(self, error: ErrorCode) -> None:
        """Nobody waits for this one."""
        if error is not ErrorCode.NONE:
            _trace_store_failure(self.runtime, self.group, error)


@dataclass(slots=True, eq=False)
class StoreStaticMember:
    """The record of a static member that came back under a new id in a Stable group."""

    runtime: Runtime
    group: Group
    member: Member
    join: Join
    before: StaticMemberBefore
    old_leader: str

    def finish(self, error: ErrorCode) -> None:
        """Tell the member its generation, or take the replacement back."""
        if error is not ErrorCode.NONE:
            self._undo(error)
            return
        group, member_id = self.group, self.member.member_id
        if self.join.context.api_version >= _SKIP_ASSIGNMENT_VERSION:
            is_leader = group.leader_id == member_id
            leader, skips = group.leader_id or "", is_leader
            members = group.member_list() if is_leader and self.member.awaiting_join else ()
        else:
            # QUIRK: before SkipAssignment a returning leader is told the old leader's id, so that
            # it does not assign again.
            leader, skips, members = self.old_leader, False, ()
        complete_join_of(
            self.runtime,
            group,
            self.member,
            JoinGroupResponse(
                generation_id=group.generation_id,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                leader=leader,
                skip_assignment=skips,
                member_id=member_id,
                members=members,
            ),
        )

    def _undo(self, error: ErrorCode) -> None:
        runtime, group, member, before = self.runtime, self.group, self.member, self.before
        _trace_store_failure(runtime, group, error)
        group.update(member, before.protocols, None)
        member.rebalance_timeout_ms = before.rebalance_timeout_ms
        member.session_timeout_ms = before.session_timeout_ms
        old = replace_static_member(runtime, group, member, before.member_id)
        start_session(runtime, group, old)
        runtime.answer(
            self.join.parked,
            JoinGroupResponse(
                error_code=metadata_append_error(error, runtime.profile),
                generation_id=group.generation_id,
                protocol_type=group.protocol_type,
                protocol_name=group.protocol_name,
                leader=self.old_leader,
            ),
        )


def _trace_store_failure(runtime: Runtime, group: Group, error: ErrorCode) -> None:
    if runtime.tracing:
        group.emit(Event.STORE_FAILED, reason_text=error.name)
