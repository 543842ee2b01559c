"""Stories: simpy processes that act on a simulated world."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
import simpy
from simpy.events import ProcessGenerator

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    Choice,
    ConsumerGroupSpec,
    ConsumerSpec,
    CrashBroker,
    DenyAccess,
    PauseBroker,
    PauseMember,
    Scenario,
    StopMember,
    TopicSpec,
)
from coordinator_sim.sim.stories import Story, StoryWorld
from coordinator_sim.trace.digest import digest_of
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder, NullRecorder

_STUBS = """
import sys, types
simpy, core, events = (types.ModuleType(name) for name in ("simpy", "simpy.core", "simpy.events"))
class Environment:
    def __init__(self, initial_time=0):
        pass
simpy.Environment = simpy.Timeout = simpy.Resource = Environment
core.EmptySchedule = type("EmptySchedule", (Exception,), {})
events.NORMAL, events.URGENT, events.EventPriority = 1, 0, int
events.Event = events.Timeout = events.Process = type("Event", (), {})
events.ProcessGenerator = object
sys.modules.update({"simpy": simpy, "simpy.core": core, "simpy.events": events})
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.trace.recorder import NullRecorder
from coordinator_sim_scenarios.catalog import scenario_named
run_scenario(scenario_named("rolling-bounce"), recorder=NullRecorder())
"""


def group_of(members: int, protocol: str = "classic") -> Scenario:
    """A minute of one group."""
    names = (f"consumer-{number}" for number in range(1, members + 1))
    return Scenario(
        name="told",
        title="A group",
        story="What happens is told by a story.",
        duration_ms=60_000,
        topics=(TopicSpec(name="orders", partitions=4),),
        groups=(
            ConsumerGroupSpec(
                group_id="orders-app",
                topics=("orders",),
                members=tuple(ConsumerSpec(name=name) for name in names),
                settings={"group.protocol": protocol},
            ),
        ),
    )


def told(
    story: Story, scenario: Scenario | None = None, tape: list[Choice] | None = None
) -> tuple[list[TraceEvent], list[Choice]]:
    """The events of a run with a story, and its tape."""
    recorder = MemoryRecorder()
    result = run_scenario(scenario or group_of(2), recorder=recorder, story=story, tape=tape or [])
    return recorder.events, list(result.tape)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_story_waits_until_a_group_is_in_a_state(protocol: str) -> None:
    """The next restart comes when the group is stable again, with either protocol."""
    at_ms: list[tuple[int, str]] = []

    def story(world: StoryWorld) -> ProcessGenerator:
        yield world.until("orders-app", "Stable")
        for member in ("consumer-1", "consumer-2"):
            at_ms.append((world.now_ms, world.state_of("orders-app")))
            world.crash(member)
            world.start(member)
            yield world.timeout("100ms")
            yield world.until("orders-app", "Stable")

    events, _ = told(story, group_of(2, protocol))

    stable_us = [each.ts_us for each in events if each.event is Event.GROUP_STABLE]
    assert [state for _, state in at_ms] == ["Stable", "Stable"]
    assert at_ms[1][0] > at_ms[0][0]
    if protocol == "classic":
        assert [at for at, _ in at_ms] == [each // 1000 for each in stable_us[:2]]


def test_whichever_of_two_comes_first() -> None:
    """A group that nobody leads to PreparingRebalance: the timeout comes first."""
    seen: list[tuple[int, bool]] = []

    def story(world: StoryWorld) -> ProcessGenerator:
        yield world.timeout("20s")
        waited = world.until("orders-app", "PreparingRebalance")
        yield waited | world.timeout("1s500ms")
        seen.append((world.now_ms, waited.triggered))
        world.stop("consumer-1")
        yield world.until("orders-app", "PreparingRebalance") & world.timeout("5s")
        seen.append((world.now_ms, waited.triggered))

    told(story)

    assert seen == [(21_500, False), (26_500, True)]


def test_stories_share_resources_and_interrupt_each_other() -> None:
    """Two deployers with one permit go one after the other, until a third one stops the second."""
    done: list[str] = []

    def deploy(world: StoryWorld, member: str, permit: simpy.Resource) -> ProcessGenerator:
        with permit.request() as granted:
            try:
                yield granted
                yield world.timeout("10s")
                world.stop(member)
                done.append(f"{member} {world.now_ms}")
            except simpy.Interrupt as interrupt:
                done.append(f"{member} {interrupt.cause} {world.now_ms}")

    def story(world: StoryWorld) -> ProcessGenerator:
        permit = simpy.Resource(world.environment)
        world.process(deploy(world, "consumer-1", permit))
        second = world.process(deploy(world, "consumer-2", permit))
        yield world.timeout("15s")
        second.interrupt("called off")

    told(story)

    assert done == ["consumer-1 10000", "consumer-2 called off 15000"]


def test_a_story_has_its_seed_its_tape_and_its_digest() -> None:
    """What a story draws is on the tape, and a tape that is repeated gives the same events."""

    def story(world: StoryWorld) -> ProcessGenerator:
        yield world.timeout("20s")
        number = world.choose("victim", 3)
        world.happen(PauseMember, member=f"consumer-{number + 1}", for_ms=2_000)

    first, tape = told(story, group_of(3))
    again, _ = told(story, group_of(3), tape)
    chosen = next(each for each in tape if each.site == "story")
    edited = [msgspec.structs.replace(chosen, chosen=(chosen.chosen + 1) % 3)]
    other, _ = told(story, group_of(3), edited)

    assert first == again
    assert digest_of(first) != digest_of(other)


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
    [
        pytest.param(StopMember, {"member": "x"}, "member 'x'", id="an unknown member"),
        pytest.param(PauseBroker, {"broker": 9, "for_ms": 1}, "broker of PauseBroker", id="bound"),
        pytest.param(PauseBroker, {"broker": 1}, "for_ms", id="a field that is missing"),
        pytest.param(StopMember, {"member": "consumer-1", "down_ms": 1}, "down_ms", id="no field"),
    ],
)
def test_what_cannot_happen_is_refused(
    kind: type[StopMember | PauseBroker], fields: dict[str, object], message: str
) -> None:
    """A story's happening is checked as one of a scenario's file."""

    def story(world: StoryWorld) -> ProcessGenerator:
        yield world.timeout("1s")
        world.happen(kind, **fields)

    with pytest.raises(ScenarioError, match=message):
        run_scenario(group_of(2), recorder=NullRecorder(), story=story)


def test_an_unknown_state_or_length_is_refused() -> None:
    """Both are named, with what is right."""

    def states(world: StoryWorld) -> ProcessGenerator:
        yield world.until("orders-app", "stable")

    def lengths(world: StoryWorld) -> ProcessGenerator:
        yield world.timeout("30 s")

    with pytest.raises(ScenarioError, match="'stable': must be one of Empty"):
        run_scenario(group_of(1), recorder=NullRecorder(), story=states)
    with pytest.raises(ConfigError, match="timeout '30 s'"):
        run_scenario(group_of(1), recorder=NullRecorder(), story=lengths)


def test_no_run_without_simpy() -> None:
    """Empty classes in place of simpy's end a run: clock, queue and step are simpy's."""
    repository = Path(__file__).parents[3]
    run = subprocess.run(
        [sys.executable, "-c", _STUBS], cwd=repository, capture_output=True, text=True, check=False
    )

    assert run.returncode != 0
    assert "AttributeError: " in run.stderr


def test_a_group_whose_only_broker_dies_is_dead() -> None:
    """The story hears of it at once, though nobody is left who tells of the group."""
    seen: list[int] = []

    def story(world: StoryWorld) -> ProcessGenerator:
        yield world.until("orders-app", "Stable")
        yield world.until("orders-app", "Dead") | world.timeout("40s")
        seen.append(world.now_ms)

    crash = CrashBroker(at_ms=20_000, broker=1, for_ms=20_000)
    told(story, msgspec.structs.replace(group_of(2), brokers=1, happenings=(crash,)))

    assert seen == [20_000]


def test_access_is_not_denied_without_an_authorizer() -> None:
    """A scenario that never denies has brokers without one; the line says what to do."""

    def story(world: StoryWorld) -> ProcessGenerator:
        yield world.timeout("1s")
        world.happen(DenyAccess, group_id="orders-app", operation="READ", for_ms=1_000)

    with pytest.raises(ScenarioError, match="DenyAccess of a story: the brokers have no authorize"):
        run_scenario(group_of(1), recorder=NullRecorder(), story=story)
