"""Session timers: armed, restarted.

Source: kafka trunk, GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat.
"""

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.group import Group, Member
from coordinator_sim.coordinator.runtime import Runtime


def start_session(runtime: Runtime, group: Group, member: Member) -> None:
    """Give the member its whole session timeout from now.

    Source: in Scala completeAndScheduleNextHeartbeatExpiration.
    """
    if member.has_satisfied_heartbeat() and not runtime.profile.parked_member_keeps_session:
        runtime.timers.cancel(TimerKey(TimerKind.SESSION, group.group_id, member.member_id))
        return
    _arm(runtime, group, member, member.session_timeout_ms)


def start_new_member_timer(runtime: Runtime, group: Group, member: Member) -> None:
    """Bound the wait of a member that cannot send heartbeats yet, as it does not know its id."""
    timeout_ms = runtime.profile.new_member_timeout_ms
    if timeout_ms:
        _arm(runtime, group, member, timeout_ms)


def _arm(runtime: Runtime, group: Group, member: Member, timeout_ms: int) -> None:
    now_ms = runtime.now_ms
    timer = member.session
    if timer is not None and timer.active:
        if runtime.profile.stale_session_rebalances:
            # QUIRK: of two sessions that end at one instant the older one is not called off.
            repeats = timer.data if isinstance(timer.data, int) else 0
            if timer.deadline_ms == now_ms + timeout_ms:
                timer.data = repeats + 1
                return
            timer.data = None
        runtime.timers.postpone(timer, now_ms + timeout_ms)
        return
    key = TimerKey(TimerKind.SESSION, group.group_id, member.member_id)
    member.session = runtime.timers.schedule(key, now_ms + timeout_ms, now_ms=now_ms)
