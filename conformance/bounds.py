"""How long the group protocol may take at most, computed from the settings in force.

Every property and checker that speaks of time takes its bound from here, and only from here.
All arguments and results are milliseconds.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import TraceEvent

CONNECT_MAX_DELAY_MS: Final = 300_000
"""Default of `scheduled.rebalance.max.delay.ms`."""
JOIN_GROUP_TIMEOUT_LAPSE_MS: Final = 5_000
"""What a client waits for JoinGroup beyond the rebalance timeout.

Source: kafka trunk, AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE.
"""
REBALANCE_ROUNDS: Final = 4
"""Rebalances in a row that one disturbance may need once it is over.

The one that it interrupted; the one with every member back; the follow-up that hands out what a
cooperative protocol revoked; and one for a member that was dropped from the first because its
request was lost, and comes again.
"""


class GroupTiming(Struct, frozen=True, kw_only=True):
    """The settings of a group's members and of its coordinator that decide how long things take.

    Where members differ, each field is the largest of them. Defaults are Kafka 4.4's.

    Args:
        rebalance_timeout_ms: `max.poll.interval.ms` of consumers, `rebalance.timeout.ms` of
            Connect workers.
        retry_backoff_max_ms: `retry.backoff.max.ms` or `reconnect.backoff.max.ms`, the larger.
        scheduled_rebalance_max_delay_ms: Of Connect workers under an incremental protocol; 0
            for everyone else.
        callback_ms: The longest that an application's rebalance callback takes.
        poll_interval_ms: The longest that a healthy application takes between two polls.
    """

    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    request_timeout_ms: int = 30_000
    retry_backoff_max_ms: int = 1_000
    group_initial_rebalance_delay_ms: int = 3_000
    offsets_commit_timeout_ms: int = 5_000
    scheduled_rebalance_max_delay_ms: int = 0
    callback_ms: int = 0
    poll_interval_ms: int = 1_000
    round_trip_ms: int = 1_000


def observed_timing(events: Iterable[TraceEvent]) -> GroupTiming:
    """The timing of a group of which only its trace is known.

    Session and rebalance timeouts are the largest that its members asked for; the rest is at
    Kafka's defaults, the scheduled delay too if its members are Connect workers.
    """
    session_ms = rebalance_ms = delay_ms = 0
    for event in events:
        session_ms = max(session_ms, event.session_timeout_ms or 0)
        rebalance_ms = max(rebalance_ms, event.rebalance_timeout_ms or 0)
        if event.protocol_type == "connect":
            delay_ms = CONNECT_MAX_DELAY_MS
    default = GroupTiming()
    return GroupTiming(
        session_timeout_ms=session_ms or default.session_timeout_ms,
        rebalance_timeout_ms=rebalance_ms or session_ms or default.rebalance_timeout_ms,
        scheduled_rebalance_max_delay_ms=delay_ms,
    )


def parked_join_bound_ms(timing: GroupTiming) -> int:
    """The longest that a JoinGroup may stay unanswered by a coordinator that lives on.

    The join timer is armed with the largest rebalance timeout of the members; a group that starts
    from Empty waits the initial delay, extended up to the rebalance timeout of its first member.
    A parked member can always be elected, so the first expiry answers. What was appended before
    may hold replies back until its commit times out.

    Source: kafka trunk, GroupMetadataManager.prepareRebalance, completeClassicGroupJoin,
    tryCompleteInitialRebalanceElseSchedule.
    """
    waiting_ms = max(timing.rebalance_timeout_ms, timing.group_initial_rebalance_delay_ms)
    return waiting_ms + timing.offsets_commit_timeout_ms


def parked_sync_bound_ms(timing: GroupTiming) -> int:
    """The longest that a SyncGroup may stay unanswered by a coordinator that lives on.

    The pending-sync timer evicts a leader that brings no assignment after the rebalance timeout,
    and the rebalance that follows answers whoever is parked.

    Source: kafka trunk, GroupMetadataManager.schedulePendingSync, expirePendingSync.
    """
    return timing.rebalance_timeout_ms + timing.offsets_commit_timeout_ms


def detection_bound_ms(timing: GroupTiming) -> int:
    """The longest until both sides know of a disturbance that is over.

    A dead member is noticed by its session; a client whose answer was lost by its request timeout,
    which for JoinGroup exceeds the rebalance timeout; an application that had stopped polling by
    its poll timeout, which is the rebalance timeout.
    """
    join_timeout_ms = timing.rebalance_timeout_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS
    return max(timing.session_timeout_ms, timing.request_timeout_ms, join_timeout_ms)


def rebalance_bound_ms(timing: GroupTiming) -> int:
    """The longest of one whole rebalance in a world where every message arrives.

    Members learn of it by their next heartbeat, or find the coordinator again with backoff; they
    end what they are processing and their callbacks; then come join phase and sync phase.
    """
    notice_ms = timing.heartbeat_interval_ms + 3 * timing.retry_backoff_max_ms
    application_ms = timing.poll_interval_ms + timing.callback_ms
    phases_ms = parked_join_bound_ms(timing) + parked_sync_bound_ms(timing)
    return notice_ms + application_ms + phases_ms + 4 * timing.round_trip_ms


def convergence_bound_ms(timing: GroupTiming) -> int:
    """The longest from the end of the last disturbance until the group is Stable for good.

    Once faults stop and every member polls: detection, then `REBALANCE_ROUNDS` rebalances; Connect
    adds its scheduled delay, during which the group is Stable but not yet at rest. It is a bound
    that no correct run exceeds, not an expectation: most runs need a tenth of it.
    """
    rounds_ms = REBALANCE_ROUNDS * rebalance_bound_ms(timing)
    return detection_bound_ms(timing) + rounds_ms + timing.scheduled_rebalance_max_delay_ms
