"""Happenings that meddle with answers, replication, settings and the config topic."""

from collections.abc import Sequence
from typing import Final

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import (
    AddConnector,
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    DelayResponse,
    Happening,
    HoldReplication,
    LagConfigTopic,
    MoveCoordinator,
    RestartMember,
    Scenario,
    StartMember,
    TopicSpec,
    WorkerSpec,
)
from coordinator_sim.sim.scenario.world import with_member_settings
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder

READERS: Final = ConsumerGroupSpec(
    group_id="readers",
    topics=("orders",),
    assignors=("range",),
    settings={"session.timeout.ms": "10000"},
    members=(ConsumerSpec(name="a"), ConsumerSpec(name="b")),
)
CLUSTER: Final = ConnectGroupSpec(
    group_id="connect", connectors={"sink": 2}, workers=(WorkerSpec(name="w"), WorkerSpec(name="x"))
)


def run(group: ConsumerGroupSpec | ConnectGroupSpec, *happenings: Happening) -> list[TraceEvent]:
    """The events of one virtual minute."""
    scenario = Scenario(
        name="meddling",
        title="Meddling",
        story="",
        duration_ms=60_000,
        topics=(TopicSpec(name="orders", partitions=4),),
        groups=(group,),
        happenings=happenings,
    )
    recorder = MemoryRecorder()
    run_scenario(scenario, recorder=recorder)
    return list(recorder.events)


def of(events: Sequence[TraceEvent], event: Event, after_ms: int = 0) -> list[TraceEvent]:
    """The events of one kind from an instant on."""
    return [e for e in events if e.event is event and e.ts_us >= after_ms * 1_000]


def test_late_answer_delays_what_the_member_does_next() -> None:
    """The member joins with its id only when the answer that holds it has arrived."""
    events = run(READERS, DelayResponse(at_ms=0, member="a", api="JOIN_GROUP", by_ms=4_000))

    given, joined = (
        min(e.ts_us for e in of(events, kind) if e.client_id == "a")
        for kind in (Event.MEMBER_ID_ASSIGNED, Event.MEMBER_ADDED)
    )
    assert 4_000_000 <= joined - given < 4_500_000


def test_assignment_that_is_not_replicated_is_refused() -> None:
    """The write of the leader's SyncGroup times out; afterwards the group is stable again."""
    readers = with_member_settings(READERS, {"enable.auto.commit": "false"})
    hold = HoldReplication(at_ms=20_300, group_id="readers", for_ms=12_000)
    events = run(readers, RestartMember(at_ms=20_000, member="b", down_ms=100), hold)

    refused = [e.error_code for e in of(events, Event.SYNC_RESP, after_ms=20_000)]
    assert ErrorCode.COORDINATOR_NOT_AVAILABLE in refused
    assert of(events, Event.GROUP_STABLE, after_ms=32_000)


def test_held_partition_that_moves_is_free_again() -> None:
    """The new leader has replicas that follow, and the old one is not held when it leads again."""
    events = run(
        READERS,
        HoldReplication(at_ms=20_000, group_id="readers", for_ms=10_000),
        MoveCoordinator(at_ms=21_000, group_id="readers", to_broker=1),
        MoveCoordinator(at_ms=25_000, group_id="readers", to_broker=2),
        MoveCoordinator(at_ms=35_000, group_id="readers", to_broker=3),
        RestartMember(at_ms=40_000, member="b", down_ms=100),
    )

    assert of(events, Event.GROUP_STABLE, after_ms=40_000)
    assert not [e for e in of(events, Event.OFFSET_COMMIT, after_ms=41_000) if e.error_code]


def test_restart_with_another_assignor_changes_the_protocol() -> None:
    """Once both know it, the group speaks it."""
    settings = {"partition.assignment.strategy": "roundrobin,range", "session.timeout.ms": "9000"}
    events = run(
        READERS,
        RestartMember(at_ms=20_000, member="a", down_ms=100, settings=settings),
        RestartMember(at_ms=35_000, member="b", down_ms=100, settings=settings),
    )

    completed = of(events, Event.JOIN_COMPLETE)
    assert [e.protocol_name for e in completed][:: len(completed) - 1] == ["range", "roundrobin"]
    asked = {e.session_timeout_ms for e in of(events, Event.MEMBER_ADDED) if e.client_id == "a"}
    assert asked == {10_000, 9_000}


def test_start_of_what_runs_changes_no_setting() -> None:
    """The settings are those of a new process, and there is none."""
    settings = {"partition.assignment.strategy": "roundrobin"}
    events = run(READERS, StartMember(at_ms=20_000, member="a", settings=settings))

    assert {e.protocol_name for e in of(events, Event.JOIN_COMPLETE)} == {"range"}


def test_worker_that_lags_behind_the_config_topic_learns_late() -> None:
    """The other worker is told of the connector at once, and both when the lag is over."""
    events = run(
        CLUSTER,
        LagConfigTopic(at_ms=20_000, member="x", for_ms=5_000),
        AddConnector(at_ms=21_000, group_id="connect", connector="source", tasks=1),
    )

    started = " ".join(
        e.attrs["resources"] for e in of(events, Event.TASKS_STARTED, after_ms=21_000)
    )
    assert "t:source-0" in started
    assert of(events, Event.GROUP_STABLE, after_ms=25_000)
