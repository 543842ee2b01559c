"""Session timers: armed, restarted.

Source: kafka trunk, GroupMetadataManager.rescheduleClassicGroupMemberHeartbeat.
"""

from dataclasses import dataclass

from coordinator_sim.clock.timer_queue import Timer, TimerKey, TimerKind
from coordinator_sim.coordinator.group import Group, Member
from coordinator_sim.coordinator.runtime import Runtime


@dataclass(slots=True, frozen=True)
class OwnSession:
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
    if member.has_satisfied_heartbeat() and not runtime.profile.parked_member_keeps_session:
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
