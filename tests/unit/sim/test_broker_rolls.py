"""A rolling restart of all brokers: its order, what it waits for, and what members notice."""

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario import (
    ChangeConfig,
    ConsumerGroupSpec,
    ConsumerSpec,
    CrashBroker,
    Happening,
    PauseBroker,
    RollBrokers,
    Scenario,
    TopicSpec,
)
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim_conformance.checkers import check_all
from coordinator_sim_conformance.scenario_timing import circumstances_of
from tests.simulated import events_of, scenario_of

ROLL: Final = RollBrokers(at_ms=30_000)


def world_of(*happenings: Happening, duration_ms: int = 240_000, brokers: int = 3) -> Scenario:
    """Two consumers of a topic on three brokers."""
    members = tuple(ConsumerSpec(name=f"consumer-{each}") for each in range(2))
    return scenario_of(
        name="roll",
        duration_ms=duration_ms,
        brokers=brokers,
        topics=(TopicSpec(name="orders", partitions=6),),
        groups=(ConsumerGroupSpec(group_id="app", topics=("orders",), members=members),),
        happenings=happenings,
    )


def told(events: list[TraceEvent], *kinds: str) -> list[tuple[str, int, int]]:
    """Return what happened to brokers, in whole seconds."""
    return [
        (event.reason_text or "", event.broker_id or 0, event.ts_us // 1_000_000)
        for event in events
        if event.event is Event.FAULT and event.reason_text in kinds
    ]


def test_active_controller_is_restarted_last_and_each_waits_for_the_one_before() -> None:
    """Two seconds of controlled shutdown, twenty without a process, ten until it is Ready."""
    roll = RollBrokers(at_ms=30_000, down_ms=20_000, readiness_ms=10_000, controller=1)
    events = events_of(world_of(roll))
    assert told(events, "RollDeferred", "BrokerStopping", "BrokerRestarted") == [
        ("RollDeferred", 1, 30),
        ("BrokerStopping", 2, 30),
        ("BrokerRestarted", 2, 52),
        ("BrokerStopping", 3, 62),
        ("BrokerRestarted", 3, 84),
        ("BrokerStopping", 1, 94),
        ("BrokerRestarted", 1, 116),
    ]


def test_coordinator_moves_before_its_broker_stops() -> None:
    """Another broker loads the group when SIGTERM comes; no member is lost to the restarts."""
    events = events_of(world_of(ROLL))
    stops = {event.ts_us for event in events if event.reason_text == "BrokerStopping"}
    loads = [event.ts_us for event in events if event.event is Event.GROUP_LOADED]
    assert len(stops) == 3
    assert loads
    assert all(any(0 <= load - stop < 1_000_000 for stop in stops) for load in loads)
    assert not any(event.event is Event.MEMBER_FAILED for event in events)


def test_broker_is_not_restarted_while_a_partition_would_lack_replicas_in_sync() -> None:
    """Broker 3 dies meanwhile: 2 is put off for it, and 3 is next once it is back."""
    two = {"min.insync.replicas": "2"}
    crash = CrashBroker(at_ms=35_000, broker=3, for_ms=60_000)
    change = ChangeConfig(at_ms=1_000, topic="orders", configs=two)
    events = events_of(world_of(change, ROLL, crash))
    deferred = [event for event in events if event.reason_text == "RollDeferred"]
    assert [(event.broker_id, event.attrs) for event in deferred] == [(2, {"reason": "MinIsr"})]
    stops = [broker for _, broker, _ in told(events, "BrokerStopping")]
    assert stops == [1, 3, 2]
    free = events_of(world_of(ROLL, crash))
    assert [broker for _, broker, _ in told(free, "BrokerStopping")] == [1, 2, 3]


def test_unready_brokers_are_first_and_one_that_stays_unready_ends_the_roll() -> None:
    """It waits ten seconds until 3 is Ready, and five minutes for it when it has restarted it."""
    down = [CrashBroker(at_ms=20_000, broker=each, for_ms=15_000) for each in (2, 3)]
    roll = RollBrokers(at_ms=30_000, down_ms=400_000)
    events = events_of(world_of(*down, roll, duration_ms=400_000))
    assert told(events, "BrokerStopping", "RollFailed") == [
        ("BrokerStopping", 3, 45),
        ("RollFailed", 3, 348),
    ]


def test_second_roll_waits_for_the_first() -> None:
    """Strimzi holds a lock of the cluster: each broker is stopped alone, and twice in all."""
    rolls = (RollBrokers(at_ms=at_ms, down_ms=100, readiness_ms=0) for at_ms in (30_000, 31_000))
    steps = told(events_of(world_of(*rolls)), "BrokerStopping", "BrokerRestarted")
    assert [broker for _, broker, _ in steps] == [1, 1, 2, 2, 3, 3] * 2
    assert [kind for kind, _, _ in steps] == ["BrokerStopping", "BrokerRestarted"] * 6


@pytest.mark.parametrize(
    ("at_ms", "for_ms", "fenced_s"), [(31_000, 500, []), (32_000, 5_000, [33])]
)
def test_process_that_dies_in_its_shutdown_is_not_ended_again(
    at_ms: int, for_ms: int, fenced_s: list[int]
) -> None:
    """The next one, which was not told to stop, lives on; the loss is noticed as any other."""
    crash = CrashBroker(at_ms=at_ms, broker=1, for_ms=for_ms)
    events = events_of(world_of(ROLL, crash, duration_ms=60_000))
    seen = [each for each in told(events, "BrokerFenced", "BrokerRestarted") if each[1] == 1]
    fenced = [("BrokerFenced", 1, at_s) for at_s in fenced_s]
    assert seen == [*fenced, ("BrokerRestarted", 1, (at_ms + for_ms) // 1_000)]


def test_partition_without_another_replica_has_no_leader_during_the_shutdown() -> None:
    """The only broker unloads the group at its SIGTERM, and commits nothing until it is back."""
    events = events_of(world_of(ROLL, brokers=1, duration_ms=70_000))
    done = [event.ts_us for event in events if event.event is Event.OFFSET_COMMIT]
    assert any(at_us > 52_050_000 for at_us in done)
    assert not any(30_000_000 < at_us < 52_050_000 for at_us in done)


@settings(max_examples=4)
@given(st.integers(1, 5), st.integers(0, 5), st.integers(1, 8_000), st.integers(0, 5_000))
def test_every_broker_is_restarted_once_and_alone(
    brokers: int, controller: int, down_ms: int, readiness_ms: int
) -> None:
    """Whichever is the controller: it is the last, and the invariants of groups hold."""
    controller = min(controller, brokers)
    roll = RollBrokers(
        at_ms=20_000, down_ms=down_ms, readiness_ms=readiness_ms, controller=controller
    )
    scenario = world_of(roll, brokers=brokers, duration_ms=120_000)
    events = events_of(scenario)
    steps = told(events, "BrokerStopping", "BrokerRestarted")
    order = [broker for kind, broker, _ in steps if kind == "BrokerStopping"]
    assert sorted(order) == list(range(1, brokers + 1))
    assert not controller or order[-1] == controller
    kinds = [kind for kind, _, _ in steps]
    assert kinds == ["BrokerStopping", "BrokerRestarted"] * brokers
    assert not check_all(events, circumstances_of(scenario)).violations


def test_roll_of_no_such_cluster_is_refused() -> None:
    """The message names the value and the bound."""
    with pytest.raises(ScenarioError, match="controller of RollBrokers=4: must be from 0 to 3"):
        world_of(RollBrokers(at_ms=1, controller=4))
    with pytest.raises(ScenarioError, match="down_ms of RollBrokers=0: must be from 1"):
        world_of(RollBrokers(at_ms=1, down_ms=0))


@pytest.mark.parametrize(("for_ms", "ended_s"), [(5_000, 36), (60_000, 60)])
def test_broker_frozen_in_its_shutdown_ends_when_it_goes_on_or_is_killed(
    for_ms: int, ended_s: int
) -> None:
    """SIGKILL comes thirty seconds after SIGTERM; the next process is there 20 s later."""
    frozen = PauseBroker(at_ms=31_000, broker=1, for_ms=for_ms)
    events = events_of(world_of(ROLL, frozen, duration_ms=100_000))
    restarted = [each for each in told(events, "BrokerRestarted") if each[1] == 1]
    assert restarted == [("BrokerRestarted", 1, ended_s + 20)]
    assert told(events, "BrokerStopping")[:2] == [
        ("BrokerStopping", 1, 30),
        ("BrokerStopping", 2, ended_s + 30),
    ]
