"""Happenings that meddle with answers, replication, settings and the config topic."""

from collections.abc import Sequence
from typing import Final

import msgspec
import pytest

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.sim import scenario as scenarios
from coordinator_sim.sim.scenario.world import Client, with_member_settings
from coordinator_sim.trace.events import Event, TraceEvent
from tests.simulated import events_of, scenario_of

ENDS: Final = Event.LIFECYCLE
READERS: Final = scenarios.ConsumerGroupSpec(
    group_id="readers",
    topics=("orders",),
    assignors=("range",),
    settings={"session.timeout.ms": "10000"},
    members=(scenarios.ConsumerSpec(name="a"), scenarios.ConsumerSpec(name="b")),
)
CLUSTER: Final = scenarios.ConnectGroupSpec(
    group_id="connect",
    connectors={"sink": 2},
    workers=(scenarios.WorkerSpec(name="w"), scenarios.WorkerSpec(name="x")),
)


def run(
    group: scenarios.ConsumerGroupSpec | scenarios.ConnectGroupSpec,
    *happenings: scenarios.Happening,
) -> list[TraceEvent]:
    """The events of one virtual minute."""
    scenario = scenario_of(
        name="meddling",
        duration_ms=60_000,
        topics=(scenarios.TopicSpec(name="orders", partitions=4),),
        groups=(group,),
        happenings=happenings,
    )
    return list(events_of(scenario))


def of(events: Sequence[TraceEvent], event: Event, after_ms: int = 0) -> list[TraceEvent]:
    """The events of one kind from an instant on."""
    return [e for e in events if e.event is event and e.ts_us >= after_ms * 1_000]


def test_late_answer_delays_what_the_member_does_next() -> None:
    """The member joins with its id only when the answer that holds it has arrived."""
    events = run(
        READERS, scenarios.DelayResponse(at_ms=0, member="a", api="JOIN_GROUP", by_ms=4_000)
    )

    given, joined = (
        min(e.ts_us for e in of(events, kind) if e.client_id == "a")
        for kind in (Event.MEMBER_ID_ASSIGNED, Event.MEMBER_ADDED)
    )
    assert 4_000_000 <= joined - given < 4_500_000


def test_late_answer_to_a_role_reaches_whoever_has_it_then() -> None:
    """Both members join anew; only the answer to the leader is late, whoever that is."""
    late = scenarios.DelayResponse(
        at_ms=20_000, group_id="readers", role="leader", api="JOIN_GROUP", by_ms=4_000
    )
    events = run(READERS, late, scenarios.RestartMember(at_ms=20_000, member="b", down_ms=100))

    (completed,) = of(events, Event.JOIN_COMPLETE, after_ms=20_000)
    synced = of(events, Event.SYNC_REQ, after_ms=20_000)
    in_time = [e for e in synced if e.ts_us < completed.ts_us + 4_000_000]
    assert [len(in_time), len(synced)] == [1, 2]
    assert in_time[0].member_id != completed.leader_id


def readers_of(client: Client) -> scenarios.ConsumerGroupSpec:
    """The group with `a` of another kind of client."""
    members = (scenarios.ConsumerSpec(name="a", client=client), scenarios.ConsumerSpec(name="b"))
    return msgspec.structs.replace(READERS, members=members)


def test_answer_that_comes_twice_ends_a_java_application() -> None:
    """Its poll raises what NetworkClient throws; it closes, leaves, and the other takes over."""
    events = run(READERS, scenarios.DuplicateResponse(at_ms=20_000, member="a", api="HEARTBEAT"))

    assert "poll raised IllegalStateException" in [e.reason_text for e in of(events, ENDS)]
    (left,) = of(events, Event.MEMBER_LEFT)
    assert left.client_id == "a"
    (assigned,) = of(events, Event.ASSIGNED, after_ms=20_000)
    assert assigned.client_id == "b"


def test_answer_that_comes_twice_ends_a_connect_worker() -> None:
    """The exception escapes the herder's tick, as every one does that is no WakeupException."""
    events = run(CLUSTER, scenarios.DuplicateResponse(at_ms=20_000, member="x", api="HEARTBEAT"))

    assert "died of IllegalStateException" in [e.reason_text for e in of(events, ENDS)]
    assert of(events, Event.GROUP_STABLE, after_ms=20_000)


@pytest.mark.parametrize("client", ["librdkafka", "franz-go"])
@pytest.mark.parametrize(
    "fault",
    [
        scenarios.DuplicateResponse(at_ms=20_000, member="a", api="HEARTBEAT", count=3),
        scenarios.ReorderResponses(at_ms=20_000, member="a", api="HEARTBEAT", within_ms=4_000),
    ],
)
def test_other_clients_survive_answers_out_of_turn(
    client: Client, fault: scenarios.Happening
) -> None:
    """By librdkafka they are found by their ids; franz-go connects anew: nobody leaves."""
    events = run(readers_of(client), fault)

    assert of(events, Event.FAULT)
    assert not of(events, Event.PREPARE_REBALANCE, after_ms=20_000)
    beats = of(events, Event.HEARTBEAT, after_ms=30_000)
    assert {(e.member_id or "")[:1] for e in beats if not e.error_code} == {"a", "b"}


def test_answer_that_another_overtakes_ends_a_java_application() -> None:
    """The commit behind the heartbeat is answered first, in the heartbeat's place."""
    late = scenarios.ReorderResponses(at_ms=20_000, member="a", api="HEARTBEAT", within_ms=6_000)
    events = run(READERS, late)

    assert "poll raised IllegalStateException" in [e.reason_text for e in of(events, ENDS)]


def test_answer_that_none_overtakes_is_only_late() -> None:
    """The member hears of the rebalance when the wait is over, as of a late answer."""
    late = scenarios.ReorderResponses(at_ms=20_000, member="a", api="JOIN_GROUP", within_ms=3_000)
    events = run(READERS, late, scenarios.RestartMember(at_ms=20_000, member="b", down_ms=100))

    (completed,) = of(events, Event.JOIN_COMPLETE, after_ms=20_000)
    synced = next(e for e in of(events, Event.SYNC_REQ, after_ms=20_000) if e.client_id == "a")
    assert 3_000_000 < synced.ts_us - completed.ts_us < 3_100_000
    assert not of(events, Event.MEMBER_LEFT, after_ms=21_000)


def test_assignment_that_is_not_replicated_is_refused() -> None:
    """The write of the leader's SyncGroup times out; afterwards the group is stable again."""
    readers = with_member_settings(READERS, {"enable.auto.commit": "false"})
    hold = scenarios.HoldReplication(at_ms=20_300, group_id="readers", for_ms=12_000)
    events = run(readers, scenarios.RestartMember(at_ms=20_000, member="b", down_ms=100), hold)

    refused = [e.error_code for e in of(events, Event.SYNC_RESP, after_ms=20_000)]
    assert ErrorCode.COORDINATOR_NOT_AVAILABLE in refused
    assert of(events, Event.GROUP_STABLE, after_ms=32_000)


def test_held_partition_that_moves_is_free_again() -> None:
    """The new leader has replicas that follow, and the old one is not held when it leads again."""
    events = run(
        READERS,
        scenarios.HoldReplication(at_ms=20_000, group_id="readers", for_ms=10_000),
        scenarios.MoveCoordinator(at_ms=21_000, group_id="readers", to_broker=1),
        scenarios.MoveCoordinator(at_ms=25_000, group_id="readers", to_broker=2),
        scenarios.MoveCoordinator(at_ms=35_000, group_id="readers", to_broker=3),
        scenarios.RestartMember(at_ms=40_000, member="b", down_ms=100),
    )

    assert of(events, Event.GROUP_STABLE, after_ms=40_000)
    assert not [e for e in of(events, Event.OFFSET_COMMIT, after_ms=41_000) if e.error_code]


def test_restart_with_another_assignor_changes_the_protocol() -> None:
    """Once both know it, the group speaks it."""
    settings = {"partition.assignment.strategy": "roundrobin,range", "session.timeout.ms": "9000"}
    events = run(
        READERS,
        scenarios.RestartMember(at_ms=20_000, member="a", down_ms=100, settings=settings),
        scenarios.RestartMember(at_ms=35_000, member="b", down_ms=100, settings=settings),
    )

    completed = of(events, Event.JOIN_COMPLETE)
    assert [e.protocol_name for e in completed][:: len(completed) - 1] == ["range", "roundrobin"]
    asked = {e.session_timeout_ms for e in of(events, Event.MEMBER_ADDED) if e.client_id == "a"}
    assert asked == {10_000, 9_000}


def test_start_of_what_runs_changes_no_setting() -> None:
    """The settings are those of a new process, and there is none."""
    settings = {"partition.assignment.strategy": "roundrobin"}
    events = run(READERS, scenarios.StartMember(at_ms=20_000, member="a", settings=settings))

    assert {e.protocol_name for e in of(events, Event.JOIN_COMPLETE)} == {"range"}


def test_worker_that_lags_behind_the_config_topic_learns_late() -> None:
    """The other worker is told of the connector at once, and both when the lag is over."""
    events = run(
        CLUSTER,
        scenarios.LagConfigTopic(at_ms=20_000, member="x", for_ms=5_000),
        scenarios.AddConnector(at_ms=21_000, group_id="connect", connector="source", tasks=1),
    )

    started = " ".join(
        e.attrs["resources"] for e in of(events, Event.TASKS_STARTED, after_ms=21_000)
    )
    assert "t:source-0" in started
    assert of(events, Event.GROUP_STABLE, after_ms=25_000)
