"""Calm time that is left out changes instants, and nothing else."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.errors import DataError
from coordinator_sim.replay.recording import Recording
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.elision import Elided
from coordinator_sim.sim.runner import Simulation, run_scenario
from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.work import PerPoll
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from tests.simulated import scenario_of

DAY_MS = 86_400_000
RHYTHM = (Event.HEARTBEAT, Event.OFFSET_COMMIT)
"""What comes in calm time again and again, and is folded for a comparison."""


def deployed(
    *, every_ms: int, deploys: int, variety: Variety, **fields: object
) -> scenarios.Scenario:
    """Three members, restarted one after another in every deploy."""
    members = tuple(scenarios.ConsumerSpec(name=f"consumer-{number}") for number in range(3))
    group = scenarios.ConsumerGroupSpec(
        group_id="app", topics=("orders",), members=members, assignors=("cooperative-sticky",)
    )
    plain = scenario_of(
        name="deployed",
        duration_ms=every_ms * deploys,
        topics=(scenarios.TopicSpec(name="orders", partitions=7, records_per_s=10),),
        groups=(group,),
        happenings=tuple(
            scenarios.RestartMember(
                at_ms=every_ms // 2 + deploy * every_ms + number * 20_000,
                member=each.name,
                down_ms=5_000,
                graceful=deploy != 1,
            )
            for deploy in range(deploys)
            for number, each in enumerate(members)
        ),
        variety=variety,
        traces_work=True,
    )
    return msgspec.structs.replace(plain, **fields)


def lived(scenario: scenarios.Scenario, seed: int = 0) -> tuple[list[TraceEvent], Elided | None]:
    """Run it; its events without their numbers."""
    recorder = MemoryRecorder()
    result = run_scenario(scenario, seed=seed, recorder=recorder)
    return [msgspec.structs.replace(event, seq=0) for event in recorder.events], result.elided


def without_calm(scenario: scenarios.Scenario) -> scenarios.Scenario:
    """The scenario whose calm time is lived through."""
    assert scenario.variety is not None
    variety = msgspec.structs.replace(scenario.variety, calm_ms=0)
    return msgspec.structs.replace(scenario, variety=variety)


def moved_together(
    scenario: scenarios.Scenario, cuts: Sequence[tuple[int, int]]
) -> scenarios.Scenario:
    """The scenario without the time that was left out, from one instant in ms to another."""

    def before(at_ms: int) -> int:
        return at_ms - sum(to_ms - from_ms for from_ms, to_ms in cuts if from_ms < at_ms)

    happenings = tuple(
        msgspec.structs.replace(each, at_ms=before(each.at_ms)) for each in scenario.happenings
    )
    return msgspec.structs.replace(
        without_calm(scenario), happenings=happenings, duration_ms=before(scenario.duration_ms)
    )


def cuts_of(events: Sequence[TraceEvent]) -> list[tuple[int, int]]:
    """From when to when time was left out, in microseconds."""
    told = [event for event in events if event.event is Event.CALM_LEFT_OUT]
    return [(event.ts_us, int(event.attrs["until_us"])) for event in told]


def closer(event: TraceEvent, cuts: Sequence[tuple[int, int]]) -> TraceEvent:
    """An event at its instant without the time that was left out."""

    def before(at_us: int) -> int:
        return at_us - sum(to_us - from_us for from_us, to_us in cuts if from_us < at_us)

    latency_us = event.latency_us
    at_us = before(event.ts_us)
    return msgspec.structs.replace(
        event,
        ts_us=at_us,
        latency_us=None if latency_us is None else at_us - before(event.ts_us - latency_us),
        offsets=tuple(
            entry
            if entry.commit_ts_us is None
            else msgspec.structs.replace(entry, commit_ts_us=before(entry.commit_ts_us))
            for entry in event.offsets
        ),
    )


def check_moved(scenario: scenarios.Scenario, seed: int) -> int:
    """The trace is that of the scenario whose happenings are closer; how often time was cut."""
    events, elided = lived(scenario, seed)
    cuts = cuts_of(events)
    assert elided is not None
    assert elided.us == sum(to_us - from_us for from_us, to_us in cuts)
    told = [closer(event, cuts) for event in events if event.event is not Event.CALM_LEFT_OUT]
    in_ms = [(-(-from_us // 1_000), -(-to_us // 1_000)) for from_us, to_us in cuts]
    assert told == lived(moved_together(scenario, in_ms), seed)[0]
    return len(cuts)


def test_a_drawn_world_is_that_of_happenings_closer_together() -> None:
    """Latencies, pauses, times of polls and records are those of the shorter run."""
    world = deployed(every_ms=1_200_000, deploys=2, variety=Variety(calm_ms=30_000))
    assert check_moved(world, 1) == 3


@pytest.mark.property
@settings(max_examples=40)
@given(
    calm_ms=st.sampled_from((10_000, 15_000, 60_000)),
    every_ms=st.sampled_from((400_000, 777_777, 3_600_000)),
    pause_ms=st.sampled_from(((), (10, 200), (100, 4_000))),
    static=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_drawn_worlds_are_those_of_happenings_closer_together(
    *, calm_ms: int, every_ms: int, pause_ms: tuple[int, ...], static: bool, seed: int
) -> None:
    """Deploys and crashes, dynamic and static, with short and long pauses."""
    variety = Variety(calm_ms=calm_ms, pause_ms=pause_ms)
    world = deployed(every_ms=every_ms, deploys=2, variety=variety)
    named = tuple(
        msgspec.structs.replace(
            group,
            members=tuple(
                msgspec.structs.replace(each, instance_id=each.name if static else None)
                for each in group.members
            ),
        )
        for group in world.groups
        if isinstance(group, scenarios.ConsumerGroupSpec)
    )
    assert check_moved(msgspec.structs.replace(world, groups=named), seed)


def test_where_rhythms_divide_a_minute_the_trace_is_that_of_the_whole_run() -> None:
    """Heartbeats and commits of the calm time are missing, and nothing else, at its microsecond."""
    exact = Variety(
        start_spread_ms=0,
        happening_spread_ms=0,
        down_percent=(100, 100),
        latency=scenarios.ConstantLatency(us=500),
        pause_ms=(),
        calm_ms=30_000,
    )
    world = deployed(
        every_ms=1_200_000,
        deploys=3,
        variety=exact,
        topics=(scenarios.TopicSpec(name="orders", partitions=7, records_per_s=0),),
        traces_work=False,
    )
    group = world.groups[0]
    assert isinstance(group, scenarios.ConsumerGroupSpec)
    members = tuple(
        msgspec.structs.replace(each, processing=PerPoll(500), start_ms=number * 37)
        for number, each in enumerate(group.members)
    )
    world = msgspec.structs.replace(
        world, groups=(msgspec.structs.replace(group, members=members),)
    )
    world = with_settings(world, {"metadata.max.age.ms": "86400000"})
    short, elided = lived(world)
    assert elided is not None
    assert elided.stretches == 4
    assert elided.us > 0.8 * world.duration_ms * 1_000
    full, _ = lived(without_calm(world))
    kept = (*RHYTHM, Event.CALM_LEFT_OUT)
    assert [each for each in short if each.event not in kept] == [
        each for each in full if each.event not in kept
    ]


def test_a_year_of_weekly_deploys_is_simulated_as_its_deploys() -> None:
    """Ten times as many weeks are ten times as much to simulate, however long they are."""
    variety = Variety(calm_ms=30_000)
    year = deployed(every_ms=7 * DAY_MS, deploys=52, variety=variety)
    recorder = MemoryRecorder()
    simulation = Simulation(year, recorder=recorder)
    simulation.run_until(30 * DAY_MS * 1_000)
    elided = simulation.result().elided
    assert elided is not None
    assert simulation.now_us >= 30 * DAY_MS * 1_000
    assert elided.us > 0.998 * simulation.now_us
    restarts = [event for event in recorder.events if event.event is Event.FAULT]
    assert len(restarts) == 12


def test_in_steps_the_run_is_the_same() -> None:
    """A progress bar changes nothing."""
    world = deployed(every_ms=1_200_000, deploys=2, variety=Variety(calm_ms=30_000))
    whole, _ = lived(world)
    recorder = MemoryRecorder()
    run_scenario(world, recorder=recorder, progress=lambda _at_us: None)
    assert [msgspec.structs.replace(event, seq=0) for event in recorder.events] == whole


@pytest.mark.parametrize(
    ("own", "reason"),
    [
        (
            {"session.timeout.ms": "6000", "heartbeat.interval.ms": "3000"},
            "a pause or a slow poll may cost a member its place in the group",
        ),
        (
            {"max.poll.interval.ms": "5000"},
            "a pause or a slow poll may cost a member its place in the group",
        ),
    ],
)
def test_time_in_which_a_member_may_be_lost_is_lived_through(
    own: dict[str, str], reason: str
) -> None:
    """A pause of four seconds is nothing to a session of 45 s, and the end of one of six."""
    world = deployed(every_ms=400_000, deploys=1, variety=Variety(calm_ms=10_000))
    _, elided = lived(with_settings(world, own))
    assert elided == Elided(0, 0, 0, reason)


def test_a_trace_without_its_calm_time_is_not_replayed() -> None:
    """Sessions would run out that did not; the message says what to do."""
    recorder = MemoryRecorder()
    world = deployed(every_ms=1_200_000, deploys=1, variety=Variety(calm_ms=30_000))
    run_scenario(world, recorder=recorder)
    with pytest.raises(DataError, match="calm_ms 0 in its variety"):
        Recording(recorder.events, None)
