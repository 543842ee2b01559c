"""A run without its idle time has the trace of the run with it, heartbeats folded."""

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.errors import ConfigError, DataError, ScenarioError
from coordinator_sim.replay.recording import Recording
from coordinator_sim.sim.elision import Elided
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    ConstantLatency,
    ConsumerGroupSpec,
    ConsumerSpec,
    NetworkSpec,
    Scenario,
    TopicSpec,
    UniformLatency,
)
from coordinator_sim.sim.scenario.scenario import with_settings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named
from coordinator_sim_scenarios.strategies import faults_on
from tests.simulated import scenario_of

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
@settings(max_examples=100)
@given(world=idle_worlds(), seed=st.integers(0, 2**16))
def test_drawn_worlds_have_the_same_trace_without_idle_time(world: Scenario, seed: int) -> None:
    """Whatever happens in between; heartbeats are counted, not lost."""
    check(world, seed)


CONSUMERS = [
    name
    for name, scenario in all_scenarios().items()
    if name != "pattern-storm"  # nobody idles there, and it takes long
    and all(isinstance(group, ConsumerGroupSpec) for group in scenario.groups)
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
    assert longer.fired_count < 3 * result.fired_count


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
        ({"traces_work": True}, "the trace tells which records are processed"),
        ({"profile": "0.10.2"}, "a group rebalances, or a write waits"),
    ],
)
def test_a_world_that_cannot_be_skipped_exactly_is_not(
    fields: dict[str, object], reason: str
) -> None:
    """It is lived through, and the run says why."""
    elided = check(steady(**fields))
    assert elided == Elided(0, 0, 0, reason)


def test_a_trace_without_its_heartbeats_is_not_replayed() -> None:
    """Sessions would run out that did not; the message says what to do."""
    recorder = MemoryRecorder()
    run_scenario(steady(), recorder=recorder, elide=True)
    with pytest.raises(DataError, match="run its scenario again without --elide"):
        Recording(recorder.events, None)
