"""Fault rules of a scenario, and topics, configs and rights that an operator changes."""

from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.faults.faults import (
    Action,
    Close,
    Delay,
    Drop,
    Fail,
    Fault,
    Lose,
    Match,
    MoveCoordinator,
    Phase,
)
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.heartbeat import HeartbeatRequest
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.runner import Simulation
from coordinator_sim.sim.scenario import scenario_from_json, scenario_to_json
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder, NullRecorder
from coordinator_sim_pytest.properties import simulated
from tests.simulated import events_of, scenario_of
from tests.unit.broker.frames_client import FramesClient

ANSWERED: Final = Phase.AFTER
TOPICS: Final = (
    scenarios.TopicSpec(name="orders", partitions=4),
    scenarios.TopicSpec(name="payments", partitions=2),
)
NEW: Final = {"group.protocol": "consumer"}


def world_of(
    *happenings: scenarios.Happening, settings: dict[str, str] | None = None
) -> scenarios.Scenario:
    """A virtual minute of two readers of both topics."""
    group = scenarios.ConsumerGroupSpec(
        group_id="readers",
        topics=("orders", "payments"),
        assignors=("range",),
        settings=settings or {"session.timeout.ms": "10000"},
        members=(scenarios.ConsumerSpec(name="a"), scenarios.ConsumerSpec(name="b")),
    )
    return scenario_of(
        name="refusals",
        duration_ms=60_000,
        topics=TOPICS,
        groups=(group,),
        happenings=happenings,
        profile="4.4",
    )


def rule(
    action: Action,
    api: str,
    *,
    at_ms: int = 20_000,
    phase: Phase = Phase.BEFORE,
    times: int | None = None,
    for_ms: int | None = None,
    **match: int | str,
) -> scenarios.FaultRule:
    """A rule about an API, of member `a` if nothing else is given."""
    fault = Fault(
        action=action,
        match=Match(api=api, **(match or {"client_id": "a"})),
        phase=phase,
        times=times,
        for_ms=for_ms,
    )
    return scenarios.FaultRule(at_ms=at_ms, rule=fault)


def acted(events: list[TraceEvent]) -> list[int]:
    """When rules acted, in microseconds."""
    return [e.ts_us for e in events if e.reason_text == "FaultActed"]


def ends(events: list[TraceEvent]) -> list[tuple[str | None, str | None]]:
    """Exceptions that ended an application, with the member."""
    lives = [e for e in events if e.event is Event.LIFECYCLE]
    return [(e.client_id, e.reason_text) for e in lives if "raised" in (e.reason_text or "")]


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    counted=st.sampled_from((Match(), Match(nth=3), Match(every=2), Match(every=3))),
    times=st.sampled_from((None, 1, 2)),
    for_ms=st.sampled_from((None, 7_000, 15_000)),
)
def test_rule_acts_on_the_same_heartbeats_in_a_scenario_and_on_a_served_cluster(
    counted: Match, times: int | None, for_ms: int | None
) -> None:
    """Both ask the same rules: of heartbeats at the same instants, the same ones are met."""
    happening = rule(
        Delay(0),
        "Heartbeat",
        phase=ANSWERED,
        times=times,
        for_ms=for_ms,
        client_id="a",
        **{name: n for name in ("nth", "every") if (n := getattr(counted, name))},
    )
    events = events_of(world_of(happening))
    beats = [e for e in events if e.event is Event.HEARTBEAT and (e.member_id or "")[:2] == "a-"]
    beaten_us = [e.ts_us for e in beats if e.ts_us >= 20_000_000]
    cluster = Cluster(ClusterSettings(), endpoint=lambda *_: Endpoint("broker", 9092))
    hits: list[int] = []
    cluster.faults.heard = lambda *_: hits.append(cluster.latest.wall_ms)
    served = Fault(action=Delay(0), match=counted, phase=ANSWERED, times=times, for_ms=for_ms)
    cluster.add_fault(served, Instants(20_000, 20_000))
    client = FramesClient(cluster)
    for at_us in beaten_us:
        at_ms = at_us // 1_000
        cluster.expire(Instants(at_ms, at_ms))
        client.send(HeartbeatRequest(group_id="readers"), 4, at_ms)
        cluster.expire(Instants(at_ms, at_ms))
    in_time = [
        at_us // 1_000 for at_us in beaten_us if at_us < (20_000 + (for_ms or 40_000)) * 1_000
    ]
    meant = [
        at_ms
        for number, at_ms in enumerate(in_time, start=1)
        if counted.nth in (None, number) and number % (counted.every or 1) == 0
    ]
    assert len(beaten_us) > 10
    assert hits == [at_us // 1_000 for at_us in acted(events)] == meant[:times]


def test_refused_join_is_tried_again() -> None:
    """Twice the coordinator says that it loads; the third JoinGroup is taken."""
    loading = rule(Fail("COORDINATOR_LOAD_IN_PROGRESS"), "JoinGroup", at_ms=0, times=2)
    events = events_of(world_of(loading))

    asked = [e.ts_us for e in events if e.event is Event.JOIN_REQ and e.client_id == "a"]
    assert len(acted(events)) == 2
    assert max(acted(events)) < min(asked)
    assert [e for e in events if e.event is Event.GROUP_STABLE]


@pytest.mark.parametrize(("phase", "is_stored"), [(Phase.BEFORE, False), (ANSWERED, True)])
def test_commit_refused_after_it_was_taken_is_stored(phase: Phase, is_stored: bool) -> None:
    """The member is told of an error; in the log its offset is, or is not."""
    refusal = rule(Fail("COORDINATOR_LOAD_IN_PROGRESS"), "OffsetCommit", phase=phase, for_ms=12_000)
    events = events_of(world_of(refusal))

    commits = [e for e in events if e.event is Event.OFFSET_COMMIT and not e.error_code]
    stored = [
        e for e in commits if (e.member_id or "")[:2] == "a-" and 20_500_000 < e.ts_us < 32_000_000
    ]
    assert acted(events)
    assert bool(stored) is is_stored


@pytest.mark.parametrize("phase", list(Phase))
def test_hanging_request_ends_with_its_connection(phase: Phase) -> None:
    """Nothing behind it is answered; the member comes back on another connection."""
    hang = rule(Drop(), "Heartbeat", times=1, phase=phase)
    short = {"session.timeout.ms": "20000", "request.timeout.ms": "8000"}
    events = events_of(world_of(hang, settings=short))

    beats = [
        e.ts_us for e in events if e.event is Event.HEARTBEAT and (e.member_id or "")[0] == "a"
    ]
    (since,) = acted(events)
    assert min(at for at in beats if at > since) >= since + 8_000_000
    assert [e.event for e in events if e.event is Event.MEMBER_FAILED] == []


def test_role_of_a_rule_may_be_the_coordinators() -> None:
    """Of the brokers that answer FindCoordinator and joins, the rule is about one alone."""
    to_others = events_of(world_of(rule(Close(), "Heartbeat", role="coordinator", times=3)))
    assert len(acted(to_others)) == 3
    found = rule(Delay(5), "FindCoordinator", role="coordinator", at_ms=0)
    all_found = rule(Delay(5), "FindCoordinator", at_ms=0, group="readers")
    assert len(acted(events_of(world_of(found)))) < len(acted(events_of(world_of(all_found))))


def test_coordinator_moves_between_append_and_answer() -> None:
    """The commit is in the log, and its sender is told NOT_COORDINATOR."""
    events = events_of(world_of(rule(MoveCoordinator(), "OffsetCommit", times=1)))

    refused = [e.error_code for e in events if e.event is Event.OFFSET_COMMIT and e.error_code]
    assert set(refused) == {ErrorCode.NOT_COORDINATOR}
    assert [e for e in events if e.event is Event.GROUP_LOADED]


def test_lost_answer_is_the_rule_of_drop_response() -> None:
    """A happening about responses and the rule with its action give the same run."""
    old = scenarios.DropResponse(at_ms=20_000, member="a", api="HEARTBEAT", count=2)
    new = rule(Lose(), "Heartbeat", phase=ANSWERED, times=2)
    runs = [events_of(world_of(one)) for one in (old, new)]
    without_faults = [[e for e in run if e.event is not Event.FAULT] for run in runs]
    assert [e.ts_us for e in without_faults[0]] == [e.ts_us for e in without_faults[1]]


def test_rule_with_a_probability_is_drawn_by_seed() -> None:
    """The same seed gives the same hits, and another one others."""
    likely = world_of(rule(Delay(1), "Heartbeat", client_id="*", probability=0.5, phase=ANSWERED))
    one, again, other = (acted(events_of(likely, seed)) for seed in (1, 1, 2))
    assert one == again
    assert one != other
    assert 5 < len(one) < 25


def test_consumer_gives_up_a_topic_that_is_deleted() -> None:
    """By KIP-848 the coordinator takes it away; the rest is read on, and read again if made."""
    deleted = scenarios.DeleteTopic(at_ms=20_000, topic="payments")
    again = scenarios.CreateTopic(at_ms=40_000, topic="payments", partitions=3)
    events = events_of(world_of(deleted, again, settings=NEW))

    taken = [e for e in events if e.event in (Event.REVOKED, Event.LOST)]
    named = {name for e in taken for name in e.attrs["resources"].split() if e.ts_us > 20_000_000}
    assert {"p:payments-0", "p:payments-1"} <= named
    given_back = [e for e in events if e.event is Event.ASSIGNED and e.ts_us > 40_000_000]
    assert any("payments-2" in e.attrs["resources"] for e in given_back)
    assert ends(events) == []


def test_leader_rejoins_when_a_topic_of_its_group_is_deleted() -> None:
    """Without commits it joins at once; its fetches bring the metadata, long before their age."""
    settings = {"enable.auto.commit": "false"}
    deleted = scenarios.DeleteTopic(at_ms=20_000, topic="payments")
    events = events_of(world_of(deleted, settings=settings))

    (began,) = (e.ts_us for e in events if e.event is Event.PREPARE_REBALANCE if e.ts_us > 10**7)
    assert 20_000_000 < began < 21_500_000
    (stable,) = (e for e in events if e.event is Event.GROUP_STABLE and e.ts_us > began)
    assert stable.members == 2


@pytest.mark.parametrize("own", [NEW, {"max.poll.interval.ms": "10000"}])
def test_topic_that_is_deleted_and_made_again_begins_anew(own: dict[str, str]) -> None:
    """Its offsets are gone, which is no lost commit; nobody lags behind a log that is not there."""
    deleted = scenarios.DeleteTopic(at_ms=20_000, topic="payments")
    again = scenarios.CreateTopic(at_ms=40_000, topic="payments", partitions=1)
    scenario = msgspec.structs.replace(world_of(deleted, again, settings=own), traces_work=True)
    with simulated(scenario) as run:
        fetched = [e for e in run.events if e.event is Event.OFFSET_FETCH and e.ts_us > 40_000_000]
        entries = [entry for e in fetched for entry in e.offsets if entry.topic == "payments"]
        worked = [e for e in run.events if e.event is Event.RECORDS_PROCESSED]
    assert entries[0].offset == -1
    assert {entry.offset for entry in entries} <= {-1, 0}
    assert min(int(e.attrs["lag"]) for e in worked) >= 0


def test_connect_writes_again_when_its_topic_is_back() -> None:
    """A source keeps its records while its topic is gone; a rule may name a sink's consumer."""
    group = scenarios.ConnectGroupSpec(
        group_id="connect",
        connectors={"in": 1, "out": 1},
        work={
            "in": scenarios.SourceWork(topic="orders", partitions=1, records_per_s=10),
            "out": scenarios.SinkWork(topics=("payments",)),
        },
        workers=(scenarios.WorkerSpec(name="w"),),
    )
    late = rule(Delay(5), "Heartbeat", client_id="connector-consumer-out-0", group="connect-out")
    deleted = scenarios.DeleteTopic(at_ms=20_000, topic="orders")
    again = scenarios.CreateTopic(at_ms=30_000, topic="orders", partitions=2)
    world = msgspec.structs.replace(world_of(), groups=(group,), traces_work=True)
    events = events_of(msgspec.structs.replace(world, happenings=(late, deleted, again)))
    assert len(acted(events)) > 5
    done = [e for e in events if e.event is Event.RECORDS_PROCESSED and e.attrs["task"] == "t:in-0"]
    assert max(e.position or 0 for e in done) > 400
    assert ends(events) == []


def test_offsets_of_a_deleted_topic_are_deleted() -> None:
    """The coordinator writes tombstones for them alone."""
    events = events_of(
        world_of(scenarios.DeleteTopic(at_ms=20_000, topic="payments"), settings=NEW)
    )
    commits = [e for e in events if e.event is Event.OFFSET_COMMIT and e.ts_us > 30_000_000]
    assert {entry.topic for e in commits for entry in e.offsets or () if not e.error_code} == {
        "orders"
    }


@pytest.mark.parametrize(
    ("settings", "exception"),
    [(None, None), (NEW, "poll raised GroupAuthorizationException")],
)
def test_denied_group_ends_the_new_consumer_at_its_heartbeat(
    settings: dict[str, str] | None, exception: str | None
) -> None:
    """Java's classic heartbeat thread only tries again; the new consumer raises."""
    denied = scenarios.DenyAccess(
        at_ms=20_000, for_ms=6_000, group_id="readers", operation="READ", member="a"
    )
    events = events_of(world_of(denied, settings=settings))
    assert ends(events) == ([] if exception is None else [("a", exception)])


def test_access_that_is_given_back_lets_a_member_join() -> None:
    """Who joins while READ is denied fails; who comes back later is a member."""
    denied = scenarios.DenyAccess(
        at_ms=20_000, for_ms=10_000, group_id="readers", operation="READ", member="a"
    )
    restarts = [
        scenarios.RestartMember(at_ms=21_000, member="a", down_ms=100),
        scenarios.StartMember(at_ms=35_000, member="a"),
    ]
    events = events_of(world_of(denied, *restarts))
    assert ends(events) == [("a", "poll raised GroupAuthorizationException")]
    joined = [e for e in events if e.event is Event.MEMBER_ADDED and e.client_id == "a"]
    assert [e.ts_us > 35_000_000 for e in joined] == [False, True]


def test_group_config_reaches_members_and_a_wrong_one_is_refused() -> None:
    """The heartbeat interval of KIP-848 is the group's; the broker's own check refuses nonsense."""
    slow = scenarios.ChangeConfig(
        at_ms=20_000, group_id="readers", configs={"consumer.heartbeat.interval.ms": "9000"}
    )
    wrong = scenarios.ChangeConfig(at_ms=21_000, topic="orders", configs={"retention.ms": "soon"})
    events = events_of(world_of(slow, wrong, settings=NEW))
    beats = [e.ts_us for e in events if e.event is Event.HEARTBEAT]
    before, after = (
        sum(low < at < low + 15_000_000 for at in beats) for low in (5_000_000, 40_000_000)
    )
    assert before > after > 0
    (refused,) = (e for e in events if e.reason_text == "AdminRefused")
    assert refused.attrs["error"] == "INVALID_CONFIG"


def test_new_happenings_survive_a_file() -> None:
    """A scenario with each of them is written and read as the same scenario."""
    scenario = world_of(
        rule(Fail("NOT_COORDINATOR"), "Heartbeat", every=2, for_ms=500, client_id="a"),
        scenarios.DeleteTopic(at_ms=1, topic="orders"),
        scenarios.ChangeConfig(at_ms=1, broker="", configs={"compression.type": None}),
        scenarios.DenyAccess(at_ms=2, for_ms=3, topic="orders", operation="DESCRIBE"),
    )
    assert scenario_from_json(scenario_to_json(scenario)) == scenario


def test_topic_is_known_again_once_it_is_made_again() -> None:
    """Consumers do not ask for its metadata at each poll for ever."""
    world = world_of(
        scenarios.DeleteTopic(at_ms=20_000, topic="payments"),
        scenarios.CreateTopic(at_ms=30_000, topic="payments", partitions=2),
    )
    simulation = Simulation(world, recorder=NullRecorder())
    simulation.run_until(25_000_000)
    gone = dict(simulation.world.topic_logs.deleted)
    simulation.run_until(35_000_000)

    assert gone == {"payments": None}
    assert not simulation.world.topic_logs.deleted


def test_deletion_that_no_broker_takes_changes_nothing() -> None:
    """All brokers are down: the refusal is in the trace, and the topic has its records."""
    down = [scenarios.CrashBroker(at_ms=20_000, broker=each, for_ms=20_000) for each in (1, 2, 3)]
    deleted = scenarios.DeleteTopic(at_ms=25_000, topic="payments")
    recorder = MemoryRecorder()
    simulation = Simulation(world_of(*down, deleted), recorder=recorder)
    simulation.run_until(26_000_000)

    refused = [each for each in recorder.events if each.reason_text == "AdminRefused"]
    assert [each.attrs["error"] for each in refused] == ["BROKER_NOT_AVAILABLE"]
    assert not simulation.world.topic_logs.deleted
