"""A coordinator in which only heartbeats happen: its sessions, and heartbeats taken in bulk.

For drivers that skip idle time. Nothing here decides what idle is for a client.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.clock.timer_queue import TimerKind
from coordinator_sim.coordinator.runtime import Runtime
from coordinator_sim.kafka.states import DEAD, EMPTY, STABLE

_AT_REST: Final = (STABLE, EMPTY, DEAD)
_IDLE_TIMERS: Final = (TimerKind.SESSION, TimerKind.EXPIRY, TimerKind.GAUGE)

MemberOf = tuple[str, str]
"""A group id and a member id."""


class SkippedBeat(Struct, frozen=True, gc=False):
    """The last of a member's heartbeats in a stretch of idle time.

    Args:
        at_ms: When it arrives, not before the last request.
    """

    group_id: str
    member_id: str
    at_ms: int


def idle_sessions(runtime: Runtime) -> dict[MemberOf, int] | None:
    """Return the deadline of every session; None where anything but heartbeats is under way.

    A profile in which a session of the past ends a generation is never idle.
    """
    if runtime.profile.stale_session_rebalances:
        return None
    if any(group.state not in _AT_REST for group in runtime.groups.values()):
        return None
    if not all(each.is_settled for each in runtime.partitions.values()):
        return None
    timers = list(runtime.timers)
    if any(timer.key.kind not in _IDLE_TIMERS for timer in timers):
        return None
    return {
        (timer.key.group_id, timer.key.member_id): timer.deadline_ms
        for timer in timers
        if timer.key.kind is TimerKind.SESSION
    }


def skip_heartbeats(runtime: Runtime, beats: Iterable[SkippedBeat]) -> None:
    """Restart the session of each member as its heartbeat would, in the order given.

    Args:
        runtime: Of a coordinator for which `idle_sessions` had an answer.
        beats: At most one for each member, of members with a session.
    """
    for beat in beats:
        member = runtime.groups[beat.group_id].members[beat.member_id]
        if member.session is not None:
            runtime.timers.postpone(member.session, beat.at_ms + member.session_timeout_ms)
