"""Applies the bounds to a scenario's settings: how long its groups may take to come to rest.

The bounds themselves are in `bounds`.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import structs

from coordinator_sim.broker.faults.faults import delay_of
from coordinator_sim.sim.degradation import longest_delay_ms
from coordinator_sim.sim.processing import longest_busy_us
from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    ConstantLatency,
    ConsumerGroupSpec,
    ConsumerSpec,
    DegradeNetwork,
    DelayResponse,
    FaultRule,
    GroupSpec,
    Happening,
    LagConfigTopic,
    PauseBroker,
    PauseMember,
    PerPoll,
    ReorderResponses,
    RestartMember,
    RollBrokers,
    Scenario,
    SetClock,
    ShareGroupSpec,
    SlowDownstream,
    SlowPoll,
    StartMember,
    StreamsGroupSpec,
    UniformLatency,
    members_of,
)
from coordinator_sim.sim.scenario.happenings import ResponseHappening, end_of, rule_of
from coordinator_sim.sim.scenario.settings import int_setting
from coordinator_sim_conformance.bounds import GroupTiming, convergence_bound_ms
from coordinator_sim_conformance.checkers.history import Circumstances

MARGIN_MS: Final = 5_000
"""Time added after the bound, so that the trace reaches beyond it."""
_SHARE_SESSION_MS: Final = 45_000
_SHARE_BEAT_MS: Final = 5_000
_CONSUMER_SESSION_MS: Final = 45_000
_CONNECT_SESSION_MS: Final = 10_000
_CONSUMER_REBALANCE_MS: Final = 300_000
_CONNECT_REBALANCE_MS: Final = 60_000
_CONSUMER_REQUEST_MS: Final = 30_000
_CONNECT_REQUEST_MS: Final = 40_000
_CONNECT_DELAY_MS: Final = 300_000
_CONNECT_UNSYNC_MS: Final = 300_000
_METADATA_MAX_AGE_MS: Final = 300_000
_GRACEFUL_STOP_MS: Final = 5_000
_POLL_MS: Final = 500
"""Timeout that the simulated application passes to `poll`."""


def timings_of(scenario: Scenario) -> dict[str, GroupTiming]:
    """Return the timing of each group: for every setting, the largest of its members."""
    return {group.group_id: _timing_of(scenario, group) for group in scenario.groups}


def circumstances_of(scenario: Scenario, *, has_story: bool = False) -> Circumstances:
    """Return the facts that a checker may know about the scenario's trace.

    Args:
        scenario: The scenario.
        has_story: Whether a story acts on it too, which may do so up to its end.
    """
    calm_ms = scenario.duration_ms if has_story else calm_from_ms(scenario)
    return Circumstances(
        timings=timings_of(scenario),
        calm_from_us=calm_ms * 1_000,
        ends_at_us=scenario.duration_ms * 1_000,
    )


def calm_from_ms(scenario: Scenario) -> int:
    """Return an instant after which surely no disturbance happens.

    Pauses, slow polls and late responses of one member may queue up, a restart waits for its member
    to close, and a worker that could not read the config topic sleeps; so all these durations are
    added to the end of the last happening.

    A world with a variety is never calm: garbage collections go on to its end, so its groups need
    not come to rest. Nor do groups that meet poison records, or a fault rule that has no end, or
    whose members are pods, or whose brokers are rolled.
    """
    if scenario.variety is not None or scenario.kubernetes:
        return scenario.duration_ms
    if any(topic.poison for topic in scenario.topics):
        return scenario.duration_ms
    if any(isinstance(each, RollBrokers) for each in scenario.happenings):
        return scenario.duration_ms
    rules = [each.rule for each in scenario.happenings if isinstance(each, FaultRule)]
    if any(rule.for_ms is rule.times is rule.match.nth is None for rule in rules):
        return scenario.duration_ms
    queued_ms = sum(map(_queued_ms, scenario.happenings))
    slow = [each.percent for each in scenario.happenings if isinstance(each, SlowDownstream)]
    queued_ms += _longest_poll_ms(scenario) * sum(slow) // 100
    last_ms = max((end_of(happening) for happening in scenario.happenings), default=0)
    return max(scenario.calm_from_ms(), last_ms) + queued_ms


def _longest_poll_ms(scenario: Scenario) -> int:
    """Return the longest time that a consumer may take for one poll's records."""
    longest_us = 0
    name = "max.poll.records"
    changed = [getattr(each, "settings", {}) for each in scenario.happenings]
    later = [each[name] for each in changed if name in each]
    for group in scenario.groups:
        for one in members_of(group):
            if isinstance(one, ConsumerSpec):
                default = "1000" if isinstance(group, StreamsGroupSpec) else "500"
                asked = {**group.settings, **one.settings}.get(name, default)
                most = max(map(int, (asked, *later)))
                law = one.processing or PerPoll(one.processing_ms)
                longest_us = max(longest_us, longest_busy_us(law, most))
    return longest_us // 1_000 + 1


def _queued_ms(happening: Happening) -> int:
    """The time for which a happening may delay what follows the end of its direct effect."""
    match happening:
        case PauseMember() | SlowPoll():
            return happening.for_ms
        case RestartMember():
            return happening.down_ms
        case DelayResponse() | ReorderResponses():
            return delay_of(rule_of(happening).action) * happening.count
        case FaultRule(rule=rule):
            return delay_of(rule.action) * (rule.times or 1)
        case DegradeNetwork(latency_ms=latency_ms):
            return 2 * longest_delay_ms(latency_ms)
        case SetClock(member=str(), skew_ms=skew_ms):
            # A client's clock stands still for a step back, from the last skew to this one.
            return 2 * abs(skew_ms)
        case LagConfigTopic():
            return _CONNECT_UNSYNC_MS
        case _:
            return 0


def with_calm(scenario: Scenario) -> Scenario:
    """Return the scenario, long enough for every group to converge after its last happening."""
    bounds_ms = [convergence_bound_ms(timing) for timing in timings_of(scenario).values()]
    duration_ms = calm_from_ms(scenario) + max(bounds_ms, default=0) + MARGIN_MS
    return structs.replace(scenario, duration_ms=duration_ms)


def _timing_of(scenario: Scenario, group: GroupSpec) -> GroupTiming:
    settings = [{**group.settings, **member.settings} for member in members_of(group)]
    settings += [
        {**group.settings, **event.settings}
        for event in scenario.happenings
        if isinstance(event, StartMember | RestartMember)
    ]
    # A response may be so late that its client gives up waiting and it counts as lost. One that
    # comes out of its turn costs another answer, or the whole process, which leaves sooner.
    lost = sum(event.count for event in scenario.happenings if isinstance(event, ResponseHappening))
    lost += sum(e.rule.times or 1 for e in scenario.happenings if isinstance(e, FaultRule))
    common = structs.replace(
        GroupTiming(),
        heartbeat_interval_ms=_largest(settings, "heartbeat.interval.ms", 3_000),
        retry_backoff_max_ms=max(
            _largest(settings, "retry.backoff.max.ms", 1_000),
            _largest(settings, "reconnect.backoff.max.ms", 1_000),
        ),
        metadata_max_age_ms=_largest(settings, "metadata.max.age.ms", _METADATA_MAX_AGE_MS),
        group_initial_rebalance_delay_ms=int_setting(
            scenario.broker_settings, "group.initial.rebalance.delay.ms", 3_000
        ),
        offsets_commit_timeout_ms=int_setting(
            scenario.broker_settings, "offsets.commit.timeout.ms", 5_000
        ),
        failover_ms=scenario.failover_ms + scenario.load_ms,
        round_trip_ms=_round_trip_ms(scenario),
        paused_ms=sum(e.for_ms for e in scenario.happenings if isinstance(e, PauseBroker)),
        lost_response_count=lost,
    )
    match group:
        case ConsumerGroupSpec():
            return _consumer_timing(group, settings, common)
        case ConnectGroupSpec():
            return _connect_timing(settings, common)
        case ShareGroupSpec():
            return _share_timing(group, settings, common)


def _consumer_timing(
    group: ConsumerGroupSpec, settings: list[dict[str, str]], common: GroupTiming
) -> GroupTiming:
    return structs.replace(
        common,
        session_timeout_ms=_largest(settings, "session.timeout.ms", _CONSUMER_SESSION_MS),
        rebalance_timeout_ms=_largest(settings, "max.poll.interval.ms", _CONSUMER_REBALANCE_MS),
        request_timeout_ms=_largest(settings, "request.timeout.ms", _CONSUMER_REQUEST_MS),
        callback_ms=max((member.callback_ms for member in group.members), default=0),
        poll_interval_ms=_POLL_MS + max((one.processing_ms for one in group.members), default=0),
    )


def _share_timing(
    group: ShareGroupSpec, settings: list[dict[str, str]], common: GroupTiming
) -> GroupTiming:
    session_ms = int_setting(group.group_settings, "share.session.timeout.ms", _SHARE_SESSION_MS)
    beat_ms = int_setting(group.group_settings, "share.heartbeat.interval.ms", _SHARE_BEAT_MS)
    return structs.replace(
        common,
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=beat_ms,
        rebalance_timeout_ms=_largest(settings, "max.poll.interval.ms", _CONSUMER_REBALANCE_MS),
        request_timeout_ms=_largest(settings, "request.timeout.ms", _CONSUMER_REQUEST_MS),
        poll_interval_ms=_POLL_MS + max((one.processing_ms for one in group.members), default=0),
    )


def _connect_timing(settings: list[dict[str, str]], common: GroupTiming) -> GroupTiming:
    return structs.replace(
        common,
        session_timeout_ms=_largest(settings, "session.timeout.ms", _CONNECT_SESSION_MS),
        rebalance_timeout_ms=_largest(settings, "rebalance.timeout.ms", _CONNECT_REBALANCE_MS),
        request_timeout_ms=_largest(settings, "request.timeout.ms", _CONNECT_REQUEST_MS),
        scheduled_rebalance_max_delay_ms=_largest(
            settings, "scheduled.rebalance.max.delay.ms", _CONNECT_DELAY_MS
        ),
        callback_ms=_largest(settings, "task.shutdown.graceful.timeout.ms", _GRACEFUL_STOP_MS),
    )


def _largest(settings: Sequence[Mapping[str, str]], name: str, default: int) -> int:
    return max((int_setting(one, name, default) for one in settings), default=default)


def _round_trip_ms(scenario: Scenario) -> int:
    match scenario.network.latency:
        case ConstantLatency(us=us):
            one_way_us = us
        case UniformLatency(high_us=high_us):
            one_way_us = high_us
        case latency:
            one_way_us = latency.quantiles_us[-1]
    return 2 * one_way_us // 1_000 + 1
