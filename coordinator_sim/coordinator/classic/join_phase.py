"""The join phase: when a rebalance starts, when it ends, and the timers of sessions meanwhile.

Each function ports the order of checks of the Kafka method it names, because the order decides
which error wins.

Source: kafka trunk, GroupMetadataManager.java, prepareRebalance, completeClassicGroupJoin,
tryCompleteInitialRebalanceElseSchedule and rescheduleClassicGroupMemberHeartbeat.
"""

from msgspec import Struct

from coordinator_sim.clock.timer_queue import Timer, TimerKey, TimerKind
from coordinator_sim.coordinator.classic.group import Group, Member
from coordinator_sim.coordinator.runtime import (
    NO_EFFECT,
    Effect,
    Parked,
    Runtime,
    metadata_append_error,
)
from coordinator_sim.kafka.context import RequestContext
from coordinator_sim.kafka.errors import NO_ERROR, ErrorCode
from coordinator_sim.kafka.states import AWAITING_SYNC, EMPTY, PREPARING_REBALANCE
from coordinator_sim.messages.group_records import GroupMetadataKey, GroupMetadataValue
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupResponse
from coordinator_sim.messages.records import LogRecord
from coordinator_sim.messages.sync_group import SyncGroupResponse
from coordinator_sim.trace.events import Event, RebalanceReason


class OwnSession(Struct, frozen=True):
    """What the timer of a session remembers that is not the member's latest, or outlives it.

    Args:
        group: Whose member it was; another group of that name does not matter to it.
        member_id: Of the member, who may be gone.
    """

    group: Group
    member_id: str


def start_session(runtime: Runtime, group: Group, member: Member) -> None:
    """Give the member its whole session timeout from now.

    Source: in Scala completeAndScheduleNextHeartbeatExpiration.
    """
    if not runtime.profile.parked_member_keeps_session and member.has_satisfied_heartbeat():
        cancel_session(runtime, group, member.member_id)
        return
    _arm(runtime, group, member, member.session_timeout_ms)


def start_new_member_timer(runtime: Runtime, group: Group, member: Member) -> None:
    """Bound the wait of a member that cannot send heartbeats yet, as it does not know its id."""
    timeout_ms = runtime.profile.new_member_timeout_ms
    if timeout_ms:
        _arm(runtime, group, member, timeout_ms)


def cancel_session(runtime: Runtime, group: Group, member_id: str) -> None:
    """Call off a member's session, and those that end at its instant."""
    key = TimerKey(TimerKind.SESSION, group.group_id, member_id)
    timer = runtime.timers.get(key)
    if timer is not None:
        _cancel_earlier(runtime, timer)
        runtime.timers.cancel(key)


def disown_session(runtime: Runtime, group: Group, member_id: str) -> None:
    """Let a member's session run on though the member is gone.

    Source: GroupCoordinator.onCompleteJoin of 0.10.2, which leaves the DelayedHeartbeat be.
    """
    timer = runtime.timers.get(TimerKey(TimerKind.SESSION, group.group_id, member_id))
    if timer is not None:
        timer.data = OwnSession(group, member_id)


def _arm(runtime: Runtime, group: Group, member: Member, timeout_ms: int) -> None:
    now_ms = runtime.now_ms
    timer = member.session
    if timer is not None and timer.active:
        if runtime.profile.stale_session_rebalances:
            if timer.deadline_ms == now_ms + timeout_ms:
                member.session = _repeat(runtime, group, timer)
                return
            _cancel_earlier(runtime, timer)
        runtime.timers.postpone(timer, now_ms + timeout_ms)
        return
    key = TimerKey(TimerKind.SESSION, group.group_id, member.member_id)
    member.session = runtime.timers.schedule(key, now_ms + timeout_ms, now_ms=now_ms)


def _repeat(runtime: Runtime, group: Group, timer: Timer) -> Timer:
    """Arm a session behind one that ends at the same instant, and stays.

    Source: GroupCoordinator.shouldKeepMemberAlive, which asks for a later deadline.
    """
    # QUIRK: of two sessions that end at one instant the older one is not called off.
    key = timer.key
    earlier = timer.data if isinstance(timer.data, tuple) else ()
    name = TimerKey(TimerKind.REPEAT, key.group_id, str(timer.arm_seq))
    runtime.timers.rename(timer, name)
    timer.data = OwnSession(group, key.member_id)
    return runtime.timers.schedule(
        key, timer.deadline_ms, now_ms=runtime.now_ms, data=(*earlier, timer)
    )


def _cancel_earlier(runtime: Runtime, timer: Timer) -> None:
    """Call off the other sessions of a member that end at the instant of its latest."""
    if isinstance(timer.data, tuple):
        for earlier in timer.data:
            runtime.timers.cancel(earlier.key)
        timer.data = None


class Join(Struct, frozen=True, gc=False):
    """One JoinGroup under way: the request and who sent it, for the functions that share them."""

    request: JoinGroupRequest
    context: RequestContext
    parked: Parked

    @property
    def rebalance_timeout_ms(self) -> int:
        """JoinGroup v0 has one timeout for both. Source: JoinGroupRequest's constructor."""
        request = self.request
        is_shared = self.context.api_version == 0
        return request.session_timeout_ms if is_shared else request.rebalance_timeout_ms

    @property
    def client_reason(self) -> str:
        """The client's reason as Kafka logs it; Java's log takes an empty one for none."""
        return "not provided" if self.request.reason is None else self.request.reason


def refuse_join(runtime: Runtime, join: Join, error: ErrorCode, member_id: str = "") -> None:
    """Answer a JoinGroup with an error."""
    runtime.answer(
        join.parked, JoinGroupResponse(error_code=error, member_id=member_id, protocol_name=None)
    )


def update_member(runtime: Runtime, group: Group, member: Member, join: Join) -> None:
    """Take over what the member offers now, and park its request. Source: updateMember."""
    group.update(member, join.request.protocols, join.parked)
    if runtime.profile.refreshes_timeouts:
        member.rebalance_timeout_ms = join.rebalance_timeout_ms
        member.session_timeout_ms = join.request.session_timeout_ms


def rebalance_or_complete(
    runtime: Runtime, group: Group, reason: RebalanceReason, text: str
) -> Effect:
    """Start a rebalance, or end its join phase if it is under way and everyone is here.

    Source: maybePrepareRebalanceOrCompleteJoin.
    """
    if group.can_rebalance():
        return prepare_rebalance(runtime, group, reason, text)
    return maybe_complete_join(runtime, group)


def prepare_rebalance(runtime: Runtime, group: Group, reason: RebalanceReason, text: str) -> Effect:
    """Leave the generation and wait for everyone to rejoin. Source: prepareRebalance."""
    if group.state is AWAITING_SYNC:
        reset_assignments(runtime, group, ErrorCode.REBALANCE_IN_PROGRESS)
    is_initial = group.state is EMPTY and runtime.profile.initial_rebalance_delay
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
    if group.state is not PREPARING_REBALANCE or not group.has_all_joined():
        return NO_EFFECT
    if group.previous_state is EMPTY and runtime.profile.initial_rebalance_delay:
        return NO_EFFECT
    return complete_join(runtime, group)


def complete_join(runtime: Runtime, group: Group) -> Effect:
    """End the join phase: a new generation, or nobody left. Source: completeClassicGroupJoin."""
    group.is_spinning = False
    _drop_not_rejoined(runtime, group)
    if not group.elect_joined_leader() and group.members:
        # Only static members are left and none rejoined: wait for a session to end, or for one.
        if group.rebalance_timeout_ms() == 0:
            # QUIRK: Kafka looks again at once, and again, until one of them ends or somebody joins.
            group.is_spinning = True
        else:
            _arm_join(runtime, group)
        return NO_EFFECT
    if group.state is not PREPARING_REBALANCE:
        # QUIRK: a timer of a group whose creation was undone finds the group made after it under
        # that name; Kafka counts the generation up before it throws.
        group.generation_id += 1
        return NO_EFFECT
    group.begin_generation()
    if not group.members:
        return Effect(
            records=(group_record(runtime, group, group.as_record({})),),
            follow=StoreEmptyGroup(runtime, group),
        )
    leader = group.leader_id
    for member in group.ordered():
        member_id = member.member_id
        response = current_generation(group, member_id, with_members=member_id == leader)
        complete_join_of(runtime, group, member, response)
        start_session(runtime, group, member)
        member.is_new = False
        group.pending_sync[member_id] = None
    if runtime.profile.sync_timeout:
        runtime.timers.schedule(
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
        if runtime.profile.stale_session_rebalances:
            disown_session(runtime, group, member.member_id)
        else:
            cancel_session(runtime, group, member.member_id)
        if runtime.tracing:
            group.emit(
                Event.MEMBER_KICKED,
                member,
                reason_text="did not rejoin in time",
                attrs={"cause": "join_timeout"},
            )
    group.remove_all([member.member_id for member in dropped])


class InitialDelay(Struct, frozen=True):
    """What the timer of an initial rebalance remembers: its own length, and what may follow."""

    delay_ms: int
    remaining_ms: int


def expire_initial_join(runtime: Runtime, group: Group, delay: InitialDelay) -> Effect:
    """The initial delay ran out: extend it if somebody joined meanwhile, else end the phase.

    Source: tryCompleteInitialRebalanceElseSchedule.
    """
    if not (group.new_member_added and delay.remaining_ms != 0):
        return complete_join(runtime, group)
    group.new_member_added = False
    delay_ms = min(runtime.config.group_initial_rebalance_delay_ms, delay.remaining_ms)
    _arm_initial(runtime, group, delay_ms, max(delay.remaining_ms - delay.delay_ms, 0))
    return NO_EFFECT


def _arm_initial(runtime: Runtime, group: Group, delay_ms: int, remaining_ms: int) -> None:
    runtime.timers.schedule(
        TimerKey(TimerKind.JOIN, group.group_id),
        runtime.now_ms + delay_ms,
        now_ms=runtime.now_ms,
        data=InitialDelay(delay_ms, remaining_ms),
    )


def end_spinning(runtime: Runtime, group: Group) -> None:
    """Let a group that looks all the time for somebody who joined find the first one."""
    if group.awaiting_join_count:
        group.is_spinning = False
        key = TimerKey(TimerKind.JOIN, group.group_id)
        runtime.timers.schedule(key, runtime.now_ms, now_ms=runtime.now_ms)


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


def complete_join_of(
    runtime: Runtime, group: Group, member: Member, response: JoinGroupResponse
) -> None:
    """Answer a member's parked JoinGroup, if it has one. Source: completeJoinFuture."""
    parked = member.awaiting_join
    if parked is not None:
        member.awaiting_join = None
        group.awaiting_join_count -= 1
        runtime.answer(parked, response)


def current_generation(group: Group, member_id: str, *, with_members: bool) -> JoinGroupResponse:
    """The JoinGroup response that describes the group's current generation."""
    return JoinGroupResponse(
        generation_id=group.generation_id,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol_name,
        leader=group.leader_id or "",
        member_id=member_id,
        members=group.member_list() if with_members else (),
    )


def group_record(runtime: Runtime, group: Group, value: GroupMetadataValue) -> LogRecord:
    """The record of a group in the profile's version."""
    return LogRecord(GroupMetadataKey(group.group_id), value, runtime.profile.group_value_version)


class StoreEmptyGroup(Struct, eq=False):
    """The record of a generation that ended empty: a failure is only told to the trace."""

    runtime: Runtime
    group: Group

    def finish(self, error: ErrorCode) -> None:
        """Trace a failed append that no request depends on."""
        if error is not NO_ERROR:
            trace_store_failure(self.runtime, self.group, error, "empty generation")


def trace_store_failure(runtime: Runtime, group: Group, error: ErrorCode, what: str) -> None:
    """Tell the trace that a record of the group could not be stored.

    Args:
        runtime: Whose trace it is.
        group: Whose record it is.
        error: Of the append; clients are told another.
        what: What was to be stored: `new group` (`new group, late` when it waited for
            the log in vain), `empty generation`, `assignment` or `static member`.
    """
    if runtime.tracing:
        code = metadata_append_error(error, runtime.profile)
        group.emit(
            Event.STORE_FAILED,
            reason_text=error.name,
            error_code=code,
            attrs={"what": what, "timeout_ms": str(runtime.config.offsets_commit_timeout_ms)},
        )
