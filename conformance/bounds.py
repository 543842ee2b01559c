"""Upper bounds on the durations of the group protocol, computed from the settings in force.

Every property and checker about time takes its bound from here, and only from here.
All arguments and results are milliseconds.
"""

from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from coordinator_sim.trace.events import TraceEvent

CONNECT_MAX_DELAY_MS: Final = 300_000
"""Default of `scheduled.rebalance.max.delay.ms`."""
JOIN_GROUP_TIMEOUT_LAPSE_MS: Final = 5_000
"""Time that a client waits for JoinGroup beyond the rebalance timeout.

Source: kafka trunk, AbstractCoordinator.JOIN_GROUP_TIMEOUT_LAPSE.
"""
REBALANCE_ROUNDS: Final = 4
"""Consecutive rebalances that one disturbance may need once it is over.

The interrupted one; the one with every member back; the follow-up that assigns what a cooperative
protocol revoked; and one for a member that was dropped from the first because its request was
lost, and joins again.
"""


class GroupTiming(Struct, frozen=True, kw_only=True):
    """The settings of a group's members and its coordinator that determine durations.

    Where members differ, each field is the largest of them. Defaults are Kafka 4.4's.

    Args:
        rebalance_timeout_ms: `max.poll.interval.ms` of consumers, `rebalance.timeout.ms` of
            Connect workers.
        retry_backoff_max_ms: `retry.backoff.max.ms` or `reconnect.backoff.max.ms`, the larger.
        scheduled_rebalance_max_delay_ms: Delay of Connect workers under an incremental protocol; 0
            for all others.
        callback_ms: Longest duration of an application's rebalance callback.
        poll_interval_ms: Longest time of a healthy application between two polls.
        metadata_max_age_ms: Time until a client learns of a change without being told.
        connect_timeout_ms: Longest duration of an attempt to connect to a dead broker: at most
            `socket.connection.setup.timeout.max.ms`, with its jitter of a fifth.
        failover_ms: Time from a broker's death until another one answers for its groups.
        round_trip_ms: Round trip of any request, in a healthy network.
        paused_ms: Time for which brokers stand still, and answer nothing, in all.
        lost_response_count: Responses still to be lost after the disturbance, each at a bad moment.
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
    metadata_max_age_ms: int = 300_000
    connect_timeout_ms: int = 36_000
    failover_ms: int = 5_000
    round_trip_ms: int = 1_000
    paused_ms: int = 0
    lost_response_count: int = 0


def observed_timing(events: Iterable[TraceEvent]) -> GroupTiming:
    """Return the timing of a group of which only the trace is known.

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
    """Return the longest time a JoinGroup may stay unanswered by a living coordinator.

    The join timer is armed with the largest rebalance timeout of the members; a group that starts
    from Empty waits the initial delay, extended up to the rebalance timeout of its first member.
    A parked member can always be elected, so the first expiry answers. What was appended before
    may hold replies back until its commit times out.

    Source: kafka trunk, GroupMetadataManager.prepareRebalance, completeClassicGroupJoin,
    tryCompleteInitialRebalanceElseSchedule.
    """
    waiting_ms = max(timing.rebalance_timeout_ms, timing.group_initial_rebalance_delay_ms)
    return waiting_ms + timing.offsets_commit_timeout_ms + timing.paused_ms


def parked_sync_bound_ms(timing: GroupTiming) -> int:
    """Return the longest time a SyncGroup may stay unanswered by a living coordinator.

    The pending-sync timer evicts a leader without an assignment after the rebalance timeout, and
    the rebalance that follows answers all parked requests.

    Source: kafka trunk, GroupMetadataManager.schedulePendingSync, expirePendingSync.
    """
    return timing.rebalance_timeout_ms + timing.offsets_commit_timeout_ms + timing.paused_ms


def detection_bound_ms(timing: GroupTiming) -> int:
    """Return the longest time until both sides know of a disturbance that is over.

    The session timeout reveals a dead member; the request timeout a client whose answer was lost,
    and it exceeds the rebalance timeout for JoinGroup; the poll timeout, which is the rebalance
    timeout, an application that stopped polling; the age of metadata a grown topic. A client leaves
    a dead broker once its connection attempt ends and another broker answers.
    """
    join_timeout_ms = timing.rebalance_timeout_ms + JOIN_GROUP_TIMEOUT_LAPSE_MS
    noticed_ms = max(
        timing.session_timeout_ms,
        timing.request_timeout_ms,
        timing.metadata_max_age_ms,
        join_timeout_ms,
    )
    return noticed_ms + timing.connect_timeout_ms + timing.failover_ms


def rebalance_bound_ms(timing: GroupTiming) -> int:
    """Return the longest duration of one rebalance in a world where every message arrives.

    Members learn of it by their next heartbeat, or find the coordinator again with backoff; they
    end what they are processing and their callbacks; then come join phase and sync phase.
    """
    notice_ms = timing.heartbeat_interval_ms + 3 * timing.retry_backoff_max_ms
    application_ms = timing.poll_interval_ms + timing.callback_ms
    phases_ms = parked_join_bound_ms(timing) + parked_sync_bound_ms(timing)
    return notice_ms + application_ms + phases_ms + 4 * timing.round_trip_ms


def convergence_bound_ms(timing: GroupTiming) -> int:
    """Return the longest time from the last disturbance until the group stays Stable.

    Once faults stop and every member polls: detection, then `REBALANCE_ROUNDS` rebalances. Under
    Connect's incremental protocols each of them may be delayed by the scheduled delay, and by the
    backoff between revocations, which that delay bounds. A response that is lost later costs its
    detection and one more rebalance. No correct run exceeds this bound; most need a tenth of it.

    Source: kafka trunk, IncrementalCooperativeAssignor.handleLostAssignments and
    ConsecutiveRevokingRebalancesBackoff for the delays.
    """
    round_ms = rebalance_bound_ms(timing) + timing.scheduled_rebalance_max_delay_ms
    losses_ms = timing.lost_response_count * (detection_bound_ms(timing) + round_ms)
    return detection_bound_ms(timing) + REBALANCE_ROUNDS * round_ms + losses_ms
