"""Calm time that is left out changes instants, and nothing else."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from coordinator_sim.errors import ConfigError, DataError, ScenarioError
from coordinator_sim.replay.recording import Recording
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.elision import Elided
from coordinator_sim.sim.runner import Simulation, run_scenario
from coordinator_sim.sim.scenario import (
    ConstantLatency,
    ConsumerGroupSpec,
    ConsumerSpec,
    NetworkSpec,
    Scenario,
    TopicSpec,
    UniformLatency,
)
from coordinator_sim.sim.scenario.load import (
    BurstLoad,
    ConstantLoad,
    PoisonRecords,
    RecordedLoad,
    ZipfKeys,
)
from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.work import PerPoll
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named
from coordinator_sim_scenarios.strategies import faults_on
from tests.simulated import examples, scenario_of

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


# -- A run without its idle time has the trace of the run with it, heartbeats folded -----------


FOLDED = (Event.HEARTBEAT, Event.HEARTBEATS_ELIDED)
LASTS_MS = 1_200_000
NO_COMMITS = {"enable.auto.commit": "false", "metadata.max.age.ms": "86400000"}


def folded(events: Sequence[TraceEvent]) -> tuple[list[TraceEvent], int]:
    """The events without heartbeats and numbers, and how many heartbeats there were."""
    count = 0
    kept: list[TraceEvent] = []
    for event in events:
        if event.event is Event.HEARTBEATS_ELIDED:
            count += int(event.attrs["heartbeats"])
        elif event.event is Event.HEARTBEAT:
            count += 1
        else:
            kept.append(msgspec.structs.replace(event, seq=0))
    return kept, count


def run(scenario: Scenario, seed: int, *, elide: bool) -> tuple[MemoryRecorder, Elided | None]:
    """Run it with a recorder of its own."""
    recorder = MemoryRecorder()
    result = run_scenario(scenario, seed=seed, recorder=recorder, elide=elide)
    return recorder, result.elided


def check(scenario: Scenario, seed: int = 0) -> Elided:
    """Run a scenario with and without its idle time; the folded traces are equal."""
    full, nothing = run(scenario, seed, elide=False)
    short, elided = run(scenario, seed, elide=True)
    assert nothing is None
    assert elided is not None
    assert folded(short.events) == folded(full.events)
    return elided


def idle(scenario: Scenario) -> Scenario:
    """The scenario with quiet topics and without automatic commits, so that there is idle time."""
    quiet = tuple(msgspec.structs.replace(topic, records_per_s=0) for topic in scenario.topics)
    changed = msgspec.structs.replace(
        scenario, topics=quiet, duration_ms=scenario.duration_ms + 600_000, traces_work=False
    )
    try:
        return with_settings(changed, NO_COMMITS)
    except ConfigError:
        return changed  # a scenario of Connect alone


@st.composite
def idle_worlds(draw: st.DrawFn) -> Scenario:
    """One or two groups of idle consumers, in and out of step, and what happens to them."""
    step_ms = draw(st.sampled_from((0, 37, 100, 333, 1_000)))
    count = draw(st.integers(1, 6))
    members = tuple(
        ConsumerSpec(
            name=f"consumer-{number}",
            start_ms=number * step_ms,
            instance_id=f"instance-{number}" if draw(st.booleans()) else None,
            processing_ms=draw(st.sampled_from((200, 1, 500, 777, 2_500))),
        )
        for number in range(count)
    )
    own = {
        **NO_COMMITS,
        "heartbeat.interval.ms": draw(st.sampled_from(("3000", "1000", "3500", "3300"))),
        "metadata.max.age.ms": draw(st.sampled_from(("2147483647", "300000", "33333"))),
        "retry.backoff.ms": draw(st.sampled_from(("100", "250"))),
    }
    one = ConsumerGroupSpec(
        group_id="app",
        topics=("orders",),
        members=members,
        assignors=(draw(st.sampled_from(("range", "cooperative-sticky"))),),
        settings=own,
    )
    other = ConsumerGroupSpec(
        group_id="audit",
        topics=("orders",),
        members=tuple(ConsumerSpec(name=f"audit-{number}") for number in range(2)),
        settings={**NO_COMMITS, "heartbeat.interval.ms": "4000"},
    )
    world = scenario_of(
        name="idle",
        duration_ms=LASTS_MS,
        topics=(TopicSpec(name="orders", partitions=8, records_per_s=0),),
        groups=(one, other) if draw(st.booleans()) else (one,),
        profile=draw(st.sampled_from(("4.4", "2.8", "0.10.2"))),
        network=NetworkSpec(latency=ConstantLatency(us=draw(st.sampled_from((500, 333, 5_000))))),
    )
    faulty = draw(faults_on(world))
    times = draw(st.integers(1, 20))
    later = tuple(
        msgspec.structs.replace(each, at_ms=each.at_ms * times) for each in faulty.happenings
    )
    try:
        return msgspec.structs.replace(faulty, happenings=later)
    except ScenarioError:
        return faulty  # what happens does not fit together at those times


@settings(max_examples=5, derandomize=True)
@given(world=idle_worlds(), seed=st.integers(0, 2**16))
def test_a_few_drawn_worlds_have_the_same_trace_without_idle_time(
    world: Scenario, seed: int
) -> None:
    """A small draw of the property below, for every run of the suite."""
    check(world, seed)


@pytest.mark.property
@settings(max_examples=examples(often=40, nightly=2_000))
@given(world=idle_worlds(), seed=st.integers(0, 2**16))
def test_drawn_worlds_have_the_same_trace_without_idle_time(world: Scenario, seed: int) -> None:
    """Whatever happens in between; heartbeats are counted, not lost."""
    check(world, seed)


LONG = ("keda-thrash", "pattern-storm", "streams-deploy", "streams-lost-disk")
"""Nobody idles in a storm; keda-thrash-cured and streams-scale-out stand for the others."""
CONSUMERS = [
    name
    for name, scenario in all_scenarios().items()
    if name not in LONG and all(isinstance(group, ConsumerGroupSpec) for group in scenario.groups)
]


@pytest.mark.parametrize("name", CONSUMERS)
def test_scenarios_of_the_catalogue_made_idle(name: str) -> None:
    """The same events, each at its microsecond."""
    check(idle(scenario_named(name)))


@pytest.mark.nightly
@pytest.mark.parametrize("name", list(all_scenarios()))
def test_every_scenario_of_the_catalogue(name: str) -> None:
    """As it is, and made idle."""
    check(scenario_named(name))
    check(idle(scenario_named(name)))


def steady(**fields: object) -> Scenario:
    """Three idle consumers for half an hour."""
    group = ConsumerGroupSpec(
        group_id="app",
        topics=("orders",),
        members=tuple(ConsumerSpec(name=f"consumer-{number}") for number in range(3)),
        settings=NO_COMMITS,
    )
    plain = scenario_of(
        name="steady",
        duration_ms=LASTS_MS,
        topics=(TopicSpec(name="orders", partitions=3, records_per_s=0),),
        groups=(group,),
    )
    return msgspec.structs.replace(plain, **fields)


def test_idle_time_costs_nothing() -> None:
    """Half an hour is one stretch; few calls of the clock are left."""
    recorder = MemoryRecorder()
    result = run_scenario(steady(), recorder=recorder, elide=True)
    assert result.elided is not None
    assert result.elided.stretches == 1
    assert result.elided.us > 0.98 * LASTS_MS * 1_000
    assert result.elided.heartbeats > 0.98 * 3 * LASTS_MS / 3_000
    longer = run_scenario(steady(duration_ms=50 * LASTS_MS), recorder=recorder, elide=True)
    assert longer.scheduled_count < 3 * result.scheduled_count


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (
            {"topics": (TopicSpec(name="orders", partitions=3, records_per_s=10),)},
            "a consumer processes, commits, rebalances or is disturbed",
        ),
        (
            {"network": NetworkSpec(latency=UniformLatency(100, 900))},
            "latencies or durations are drawn",
        ),
        (
            {"topics": (TopicSpec(name="orders", partitions=3, load=ConstantLoad(total_per_s=1)),)},
            "a consumer processes, commits, rebalances or is disturbed",
        ),
        ({"profile": "0.10.2"}, "a group rebalances, or a write waits"),
    ],
)
def test_a_world_that_cannot_be_skipped_exactly_is_not(
    fields: dict[str, object], reason: str
) -> None:
    """It is lived through, and the run says why."""
    elided = check(steady(**fields))
    assert elided == Elided(0, 0, 0, reason)


@st.composite
def loaded_worlds(draw: st.DrawFn) -> Scenario:
    """Idle worlds whose topic has a load with quiet times, and mostly a trace of the work."""
    world = draw(idle_worlds())
    every_ms = draw(st.sampled_from((60_000, 333_333)))
    bursts = BurstLoad(
        base_total_per_s=0,
        burst_total_per_s=draw(st.sampled_from((1, 40, 3_000))),
        for_ms=draw(st.integers(1, 5_000)),
        every_ms=every_ms,
        first_at_ms=draw(st.integers(0, every_ms)),
    )
    recorded = RecordedLoad(points=((draw(st.integers(0, 900)), 100), (1_000, 3)))
    load = draw(st.sampled_from((bursts, recorded)))
    keys = draw(st.sampled_from((UNSET, ZipfKeys())))
    return msgspec.structs.replace(
        world,
        topics=tuple(
            msgspec.structs.replace(each, records_per_s=100, load=load, keys=keys)
            for each in world.topics
        ),
        traces_work=draw(st.booleans()),
        objective_lag_ms=draw(st.sampled_from((UNSET, 100))),
    )


@settings(max_examples=5, derandomize=True)
@given(world=loaded_worlds(), seed=st.integers(0, 2**16))
def test_a_few_loads_have_the_same_trace_without_idle_time(world: Scenario, seed: int) -> None:
    """A small draw of the property below, for every run of the suite."""
    check(world, seed)


@pytest.mark.property
@settings(max_examples=examples(often=25, nightly=2_000))
@given(world=loaded_worlds(), seed=st.integers(0, 2**16))
def test_loads_have_the_same_trace_without_idle_time(world: Scenario, seed: int) -> None:
    """Time is skipped up to the next record, and lag comes out as if it had been lived through."""
    check(world, seed)


def test_quiet_between_two_bursts_is_skipped_with_its_work_traced() -> None:
    """Three bursts of a second in twenty minutes leave nearly all of the time idle."""
    load = BurstLoad(
        base_total_per_s=0, burst_total_per_s=50, for_ms=1_000, every_ms=400_000, first_at_ms=60_000
    )
    elided = check(steady(topics=(TopicSpec(name="orders", partitions=3, load=load),)))
    assert elided.stretches >= 4
    assert elided.us > 0.9 * LASTS_MS * 1_000


@pytest.mark.parametrize(
    "topic",
    [
        TopicSpec(name="orders", partitions=3, load=ConstantLoad(total_per_s=1)),
        TopicSpec(name="orders", partitions=3, poison=PoisonRecords(ms=1, every=9)),
    ],
)
def test_calm_time_of_a_load_or_of_poison_is_not_left_out(topic: TopicSpec) -> None:
    """Their records come at instants of the scenario, which stopped clocks would miss."""
    variety = Variety(calm_ms=60_000, pause_ms=())
    world = deployed(every_ms=1_200_000, deploys=1, variety=variety, topics=(topic,))
    elided = lived(world)[1]
    assert elided is not None
    assert (elided.us, elided.reason) == (
        0,
        "a topic's load or poison goes by the clock, which would stand still",
    )


def test_a_trace_without_its_heartbeats_is_not_replayed() -> None:
    """Sessions would run out that did not; the message says what to do."""
    recorder = MemoryRecorder()
    run_scenario(steady(), recorder=recorder, elide=True)
    with pytest.raises(DataError, match="run its scenario again without --elide"):
        Recording(recorder.events, None)


def test_calm_time_is_not_left_out_while_access_is_denied() -> None:
    """A denial of an hour ends after an hour, however calm the group is meanwhile."""
    denied = scenarios.DenyAccess(
        at_ms=3_600_000, topic="orders", operation="DESCRIBE", for_ms=3_600_000
    )
    world = deployed(
        every_ms=6 * 3_600_000,
        deploys=1,
        variety=Variety(calm_ms=60_000, pause_ms=()),
        happenings=(denied,),
    )
    events, elided = lived(world)

    told = [each for each in events if each.reason_text in ("DenyAccess", "AccessAllowed")]
    assert elided is not None
    assert elided.us > 0
    assert told[1].ts_us - told[0].ts_us == 3_600_000_000
