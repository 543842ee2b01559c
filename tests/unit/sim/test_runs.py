from typing import Any

import msgspec
import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.runner import Simulation, run_scenario
from coordinator_sim.sim.scenario import (
    AddConnector,
    AddPartitions,
    ChangeSubscription,
    ChangeTaskCount,
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    CrashBroker,
    CrashMember,
    DropResponse,
    Happening,
    MoveCoordinator,
    NetworkSpec,
    PartitionNetwork,
    PauseMember,
    RemoveConnector,
    RestartMember,
    Scenario,
    SlowPoll,
    StartMember,
    StopMember,
    TableLatency,
    TopicSpec,
    UniformLatency,
    WorkerSpec,
)
from coordinator_sim.trace.events import Event, RebalanceReason, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder, NullRecorder
from tests.simulated import events_of, scenario_of

SETTLED_MS = 15_000
SETTINGS = {"session.timeout.ms": "10000", "max.poll.interval.ms": "20000"}


def consumers(*happenings: Happening, **fields: Any) -> Scenario:  # noqa: ANN401 - any field
    """Two consumers, `b` static, and a third that is not started, for two virtual minutes."""
    given: dict[str, Any] = {
        "name": "consumers",
        "title": "Consumers",
        "story": "",
        "duration_ms": 120_000,
        "topics": (
            TopicSpec(name="orders", partitions=6),
            TopicSpec(name="payments", partitions=6),
        ),
        "groups": (
            ConsumerGroupSpec(
                group_id="readers",
                topics=("orders",),
                assignors=("range",),
                settings=SETTINGS,
                members=(
                    ConsumerSpec(name="a"),
                    ConsumerSpec(name="b", instance_id="b-0"),
                    ConsumerSpec(name="c", start_ms=None),
                ),
            ),
        ),
        "happenings": happenings,
    }
    return Scenario(**{**given, **fields})


def workers(*happenings: Happening) -> Scenario:
    """Two Connect workers with one connector of two tasks."""
    return scenario_of(
        name="workers",
        duration_ms=120_000,
        groups=(
            ConnectGroupSpec(
                group_id="connect",
                workers=(WorkerSpec(name="w1"), WorkerSpec(name="w2")),
                connectors={"sink": 2},
            ),
        ),
        happenings=happenings,
    )


def having(events: list[TraceEvent], event: Event, *, after_ms: int = 0) -> list[TraceEvent]:
    """Events of a kind after an instant."""
    return [e for e in events if e.event is event and e.ts_us > after_ms * 1_000]


def reasons(events: list[TraceEvent], *, after_ms: int = SETTLED_MS) -> list[RebalanceReason]:
    """Why the group rebalanced after it had settled."""
    return [
        e.reason
        for e in having(events, Event.PREPARE_REBALANCE, after_ms=after_ms)
        if e.reason is not None
    ]


def last_group_event(events: list[TraceEvent]) -> TraceEvent:
    """The last event that tells the group's state."""
    return [e for e in events if e.state_to is not None][-1]


def owned_at_end(events: list[TraceEvent]) -> int:
    """Members that the last generation has."""
    return last_group_event(events).members or 0


def test_a_quiet_group_rebalances_once() -> None:
    """Two consumers that start together form one generation and stay in it."""
    events = events_of(consumers())

    assert reasons(events, after_ms=0) == [RebalanceReason.MEMBER_JOINED]
    assert owned_at_end(events) == 2


def test_a_crashed_member_fails_after_its_session() -> None:
    """A crashed member is removed a session timeout after its last heartbeat."""
    events = events_of(consumers(CrashMember(at_ms=30_000, member="a")))

    (failed,) = having(events, Event.MEMBER_FAILED)
    assert 37_000_000 <= failed.ts_us <= 40_001_000
    assert reasons(events) == [RebalanceReason.MEMBER_FAILED]
    assert owned_at_end(events) == 1


def test_a_stopped_dynamic_member_leaves() -> None:
    """A graceful close commits, revokes, and tells the coordinator."""
    events = events_of(consumers(StopMember(at_ms=30_000, member="a")))

    assert reasons(events) == [RebalanceReason.MEMBER_LEFT]
    assert having(events, Event.REVOKED, after_ms=30_000)
    assert having(events, Event.POSITION, after_ms=30_000)


def test_a_static_member_restarts_without_a_rebalance() -> None:
    """A static member that returns within its session keeps its partitions without a rebalance."""
    events = events_of(consumers(RestartMember(at_ms=30_000, member="b", down_ms=2_000)))

    assert reasons(events) == []
    assert having(events, Event.STATIC_REPLACED)


def test_a_member_that_starts_later_joins() -> None:
    """A scale-out is a rebalance for everybody."""
    events = events_of(consumers(StartMember(at_ms=30_000, member="c")))

    assert reasons(events) == [RebalanceReason.MEMBER_JOINED]
    assert owned_at_end(events) == 3


def test_a_paused_member_is_removed_and_comes_back() -> None:
    """The zombie loses what it owned without having revoked it, then joins under a new id."""
    events = events_of(consumers(PauseMember(at_ms=30_000, member="a", for_ms=25_000)))

    assert having(events, Event.MEMBER_FAILED)
    (lost,) = having(events, Event.LOST)
    assert lost.client_id == "a"
    assert lost.ts_us >= 55_000_000
    assert owned_at_end(events) == 2


def test_slow_processing_leaves_past_the_poll_interval() -> None:
    """Heartbeats go on, but the client itself leaves the group when it does not poll."""
    events = events_of(consumers(SlowPoll(at_ms=30_000, member="a", for_ms=40_000)))

    assert reasons(events) == [RebalanceReason.MEMBER_LEFT, RebalanceReason.MEMBER_JOINED]
    (left,) = having(events, Event.MEMBER_LEFT)
    assert left.reason_text == "consumer poll timeout has expired."


def test_a_cut_off_member_fails_and_comes_back() -> None:
    """Behind a cut the broker hears no heartbeat; after the heal the member joins again."""
    events = events_of(consumers(PartitionNetwork(at_ms=30_000, member="a", for_ms=20_000)))

    assert having(events, Event.MEMBER_FAILED)
    assert owned_at_end(events) == 2


def test_a_short_cut_costs_nothing() -> None:
    """A cut shorter than the session leaves the generation as it is."""
    events = events_of(consumers(PartitionNetwork(at_ms=30_000, member="a", for_ms=3_000)))

    assert reasons(events) == []


def test_a_lost_join_response_is_survived() -> None:
    """The member waits until its request times out, and joins again."""
    events = events_of(
        consumers(DropResponse(at_ms=0, member="a", api="JOIN_GROUP", count=2), duration_ms=240_000)
    )

    assert owned_at_end(events) == 2


def test_a_moved_coordinator_keeps_the_generation() -> None:
    """The new coordinator loads the group; the members find it and go on."""
    events = events_of(consumers(MoveCoordinator(at_ms=30_000, group_id="readers")))

    (loaded,) = having(events, Event.GROUP_LOADED)
    assert loaded.generation == 1
    assert reasons(events) == []
    assert having(events, Event.HEARTBEAT, after_ms=40_000)


def test_a_crashed_broker_hands_the_group_over() -> None:
    """Clients see their connection close, wait for the election, and keep the generation."""
    leader = next(e.broker_id for e in events_of(consumers()) if e.event is Event.JOIN_COMPLETE)
    assert leader is not None

    events = events_of(consumers(CrashBroker(at_ms=30_000, broker=leader, for_ms=20_000)))

    assert [e.broker_id != leader for e in having(events, Event.GROUP_LOADED)] == [True]
    assert reasons(events) == []


def test_a_group_survives_its_only_broker() -> None:
    """With one broker nothing can be elected; after its restart everything goes on."""
    events = events_of(consumers(CrashBroker(at_ms=30_000, broker=1, for_ms=5_000), brokers=1))

    assert having(events, Event.GROUP_LOADED)
    assert owned_at_end(events) == 2


def test_a_close_on_its_way_to_a_broker_that_dies_is_of_no_concern() -> None:
    """The member is gone a moment before the broker, whose end of the connection dies with it."""
    crashes = (CrashBroker(at_ms=30_000, broker=each, for_ms=1_000) for each in (1, 2, 3))
    events = events_of(consumers(CrashMember(at_ms=30_000, member="a"), *crashes))
    assert owned_at_end(events) == 1


def test_added_partitions_are_noticed_by_the_leader() -> None:
    """The leader refreshes its metadata at its age and asks for a rebalance."""
    settings = {**SETTINGS, "metadata.max.age.ms": "10000"}
    scenario = consumers(AddPartitions(at_ms=30_000, topic="orders", to=8))
    group = msgspec.structs.replace(scenario.groups[0], settings=settings)

    events = events_of(msgspec.structs.replace(scenario, groups=(group,)))

    assert len(reasons(events)) == 1


def test_a_changed_subscription_rebalances() -> None:
    """A consumer that subscribes to another topic rejoins with other metadata."""
    events = events_of(
        consumers(ChangeSubscription(at_ms=30_000, member="a", topics=("payments",)))
    )

    assert len(reasons(events)) == 1


def test_connector_added_starts_its_tasks() -> None:
    """One rebalance hands out the connector, the next its tasks."""
    events = events_of(
        workers(AddConnector(at_ms=30_000, group_id="connect", connector="new", tasks=3))
    )

    started = having(events, Event.TASKS_STARTED, after_ms=30_000)
    resources = " ".join(e.attrs["resources"] for e in started).split()
    assert sorted(resources) == ["c:new", "t:new-0", "t:new-1", "t:new-2"]
    assert len(reasons(events)) == 2


def test_connector_removed_stops_its_tasks() -> None:
    """Whoever runs a part of it stops that part."""
    events = events_of(workers(RemoveConnector(at_ms=30_000, group_id="connect", connector="sink")))

    stopped = having(events, Event.TASKS_STOPPED, after_ms=30_000)
    resources = " ".join(e.attrs["resources"] for e in stopped).split()
    assert sorted(resources) == ["c:sink", "t:sink-0", "t:sink-1"]


def test_changed_task_count_reaches_the_workers() -> None:
    """The owner restarts the connector, which asks for more tasks."""
    events = events_of(
        workers(ChangeTaskCount(at_ms=30_000, group_id="connect", connector="sink", tasks=4))
    )

    started = having(events, Event.TASKS_STARTED, after_ms=30_000)
    resources = " ".join(e.attrs["resources"] for e in started).split()
    assert {"t:sink-2", "t:sink-3"} <= set(resources)


def test_a_crashed_worker_is_replaced() -> None:
    """A crashed worker's session expires, and its connectors and tasks move."""
    events = events_of(workers(CrashMember(at_ms=30_000, member="w1")))

    assert reasons(events)[0] is RebalanceReason.MEMBER_FAILED
    assert owned_at_end(events) == 1


def test_a_busy_herder_loses_its_membership() -> None:
    """A herder's thread stuck past the rebalance timeout leaves the group, then comes back."""
    events = events_of(workers(SlowPoll(at_ms=20_000, member="w2", for_ms=65_000)))

    (left,) = having(events, Event.MEMBER_LEFT)
    assert left.client_id in {None, "w2"}
    assert owned_at_end(events) == 2


def test_a_silent_run_does_the_same() -> None:
    """With the trace off the very same callbacks fire."""
    scenario = consumers(CrashMember(at_ms=30_000, member="a"))

    traced = run_scenario(scenario, recorder=MemoryRecorder())
    silent = run_scenario(scenario, recorder=NullRecorder())

    assert silent == traced


def test_a_tape_repeats_a_run_under_another_seed() -> None:
    """All chance is on the tape: ids and latencies come out as recorded."""
    scenario = consumers(network=NetworkSpec(latency=TableLatency()))
    recorder, repeated = MemoryRecorder(), MemoryRecorder()

    taped = run_scenario(scenario, seed=1, recorder=recorder, tape=())
    run_scenario(scenario, seed=2, recorder=repeated, tape=taped.tape)

    assert taped.tape
    assert repeated.digest == recorder.digest


def test_progress_is_told_to_the_end() -> None:
    """The last call names the end of the scenario."""
    told: list[int] = []

    run_scenario(consumers(), recorder=NullRecorder(), progress=told.append)

    assert told == sorted(told)
    assert told[-1] == 120_000_000


def test_a_run_can_be_stepped() -> None:
    """A simulation advanced in steps tells what it told in one go."""
    stepped, at_once = MemoryRecorder(), MemoryRecorder()
    simulation = Simulation(consumers(), recorder=stepped)
    for second in range(1, 121):
        simulation.run_until(second * 1_000_000)
    run_scenario(consumers(), recorder=at_once)

    assert stepped.digest == at_once.digest


def test_an_unknown_profile_is_refused() -> None:
    """The message lists the profiles."""
    with pytest.raises(ConfigError, match=r"unknown profile '9\.9'"):
        run_scenario(consumers(profile="9.9"), recorder=NullRecorder())


def lifecycle(events: list[TraceEvent], member: str) -> list[str]:
    """What became of a member's processes, in order."""
    told = (e for e in events if e.event is Event.LIFECYCLE and e.client_id == member)
    return [e.reason_text or "" for e in told]


def test_what_does_not_run_cannot_be_stopped() -> None:
    """A process that was never started stays so; its happenings are nothing."""
    absent = [
        StopMember(at_ms=20_000, member="c"),
        CrashMember(at_ms=21_000, member="c"),
        PauseMember(at_ms=22_000, member="c", for_ms=10),
        SlowPoll(at_ms=23_000, member="c", for_ms=10),
        ChangeSubscription(at_ms=24_000, member="c", topics=("payments",)),
    ]
    events = events_of(consumers(*absent))

    assert lifecycle(events, "c") == []
    assert reasons(events) == []


def test_what_runs_cannot_be_started_again() -> None:
    """A second start changes nothing."""
    events = events_of(consumers(StartMember(at_ms=30_000, member="a")))

    assert lifecycle(events, "a") == ["started"]


def test_restart_of_what_does_not_run_is_a_start() -> None:
    """After its down time there is a process."""
    events = events_of(consumers(RestartMember(at_ms=30_000, member="c", down_ms=1_000)))

    (started,) = (e for e in having(events, Event.LIFECYCLE) if e.client_id == "c")
    assert started.ts_us == 31_000_000


def test_killed_process_returns_under_a_new_id() -> None:
    """A restart that is not graceful leaves the old member to its session timeout."""
    events = events_of(
        consumers(RestartMember(at_ms=30_000, member="a", down_ms=1_000, graceful=False))
    )

    assert lifecycle(events, "a") == ["started", "crashed", "gone", "started"]
    assert having(events, Event.MEMBER_FAILED)
    assert owned_at_end(events) == 2


def test_process_killed_during_a_pause_does_not_resume() -> None:
    """What it had still to do is gone with it."""
    events = events_of(
        consumers(
            PauseMember(at_ms=30_000, member="a", for_ms=20_000),
            CrashMember(at_ms=35_000, member="a"),
            StartMember(at_ms=40_000, member="a"),
        )
    )

    assert lifecycle(events, "a") == ["started", "paused", "crashed", "gone", "started"]
    assert owned_at_end(events) == 2


def test_pause_in_a_pause_is_one_pause() -> None:
    """A stopped process cannot be stopped more."""
    events = events_of(
        consumers(
            PauseMember(at_ms=30_000, member="a", for_ms=4_000),
            PauseMember(at_ms=31_000, member="a", for_ms=60_000),
        )
    )

    assert reasons(events) == []


def test_process_frozen_at_its_start_connects_afterwards() -> None:
    """The connection opened and was lost meanwhile; it notices both at the end of its pause."""
    events = events_of(
        consumers(
            StartMember(at_ms=30_000, member="c"),
            PauseMember(at_ms=30_000, member="c", for_ms=5_000),
            CrashBroker(at_ms=32_000, broker=1, for_ms=1_000),
            brokers=1,
        )
    )

    assert owned_at_end(events) == 3


def test_member_stopped_twice_stops_once() -> None:
    """The second request finds it closing."""
    events = events_of(
        consumers(StopMember(at_ms=30_000, member="a"), StopMember(at_ms=30_000, member="a"))
    )

    assert len(having(events, Event.MEMBER_LEFT)) == 1


def test_worker_stopped_twice_stops_once() -> None:
    """The work of a worker that was stopped twice moves once, after the scheduled delay."""
    events = events_of(
        workers(StopMember(at_ms=30_000, member="w1"), StopMember(at_ms=30_000, member="w1"))
    )

    assert len(having(events, Event.MEMBER_LEFT)) == 1
    assert having(events, Event.TASKS_STOPPED, after_ms=30_000)


def test_consumer_too_many_gives_up() -> None:
    """A fatal error of a poll ends the application, and it says which."""
    events = events_of(consumers(broker_settings={"group.max.size": "1"}))

    raised = [text for name in "ab" for text in lifecycle(events, name) if "raised" in text]
    assert raised == ["poll raised GroupMaxSizeReachedException"]


def test_worker_too_many_gives_up() -> None:
    """What the herder's thread does not catch ends its process."""
    scenario = msgspec.structs.replace(workers(), broker_settings={"group.max.size": "1"})
    events = events_of(scenario)

    raised = [text for name in ("w1", "w2") for text in lifecycle(events, name) if "died" in text]
    assert raised == ["died of GroupMaxSizeReachedException"]


def test_cut_between_two_ends_spares_the_others() -> None:
    """Member and broker named: everybody else reaches that broker."""
    leader = next(e.broker_id for e in events_of(consumers()) if e.event is Event.JOIN_COMPLETE)
    events = events_of(
        consumers(PartitionNetwork(at_ms=30_000, member="a", broker=leader, for_ms=20_000))
    )

    assert [e.client_id for e in having(events, Event.MEMBER_FAILED)] in ([None], ["a"])
    assert owned_at_end(events) == 2


def test_cut_broker_heals() -> None:
    """Members cut off from their coordinator for longer than a session all come back."""
    leader = next(e.broker_id for e in events_of(consumers()) if e.event is Event.JOIN_COMPLETE)
    events = events_of(consumers(PartitionNetwork(at_ms=30_000, broker=leader, for_ms=20_000)))

    assert owned_at_end(events) == 2


def test_coordinator_is_moved_by_partition_too() -> None:
    """The offsets partition itself may be named, and its new leader."""
    placed = next(e for e in events_of(consumers()) if e.event is Event.JOIN_COMPLETE)
    target = 1 if placed.broker_id != 1 else 2
    move = MoveCoordinator(at_ms=30_000, partition=placed.offsets_partition, to_broker=target)
    events = events_of(consumers(move))

    assert [e.broker_id for e in having(events, Event.GROUP_LOADED)] == [target]


def test_dead_broker_cannot_die() -> None:
    """A second crash of the same broker changes nothing."""
    crash = CrashBroker(at_ms=30_000, broker=1, for_ms=5_000)
    again = CrashBroker(at_ms=31_000, broker=1, for_ms=50_000)
    events = events_of(consumers(crash, again, brokers=1))

    assert owned_at_end(events) == 2
    assert having(events, Event.HEARTBEAT, after_ms=45_000)


def test_uniform_latency_is_within_its_bounds() -> None:
    """Every round trip takes between two and four milliseconds, work in no time."""
    scenario = consumers(network=NetworkSpec(latency=UniformLatency(1_000, 2_000)))
    events = events_of(scenario)

    asked = having(events, Event.SYNC_REQ)
    assert asked
    assert owned_at_end(events) == 2


def test_rack_reaches_the_subscription() -> None:
    """`client.rack` of a consumer is told to the leader."""
    group = consumers().groups[0]
    assert isinstance(group, ConsumerGroupSpec)
    members = (ConsumerSpec(name="a", rack="rack-7"), ConsumerSpec(name="b"))
    events = events_of(consumers(groups=(msgspec.structs.replace(group, members=members),)))

    told = {e.client_id: e.subscription or b"" for e in having(events, Event.JOIN_REQ)}
    assert [b"rack-7" in told[name] for name in ("a", "b")] == [True, False]


def test_process_killed_inside_its_callback_never_completes_it() -> None:
    """A revocation that takes its time ends with the process."""
    group = consumers().groups[0]
    assert isinstance(group, ConsumerGroupSpec)
    members = tuple(ConsumerSpec(name=name, callback_ms=2_000) for name in ("a", "b"))
    group = msgspec.structs.replace(group, members=members)
    events = events_of(
        consumers(
            StopMember(at_ms=30_000, member="a"),
            CrashMember(at_ms=31_000, member="a"),
            groups=(group,),
        )
    )

    assert lifecycle(events, "a") == ["started", "stopping", "crashed", "gone"]
    assert having(events, Event.MEMBER_FAILED)
