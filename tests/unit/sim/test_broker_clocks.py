"""Clocks of brokers that are wrong: stamps show it, and timers do not."""

import pytest

from coordinator_sim.clock.clock import TRUE, WallClock
from coordinator_sim.messages.group_records import OffsetCommitKey, OffsetCommitValue
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.runner import RunResult, run_scenario
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_conformance.checkers.offsets import NO_OFFSET
from coordinator_sim_conformance.scenario_timing import circumstances_of
from tests.simulated import scenario_of

COORDINATOR = 1
"""The broker that leads the offsets partition of `g`."""
WEEK_MS = 7 * 24 * 3_600_000
"""`offsets.retention.minutes`."""


def run(
    *happenings: scenarios.Happening, profile: str = "4.4", linger_ms: str = "0"
) -> tuple[list[TraceEvent], RunResult]:
    """A minute of a consumer that commits every five seconds, with a look for old offsets in it."""
    scenario = scenario_of(
        name="clocks",
        duration_ms=60_000,
        profile=profile,
        broker_settings={
            "offsets.retention.check.interval.ms": "7000",
            "group.coordinator.append.linger.ms": linger_ms,
        },
        topics=(scenarios.TopicSpec(name="orders", partitions=1),),
        groups=(
            scenarios.ConsumerGroupSpec(
                group_id="g",
                topics=("orders",),
                settings={"session.timeout.ms": "10000"},
                members=(scenarios.ConsumerSpec(name="a"),),
            ),
        ),
        happenings=happenings,
    )
    recorder = MemoryRecorder()
    result = run_scenario(scenario, recorder=recorder)
    assert not check_all(recorder.events, circumstances_of(scenario)).violations
    return list(recorder.events), result


def ahead(by_ms: int, drift_ppm: int = 0) -> scenarios.Happening:
    """The coordinator's clock at 20 s."""
    return scenarios.SetClock(at_ms=20_000, broker=COORDINATOR, skew_ms=by_ms, drift_ppm=drift_ppm)


def stamps(result: RunResult) -> list[int]:
    """The times of all commits that are in the log, in order."""
    return [
        record.value.commit_timestamp
        for batch in result.offsets_log
        for record in batch.records
        if isinstance(record.key, OffsetCommitKey) and isinstance(record.value, OffsetCommitValue)
    ]


def test_wall_clock_shows_its_skew_and_its_drift() -> None:
    """From the instant on at which it was set."""
    clock = WallClock(skew_ms=5_000, drift_ppm=100_000, set_at_ms=10_000)

    assert (clock.shown_ms(10_000), clock.shown_ms(20_000)) == (15_000, 26_000)
    assert TRUE.shown_ms(7) == 7


@pytest.mark.parametrize("linger_ms", ["0", "5"])
def test_commits_are_stamped_by_the_clock_of_their_coordinator(linger_ms: str) -> None:
    """A step of an hour shows from the next commit on; nobody's session is the shorter for it."""
    events, result = run(ahead(3_600_000), linger_ms=linger_ms)

    before = [stamp for stamp in stamps(result) if stamp < 20_000]
    after = [stamp for stamp in stamps(result) if stamp >= 20_000]
    assert before
    assert all(3_620_000 <= stamp <= 3_660_000 for stamp in after)
    assert len(after) == 8
    assert not [e for e in events if e.event is Event.MEMBER_FAILED]
    batches = [each.timestamp_ms for each in result.offsets_log]
    assert max(batches) >= 3_620_000


def test_stamps_drift() -> None:
    """With half the true speed more, the last of 40 seconds is stamped twenty seconds late."""
    _, result = run(ahead(0, drift_ppm=500_000))

    assert 75_000 < stamps(result)[-1] <= 80_000


@pytest.mark.parametrize("profile", ["4.4", "3.9", "2.8"])
def test_a_clock_that_is_a_week_ahead_forgets_the_offsets_of_a_group_that_is_away(
    profile: str,
) -> None:
    """The next look finds them old; the consumer that comes back reads all once more."""
    events, _ = run(
        scenarios.StopMember(at_ms=19_000, member="a"),
        ahead(WEEK_MS + 1_000),
        scenarios.StartMember(at_ms=40_000, member="a"),
        profile=profile,
    )

    (expired, *_) = (e for e in events if e.event is Event.OFFSET_EXPIRED)
    assert 20_000_000 < expired.ts_us <= 27_000_000
    found = next(e for e in events if e.event is Event.OFFSET_FETCH and e.ts_us > 40_000_000)
    assert [entry.offset for entry in found.offsets] == [NO_OFFSET]


def test_offsets_of_a_group_that_reads_on_are_kept() -> None:
    """A member that subscribes to the topic keeps its offsets, whatever a clock shows."""
    events, _ = run(ahead(WEEK_MS + 1_000))

    assert not [e for e in events if e.event is Event.OFFSET_EXPIRED]


def test_the_clock_of_a_machine_outlives_the_process_of_its_broker() -> None:
    """A broker that comes back stamps as before, and one that takes over by its own clock."""
    _, result = run(
        ahead(3_600_000),
        scenarios.CrashBroker(at_ms=25_000, broker=COORDINATOR, for_ms=5_000),
        scenarios.MoveCoordinator(at_ms=40_000, group_id="g", to_broker=COORDINATOR),
    )

    hours = [stamp // 3_600_000 for stamp in stamps(result)]
    steps = [hour for place, hour in enumerate(hours) if not place or hour != hours[place - 1]]
    assert steps == [0, 1, 0, 1]


def test_sessions_end_in_true_time() -> None:
    """A silent member is removed when it would be by a clock that is right."""
    pause = scenarios.PauseMember(at_ms=30_000, member="a", for_ms=15_000)
    right, wrong = (run(pause)[0], run(pause, ahead(3_600_000, drift_ppm=500_000))[0])

    (in_time, as_well) = (
        [e.ts_us for e in events if e.event is Event.MEMBER_FAILED] for events in (right, wrong)
    )
    assert len(in_time) == 1
    assert as_well == in_time
