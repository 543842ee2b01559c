"""The bounds that every statement about time is made with."""

from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance import bounds

TIMING = bounds.GroupTiming(
    session_timeout_ms=10_000,
    rebalance_timeout_ms=20_000,
    request_timeout_ms=30_000,
    metadata_max_age_ms=5_000,
    connect_timeout_ms=1_000,
    failover_ms=2_000,
    offsets_commit_timeout_ms=5_000,
)


def joining(session_ms: int, rebalance_ms: int, protocol_type: str = "consumer") -> TraceEvent:
    """A JoinGroup that says its timeouts."""
    return TraceEvent(
        event=Event.JOIN_REQ,
        ts_us=0,
        protocol_type=protocol_type,
        session_timeout_ms=session_ms,
        rebalance_timeout_ms=rebalance_ms,
    )


def test_join_waits_for_the_rebalance_timeout_at_most() -> None:
    """And for the commit of what was appended before."""
    assert bounds.parked_join_bound_ms(TIMING) == 25_000


def test_join_of_a_short_rebalance_timeout_waits_for_the_initial_delay() -> None:
    """The delay does not shrink to a smaller rebalance timeout."""
    timing = bounds.GroupTiming(rebalance_timeout_ms=1_000, group_initial_rebalance_delay_ms=3_000)

    assert bounds.parked_join_bound_ms(timing) == 8_000


def test_sync_waits_until_the_leader_is_evicted() -> None:
    """The pending-sync timer is the rebalance timeout."""
    assert bounds.parked_sync_bound_ms(TIMING) == 25_000


def test_detection_is_the_slowest_way_to_notice_then_to_reconnect() -> None:
    """Here a lost answer of another request than JoinGroup: 30 s, then 1 s and 2 s."""
    assert bounds.detection_bound_ms(TIMING) == 33_000


def test_convergence_grows_with_every_setting() -> None:
    """No part of the bound is forgotten."""
    for field in bounds.GroupTiming.__struct_fields__:
        larger = {"metadata_max_age_ms": 900_000}.get(field, 500_000)
        assert bounds.convergence_bound_ms(
            bounds.GroupTiming(**{field: larger})
        ) > bounds.convergence_bound_ms(bounds.GroupTiming())


def test_observed_timing_takes_the_largest_timeouts() -> None:
    """A group waits for its slowest member."""
    timing = bounds.observed_timing([joining(10_000, 60_000), joining(20_000, 30_000)])

    assert (timing.session_timeout_ms, timing.rebalance_timeout_ms) == (20_000, 60_000)
    assert timing.scheduled_rebalance_max_delay_ms == 0


def test_observed_timing_of_workers_has_their_delay() -> None:
    """Connect's scheduled delay is in no trace column, so its default is taken."""
    timing = bounds.observed_timing([joining(10_000, 60_000, "connect")])

    assert timing.scheduled_rebalance_max_delay_ms == bounds.CONNECT_MAX_DELAY_MS


def test_observed_timing_without_timeouts_is_kafkas_default() -> None:
    """A broker log says none."""
    assert bounds.observed_timing([]) == bounds.GroupTiming()


def test_observed_timing_of_old_requests_has_one_timeout_for_both() -> None:
    """JoinGroup v0 has no rebalance timeout: -1 stands for the session's."""
    timing = bounds.observed_timing([joining(30_000, -1)])

    assert timing.rebalance_timeout_ms == 30_000
