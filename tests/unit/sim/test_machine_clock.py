"""Clocks of members that step and drift."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.machine_clock import MachineClock
from coordinator_sim.sim.scenario import ConsumerSpec, RestartMember, SetClock
from coordinator_sim.trace.events import Event, TraceEvent
from tests.unit.sim.test_meddling import CLUSTER, READERS, of, run


def nothing() -> None:
    """Hear of a clock that is set."""


def test_clock_shows_its_skew_and_runs_by_its_drift() -> None:
    """The wall clock steps, the monotonic one does not, and both drift."""
    environment = Environment()
    clock = MachineClock(environment)
    wall, monotonic = clock.read_by(nothing), clock.read_by(nothing, is_monotonic=True)
    environment.run_until(10_000_000)
    clock.set(skew_ms=5_000, drift_ppm=100_000)
    assert (wall.now_ms, monotonic.now_ms) == (15_000, 10_000)
    environment.run_until(20_000_000)
    assert (wall.now_ms, monotonic.now_ms) == (26_000, 21_000)
    clock.set(skew_ms=0, drift_ppm=0)
    assert (wall.now_ms, clock.read_by(nothing).now_ms) == (26_000, 20_000)
    environment.run_until(27_000_000)
    assert (wall.now_ms, monotonic.now_ms) == (27_000, 28_000)


@given(
    sets=st.lists(
        st.tuples(
            st.integers(0, 10**9), st.integers(-(10**6), 10**6), st.integers(-500_000, 500_000)
        ),
        min_size=1,
        max_size=5,
    ),
    wait_ms=st.integers(0, 10**6),
)
def test_reading_never_goes_back_and_alarms_ring_in_time(
    sets: list[tuple[int, int, int]], wait_ms: int
) -> None:
    """An alarm rings at the first microsecond at which the clock shows its deadline."""
    environment = Environment()
    clock = MachineClock(environment)
    readings = [clock.read_by(nothing, is_monotonic=each) for each in (False, True)]
    for passed_us, skew_ms, drift_ppm in sets:
        shown = [each.now_us for each in readings]
        environment.run_until(environment.now_us + passed_us)
        passed = [each.now_us for each in readings]
        clock.set(skew_ms=skew_ms, drift_ppm=drift_ppm)
        found = [each.now_us for each in readings]
        assert all(a <= b <= c for a, b, c in zip(shown, passed, found, strict=True))
    set_at_us = environment.now_us
    for each in readings:
        environment.now_us = set_at_us
        deadline_ms = each.now_ms + wait_ms
        at_us = each.true_us(deadline_ms)
        if at_us > set_at_us:
            environment.now_us = at_us - 1
            assert each.now_ms < deadline_ms
            environment.now_us = at_us
        assert each.now_ms >= deadline_ms


def times_of(events: list[TraceEvent], event: Event, name: str) -> list[int]:
    """Milliseconds at which one member did something, under any of its member ids."""
    ids = {e.member_id for e in events if e.event is Event.MEMBER_ADDED and e.client_id == name}
    return [e.ts_us // 1_000 for e in events if e.event is event and e.member_id in ids]


def test_step_ahead_ends_the_poll_interval_of_a_java_client() -> None:
    """Its heartbeat thread finds that the application has not polled, and leaves the group."""
    ahead = SetClock(at_ms=20_000, member="a", skew_ms=600_000)
    events = run(READERS, ahead)

    (left,) = [e for e in of(events, Event.MEMBER_LEFT) if e.client_id == "a"]
    assert 20_000_000 <= left.ts_us < 24_000_000
    assert left.client_reason is not None
    assert "poll timeout" in left.client_reason
    assert of(events, Event.GROUP_STABLE, after_ms=left.ts_us // 1_000)


def test_step_back_silences_a_java_client_until_its_clock_has_caught_up() -> None:
    """No timer of it runs meanwhile: the broker ends its session, and later it joins again."""
    back = SetClock(at_ms=20_000, member="a", skew_ms=-20_000)
    events = run(READERS, back)

    beats = times_of(events, Event.HEARTBEAT, "a")
    assert not [at_ms for at_ms in beats if 20_500 < at_ms < 40_000]
    (failed,) = [e for e in of(events, Event.MEMBER_FAILED) if e.client_id == "a"]
    assert failed.reason_text == "session expired"
    assert 27_000_000 <= failed.ts_us <= 30_100_000
    assert [at_ms for at_ms in times_of(events, Event.MEMBER_ADDED, "a") if at_ms > 40_000]


def test_slow_clock_sends_fewer_heartbeats() -> None:
    """At half the speed its interval of 3 s lasts 6 s of the others; nobody else changes."""
    slow = SetClock(at_ms=20_000, member="a", drift_ppm=-500_000)
    events = run(READERS, slow)

    for name, gap_ms in (("a", 6_000), ("b", 3_000)):
        beats = [at_ms for at_ms in times_of(events, Event.HEARTBEAT, name) if at_ms > 27_000]
        gaps = {late - early for early, late in pairwise(beats)}
        assert gaps
        assert all(abs(gap - gap_ms) < 150 for gap in gaps), (name, gaps)


def test_client_with_a_monotonic_clock_does_not_feel_a_step() -> None:
    """What librdkafka does is the same in every microsecond."""
    members = (ConsumerSpec(name="a", client="librdkafka"), ConsumerSpec(name="b"))
    readers = structs.replace(READERS, members=members)
    steps = [
        SetClock(at_ms=at_ms, member="a", skew_ms=skew_ms)
        for at_ms, skew_ms in ((20_000, 600_000), (40_000, -30_000))
    ]
    plain, stepped = (
        [(e.ts_us, e.event, e.member_id) for e in run(readers, *each) if e.event is not Event.FAULT]
        for each in ((), steps)
    )
    assert stepped == plain


def test_step_back_silences_a_worker_with_its_clients() -> None:
    """The herder, the member and the clients of a worker read one clock."""
    back = SetClock(at_ms=20_000, member="x", skew_ms=-15_000)
    events = run(CLUSTER, back)

    assert not [at for at in times_of(events, Event.HEARTBEAT, "x") if 20_500 < at < 35_000]
    assert [at for at in times_of(events, Event.HEARTBEAT, "x") if at > 35_000]


def test_process_that_starts_after_a_step_knows_no_other_time() -> None:
    """A clock that was set back silences whoever knew a later time, and no new process."""
    back = SetClock(at_ms=20_000, member="b", skew_ms=-20_000)
    events = run(
        READERS, back, RestartMember(at_ms=21_000, member="b", down_ms=100, graceful=False)
    )

    beats = [at_ms for at_ms in times_of(events, Event.HEARTBEAT, "b") if 26_000 < at_ms < 40_000]
    assert len(beats) >= 3
