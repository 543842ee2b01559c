"""Workloads of Kubernetes: pods that start, are replaced, end, and are scaled."""

import sys
from collections.abc import Iterable
from types import FrameType
from typing import Any, Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.runner import Simulation
from coordinator_sim.sim.scenario import (
    Behavior,
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    CpuTarget,
    CrashBroker,
    CrashMember,
    DrainNode,
    EvictPod,
    Happening,
    Limits,
    PauseBroker,
    PerRecord,
    PodDisruptionBudget,
    RestartMember,
    RollOut,
    ScaledObject,
    ScaleWorkload,
    ScalingPolicy,
    ScalingRules,
    Scenario,
    SlowPoll,
    TopicSpec,
    Trigger,
    WorkerSpec,
    WorkloadSpec,
    scenario_from_json,
    scenario_to_json,
)
from coordinator_sim.sim.scenario.kubernetes import fenceposts
from coordinator_sim.sim.scenario.variants import with_membership
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from tests.simulated import events_of, scenario_of

STEADY: Final = {"startup_ms": (5_000, 5_000), "shutdown_ms": (500, 500)}
"""Pods that start in five seconds, and begin to close half a second after SIGTERM."""


def world_of(
    *happenings: Happening,
    pods: int = 8,
    records_per_s: int = 0,
    record_us: int = 1_000,
    duration_ms: int = 300_000,
    autoscaler: ScaledObject | CpuTarget | None = None,
    nodes: int = 1,
    **fields: Any,  # noqa: ANN401 - fields of a workload
) -> Scenario:
    """Return a workload `app` with a consumer group of as many slots as pods."""
    members = tuple(
        ConsumerSpec(
            name=f"app-{each}", start_ms=None, processing=PerRecord(us=record_us, poll_us=50_000)
        )
        for each in range(pods)
    )
    return scenario_of(
        name="workload",
        duration_ms=duration_ms,
        topics=(TopicSpec(name="orders", partitions=8, records_per_s=records_per_s),),
        groups=(ConsumerGroupSpec(group_id="app", topics=("orders",), members=members),),
        kubernetes=(
            WorkloadSpec(name="app", group_id="app", autoscaler=autoscaler, **{**STEADY, **fields}),
        ),
        happenings=happenings,
        kubernetes_nodes=nodes,
    )


def told(events: Iterable[TraceEvent], what: str) -> list[tuple[int, str]]:
    """Return seconds and members of what their processes did: started, stopping, crashed, gone."""
    return [
        (event.ts_us // 1_000_000, event.client_id or "")
        for event in events
        if event.event is Event.LIFECYCLE and event.reason_text == what
    ]


def decisions(events: Iterable[TraceEvent]) -> list[tuple[int, str, int, str]]:
    """Return the second, the autoscaler, the replicas and the reason of each decision."""
    return [
        (event.ts_us // 1_000_000, attrs["by"], int(attrs["replicas"]), attrs["reason"])
        for event in events
        if event.event is Event.FAULT
        and event.reason_text == "ScaleDecision"
        and (attrs := event.attrs or {})
    ]


def evictions(events: Iterable[TraceEvent]) -> list[str]:
    """Return the pods that drains were allowed to evict."""
    return [(each.attrs or {})["member"] for each in events if each.reason_text == "PodEvicted"]


def test_deployment_starts_its_replicas() -> None:
    """Pods start together, after the time that a start takes."""
    assert told(events_of(world_of(replicas=3)), "started") == [
        (5, "app-0"),
        (5, "app-1"),
        (5, "app-2"),
    ]


def test_stateful_set_starts_pods_one_after_another() -> None:
    """Each pod waits for the one before to be Ready; with Parallel none waits."""
    ordered = world_of(kind="StatefulSet", replicas=3, readiness_ms=2_000)
    assert told(events_of(ordered), "started") == [(5, "app-0"), (12, "app-1"), (19, "app-2")]
    parallel = world_of(kind="StatefulSet", replicas=3, pod_management="Parallel")
    assert {at for at, _ in told(events_of(parallel), "started")} == {5}


def test_deployment_surges_before_it_ends_old_pods() -> None:
    """With maxSurge 1 and maxUnavailable 0 an old pod ends when a new one is Ready."""
    scenario = world_of(
        RollOut(at_ms=60_000, workload="app"), replicas=2, max_surge="1", max_unavailable="0"
    )
    events = events_of(scenario)
    started, stopping = told(events, "started"), told(events, "stopping")
    assert [at for at, _ in started] == [5, 5, 65, 71]
    assert [at for at, _ in stopping] == [66, 72]
    assert {name for _, name in stopping} == {"app-0", "app-1"}


def test_deployment_with_unavailable_pods_ends_old_ones_first() -> None:
    """With maxSurge 0 and maxUnavailable 1 there is never one pod more."""
    scenario = world_of(
        RollOut(at_ms=60_000, workload="app", settings={"session.timeout.ms": "20000"}),
        replicas=2,
        pods=3,
        max_surge="0",
        max_unavailable="1",
    )
    events = events_of(scenario)
    assert [at for at, _ in told(events, "stopping")] == [60, 66]
    assert [at for at, _ in told(events, "started")] == [5, 5, 65, 71]


def test_stateful_set_rolls_out_from_the_highest_ordinal() -> None:
    """One pod at a time: the next when the new one is Ready, in its predecessor's name."""
    scenario = world_of(RollOut(at_ms=60_000, workload="app"), kind="StatefulSet", replicas=3)
    events = events_of(scenario)
    order = ["app-2", "app-1", "app-0"]
    assert [name for _, name in told(events, "stopping")] == order
    assert [name for _, name in told(events, "started")][3:] == order


def test_recreate_starts_no_new_pod_before_the_old_ones_are_gone() -> None:
    """All stop at once; a pod that takes its grace period to close keeps all new ones waiting."""
    scenario = world_of(
        SlowPoll(at_ms=50_000, member="app-1", for_ms=120_000),
        RollOut(at_ms=60_000, workload="app"),
        replicas=2,
        records_per_s=10,
        strategy="Recreate",
        termination_grace_period_s=20,
    )
    events = events_of(scenario)
    assert (60, "app-0") in told(events, "stopping")
    assert [at for at, _ in told(events, "started")] == [5, 5, 85, 85]


def test_pod_counts_as_available_only_after_min_ready_seconds() -> None:
    """The old pod of a surge ends that much later than when the new one is Ready."""
    scenario = world_of(
        RollOut(at_ms=60_000, workload="app"),
        replicas=1,
        max_surge="1",
        max_unavailable="0",
        min_ready_s=10,
    )
    assert [at for at, _ in told(events_of(scenario), "stopping")] == [76]


@pytest.mark.parametrize(("kind", "expired"), [("Deployment", 3), ("StatefulSet", 0)])
def test_static_pod_of_a_deployment_comes_back_under_another_name(kind: str, expired: int) -> None:
    """Its old id is in the group until its session ends; a StatefulSet's pod takes its own over."""
    scenario = world_of(RollOut(at_ms=60_000, workload="app"), replicas=3, kind=kind)
    (group,) = scenario.groups
    assert isinstance(group, ConsumerGroupSpec)
    members = tuple(structs.replace(each, instance_id=each.name) for each in group.members)
    static = structs.replace(scenario, groups=(structs.replace(group, members=members),))
    events = events_of(static)
    assert len({name for _, name in told(events, "started")}) == 3 + expired
    assert sum(event.event is Event.MEMBER_FAILED for event in events) == expired


def test_strimzi_rolls_workers_by_ordinal_and_one_that_is_not_ready_first() -> None:
    """Each worker is replaced in its own name, when the one before is Ready again."""
    workers = tuple(WorkerSpec(name=f"cdc-{each}", start_ms=None) for each in range(3))
    spec = WorkloadSpec(
        name="cdc", group_id="cdc", kind="StrimziPodSet", replicas=3, readiness_ms=10_000, **STEADY
    )
    scenario = scenario_of(
        name="connect",
        duration_ms=300_000,
        groups=(ConnectGroupSpec(group_id="cdc", workers=workers, connectors={"files": 6}),),
        kubernetes=(spec,),
        happenings=(
            CrashMember(at_ms=58_000, member="cdc-1"),
            RollOut(at_ms=60_000, workload="cdc"),
        ),
    )
    events = events_of(scenario)
    stopped, started = told(events, "stopping"), told(events, "started")
    assert started[:4] == [(5, "cdc-0"), (5, "cdc-1"), (5, "cdc-2"), (58, "cdc-1")]
    assert [name for _, name in stopped] == ["cdc-1", "cdc-0", "cdc-2"]
    for (at, name), (before, _) in zip(stopped[1:], started[4:], strict=False):
        assert before + 10 <= at <= before + 11, name


def test_slow_consumer_is_killed_at_the_end_of_its_grace_period() -> None:
    """A consumer that is busy for longer than the grace period never closes: no LeaveGroup."""
    scenario = world_of(
        SlowPoll(at_ms=50_000, member="app-1", for_ms=120_000),
        ScaleWorkload(at_ms=60_000, workload="app", replicas=1),
        EvictPod(at_ms=60_000, member="app-1"),
        replicas=2,
        records_per_s=10,
        termination_grace_period_s=20,
    )
    events = events_of(scenario)
    assert (80, "app-1") in told(events, "crashed")
    assert "PodKilled" in {event.reason_text for event in events if event.event is Event.FAULT}


def test_evicted_pod_is_replaced() -> None:
    """The pod gets SIGTERM, and its controller makes another at once, in a free slot."""
    events = events_of(world_of(EvictPod(at_ms=60_000, member="app-0"), replicas=2))
    assert told(events, "stopping") == [(60, "app-0")]
    assert told(events, "started")[2:] == [(65, "app-2")]


def test_drain_asks_again_every_five_seconds_until_the_budget_lets_a_pod_go() -> None:
    """Replacements are Ready six seconds after an eviction: the second request is refused too."""
    drain = DrainNode(at_ms=60_000, node=1, for_ms=60_000)
    budget = PodDisruptionBudget(max_unavailable="1")
    scenario = world_of(drain, nodes=2, replicas=6, pod_disruption_budget=budget)
    events = events_of(scenario)
    asked = [
        (event.ts_us // 1_000_000, event.reason_text, (event.attrs or {}).get("member"))
        for event in events
        if event.event is Event.FAULT
    ]
    assert asked == [
        (60, "DrainNode", None),
        (60, "PodEvicted", "app-0"),
        (60, "EvictionRefused", "app-2"),
        (60, "EvictionRefused", "app-4"),
        (65, "EvictionRefused", "app-2"),
        (65, "EvictionRefused", "app-4"),
        (70, "PodEvicted", "app-2"),
        (70, "EvictionRefused", "app-4"),
        (75, "EvictionRefused", "app-4"),
        (80, "PodEvicted", "app-4"),
        (120, "NodeUncordoned", None),
    ]
    assert told(events, "stopping") == [(60, "app-0"), (70, "app-2"), (80, "app-4")]


@pytest.mark.parametrize(("crashed", "evicted"), [(1, ["app-0"]), (2, [])])
def test_drain_takes_an_unready_pod_only_while_enough_others_are_ready(
    crashed: int, evicted: list[str]
) -> None:
    """It does not count as available: with five of six Ready it may go, with four it may not."""
    crashes = [CrashMember(at_ms=59_500, member=f"app-{each}") for each in range(crashed)]
    drain = DrainNode(at_ms=60_000, node=1, for_ms=5_000)
    budget = PodDisruptionBudget(max_unavailable="1")
    scenario = world_of(*crashes, drain, nodes=2, replicas=6, pod_disruption_budget=budget)
    assert [name for _, name in told(events_of(scenario), "stopping")] == evicted


def test_drain_that_no_budget_ever_allows_gives_up() -> None:
    """`minAvailable` of all pods keeps every pod; without a budget all end at once."""
    drain = DrainNode(at_ms=60_000, node=1, for_ms=60_000)
    blocked = world_of(
        drain, nodes=2, replicas=4, pod_disruption_budget=PodDisruptionBudget(min_available="100%")
    )
    assert told(events_of(blocked), "stopping") == []
    free = events_of(world_of(drain, nodes=2, replicas=4))
    assert told(free, "stopping") == [(60, "app-0"), (60, "app-2")]


@pytest.mark.parametrize(
    ("kind", "happenings", "evicted"),
    [
        ("Deployment", (RollOut(at_ms=60_100, workload="app"),), []),
        (
            "Deployment",
            (
                ScaleWorkload(at_ms=60_100, workload="app", replicas=1),
                ScaleWorkload(at_ms=64_000, workload="app", replicas=3),
            ),
            [],
        ),
        ("StatefulSet", (EvictPod(at_ms=60_100, member="app-0"),), ["app-0"]),
    ],
)
def test_drain_evicts_the_next_pod_of_a_name_only_from_a_stateful_set(
    kind: str, happenings: tuple[Happening, ...], evicted: list[str]
) -> None:
    """At 65 s the pods it asked for are gone; a Deployment's next ones have names of their own."""
    scenario = world_of(
        DrainNode(at_ms=60_000, node=1, for_ms=60_000),
        *happenings,
        nodes=2,
        pods=3,
        replicas=3,
        kind=kind,
        max_surge="0",
        max_unavailable="100%",
        pod_disruption_budget=PodDisruptionBudget(min_available="3"),
    )
    events = events_of(scenario)
    assert evictions(events) == evicted
    assert max(at for at, _ in told(events, "stopping")) == 60


@pytest.mark.parametrize(
    ("budget", "evicted", "stopping"),
    [
        (PodDisruptionBudget(max_unavailable="1"), ["app-2", "app-0"], [2, 1, 0]),
        (PodDisruptionBudget(min_available="1"), ["app-0", "app-2"], [2, 0, 1]),
    ],
)
def test_budget_on_replicas_keeps_the_pods_of_a_workload_that_is_scaled_to_none(
    budget: PodDisruptionBudget, evicted: list[str], stopping: list[int]
) -> None:
    """Only those that end already may go, at 60 and 65 s; two drains of a node uncordon it once."""
    scenario = world_of(
        ScaleWorkload(at_ms=59_000, workload="app", replicas=0),
        DrainNode(at_ms=60_000, node=1, for_ms=10_000),
        DrainNode(at_ms=65_000, node=1, for_ms=5_000),
        kind="StatefulSet",
        replicas=3,
        shutdown_ms=(2_000, 2_000),
        pod_disruption_budget=budget,
    )
    events = events_of(scenario)
    assert list(dict.fromkeys(evictions(events))) == evicted
    assert [name for _, name in told(events, "stopping")] == [f"app-{each}" for each in stopping]
    assert [event.reason_text for event in events].count("NodeUncordoned") == 1


def test_pods_of_a_new_revision_are_spread_by_themselves() -> None:
    """After the drain all pods are on node 2; half of the next revision's start beside them."""
    drain = DrainNode(at_ms=60_000, node=1, for_ms=20_000)
    roll_out = RollOut(at_ms=90_000, workload="app")
    scenario = world_of(drain, roll_out, nodes=2, replicas=4, max_surge="100%")
    simulation = Simulation(scenario, seed=0, recorder=MemoryRecorder())
    simulation.run_until(85_000_000)
    assert [pod.node for pod in simulation.kubernetes["app"].pods.values()] == [2, 2, 2, 2]
    simulation.run_until(120_000_000)
    assert [pod.node for pod in simulation.kubernetes["app"].pods.values()] == [1, 2, 1, 2]


def test_pod_takes_room_on_its_node_until_it_is_gone() -> None:
    """At 35 s node 1 has lost its pods, and those that wait are one; at 60 s that one ends."""
    scenario = world_of(
        DrainNode(at_ms=10_000, node=2, for_ms=25_000),
        DrainNode(at_ms=25_000, node=1, for_ms=10_000),
        ScaleWorkload(at_ms=30_000, workload="app", replicas=1),
        EvictPod(at_ms=60_000, member="app-1"),
        EvictPod(at_ms=60_000, member="app-3"),
        nodes=2,
        replicas=2,
    )
    simulation = Simulation(scenario, seed=0, recorder=MemoryRecorder())
    simulation.run_until(60_100_000)
    assert [pod.node for pod in simulation.kubernetes["app"].pods.values()] == [1, 2]


def test_pods_find_their_nodes_at_a_cost_that_grows_with_their_number() -> None:
    """Four times the pods take about four times the calls."""
    calls = []
    for replicas in (50, 200):
        scenario = world_of(nodes=3, replicas=replicas, pods=2 * replicas)
        simulation = Simulation(scenario, seed=0, recorder=MemoryRecorder())
        calls.append(0)

        def count(_frame: FrameType, event: str, _argument: object) -> None:
            calls[-1] += event == "call"

        sys.setprofile(count)
        try:
            simulation.run_until(1)
        finally:
            sys.setprofile(None)
    assert calls[1] < 5 * calls[0]


def test_pods_wait_while_every_node_is_cordoned() -> None:
    """They start five seconds after the only node takes pods again."""
    events = events_of(world_of(DrainNode(at_ms=60_000, node=1, for_ms=30_000), replicas=2))
    assert told(events, "started")[2:] == [(95, "app-2"), (95, "app-3")]


def test_node_that_is_taken_back_ends_its_pods_at_once_and_kills_what_is_left() -> None:
    """No budget is looked at, and the machine is gone before the grace period of 30 s is over."""
    scenario = world_of(
        SlowPoll(at_ms=50_000, member="app-2", for_ms=120_000),
        DrainNode(at_ms=60_000, node=1, for_ms=60_000, notice_ms=20_000),
        nodes=2,
        replicas=4,
        records_per_s=10,
        pod_disruption_budget=PodDisruptionBudget(max_unavailable="1"),
    )
    events = events_of(scenario)
    assert told(events, "stopping") == [(60, "app-0"), (60, "app-2")]
    assert told(events, "crashed") == [(80, "app-2")]


@settings(max_examples=5)
@given(
    replicas=st.integers(1, 4),
    nodes=st.integers(1, 3),
    percent=st.integers(0, 100),
    kind=st.sampled_from(("Deployment", "StatefulSet")),
)
@example(replicas=4, nodes=2, percent=1, kind="Deployment")
@example(replicas=4, nodes=3, percent=1, kind="Deployment")
def test_drains_leave_what_the_budget_asks_for(
    replicas: int, nodes: int, percent: int, kind: str
) -> None:
    """Also two at a time; pods are spread evenly, and end on nodes that are not drained."""
    budget = PodDisruptionBudget(min_available=f"{percent}%")
    drains = [
        DrainNode(at_ms=60_000 + node, node=node, for_ms=60_000)
        for node in range(1, min(nodes, 2) + 1)
    ]
    scenario = world_of(
        *drains,
        nodes=nodes,
        replicas=replicas,
        kind=kind,
        pod_disruption_budget=budget,
        duration_ms=110_000,
    )
    simulation = Simulation(scenario, seed=0, recorder=MemoryRecorder())
    simulation.run_until(60_000_000 - 1)
    workload = simulation.kubernetes["app"]
    counts = [
        sum(pod.node == node for pod in workload.pods.values()) for node in range(1, nodes + 1)
    ]
    assert max(counts) - min(counts) <= 1
    for at_ms in range(60_000, 110_000, 500):
        simulation.run_until(at_ms * 1_000)
        assert workload.ready_count * 100 >= replicas * percent
    if nodes > len(drains) and percent <= 100 - 100 // replicas:
        assert {pod.node for pod in workload.active.values()} == {nodes}


def test_container_that_crashes_backs_off() -> None:
    """The kubelet restarts at once, after 10 s, after 20 s, and at once again after ten minutes."""
    crashes = tuple(
        CrashMember(at_ms=at_ms, member="app-0")
        for at_ms in (60_000, 70_000, 100_000, 140_000, 840_000)
    )
    events = events_of(world_of(*crashes, replicas=1, duration_ms=900_000))
    assert [at for at, _ in told(events, "started")] == [5, 60, 80, 120, 180, 840]


def keda(**fields: Any) -> ScaledObject:  # noqa: ANN401 - fields of a ScaledObject
    """Return a ScaledObject on the lag of the group, with a threshold of 1,000 records."""
    metadata = {"consumerGroup": "app", "topic": "orders", "lagThreshold": "1000"}
    return ScaledObject(triggers=(Trigger(metadata=metadata),), max_replica_count=6, **fields)


def test_keda_scales_from_zero_by_its_own_poll_and_further_by_the_autoscaler() -> None:
    """An idle group has no pod; the first poll with lag makes one, and the HPA adds the rest."""
    scenario = world_of(
        replicas=0, records_per_s=50, record_us=10_000, autoscaler=keda(), duration_ms=240_000
    )
    seen = decisions(events_of(scenario))
    assert seen[0] == (0, "keda", 1, "KEDAScaleTargetActivated")
    raised = [replicas for _, by, replicas, _ in seen if by == "hpa" and replicas > 1]
    assert raised
    assert max(raised) == 6


def test_keda_ends_the_last_pod_after_its_cooldown() -> None:
    """Partitions without a committed offset count as a lag of 1: they activate once, at 0 s."""
    scenario = world_of(replicas=1, autoscaler=keda(cooldown_period_s=60), duration_ms=150_000)
    seen = decisions(events_of(scenario))
    assert [each for each in seen if each[1] == "keda"] == [
        (0, "keda", 1, "ScalerActive"),
        (30, "keda", 1, "ScalerCooldown"),
        (90, "keda", 0, "KEDAScaleTargetDeactivated"),
        (120, "keda", 0, "ScalerNotActive"),
    ]
    assert any(each[1:] == ("hpa", 0, "ScalingDisabled") for each in seen)


@pytest.mark.parametrize("fault", [CrashBroker, PauseBroker])
def test_autoscaler_changes_nothing_while_the_coordinator_is_away(
    fault: type[CrashBroker | PauseBroker],
) -> None:
    """A scaler that gets no answer gives no metric."""
    scenario = world_of(
        *(fault(at_ms=60_000, broker=each, for_ms=60_000) for each in (1, 2, 3)),
        replicas=2,
        records_per_s=50,
        autoscaler=keda(min_replica_count=2),
    )
    slow_to_notice = structs.replace(scenario, failover_ms=90_000)
    reasons = {(by, reason) for _, by, _, reason in decisions(events_of(slow_to_notice))}
    assert {("keda", "TriggerError"), ("hpa", "FailedGetMetrics")} <= reasons


def test_autoscaler_on_cpu_follows_busy_pods() -> None:
    """Two pods that process without a break become more; pods that are idle become fewer."""
    busy = CpuTarget(limits=Limits(min_replicas=2, max_replicas=6), utilization=50)
    seen = decisions(
        events_of(
            world_of(
                replicas=2,
                records_per_s=100,
                record_us=4_000,
                autoscaler=busy,
                duration_ms=900_000,
            )
        )
    )
    assert max(replicas for _, _, replicas, _ in seen) == 6
    idle = decisions(events_of(world_of(replicas=4, autoscaler=busy, duration_ms=900_000)))
    assert idle[-1][2] == 2


@settings(max_examples=12)
@example(replicas=6, then=3, kind="StatefulSet", at_ms=60_992, seed=0)
@given(
    replicas=st.integers(0, 6),
    then=st.integers(0, 6),
    kind=st.sampled_from(["Deployment", "StatefulSet"]),
    at_ms=st.integers(1_000, 100_000),
    seed=st.integers(0, 5),
)
def test_replicas_are_reached_whatever_happens_before(
    replicas: int, then: int, kind: str, at_ms: int, seed: int
) -> None:
    """After a roll-out, a crash and another number of replicas, so many members run."""
    scenario = world_of(
        RollOut(at_ms=at_ms, workload="app"),
        CrashMember(at_ms=at_ms + 500, member="app-0"),
        ScaleWorkload(at_ms=at_ms + 1_000, workload="app", replicas=then),
        replicas=replicas,
        kind=kind,
        startup_ms=(1_000, 20_000),
        duration_ms=600_000,
    )
    events = events_of(scenario, seed)
    assert len(told(events, "started")) - len(told(events, "gone")) == then


def test_same_seed_gives_the_same_decisions() -> None:
    """Start-ups and the phase of the autoscaler are drawn by the seed."""
    scenario = world_of(
        replicas=2,
        records_per_s=60,
        record_us=8_000,
        startup_ms=(1_000, 40_000),
        autoscaler=keda(min_replica_count=1),
    )
    assert events_of(scenario, 1) == events_of(scenario, 1)
    assert decisions(events_of(scenario, 1)) != decisions(events_of(scenario, 2))


def test_workload_is_written_to_a_file_and_read() -> None:
    """A scenario with a workload, behavior and triggers comes back equal."""
    policy = ScalingPolicy(type="Pods", value=1, period_s=300)
    behavior = Behavior(scale_down=ScalingRules(policies=(policy,)))
    for autoscaler in (keda(behavior=behavior), CpuTarget(limits=Limits(max_replicas=3))):
        scenario = world_of(RollOut(at_ms=5, workload="app"), autoscaler=autoscaler)
        assert scenario_from_json(scenario_to_json(scenario), "test") == scenario


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [("25%", "25%", 10, (3, 2)), ("25%", "25%", 3, (1, 0)), ("0", "0%", 4, (0, 1))],
)
def test_fenceposts_round_in_favour_of_availability(
    surge: str, unavailable: str, replicas: int, expected: tuple[int, int]
) -> None:
    """Surge is rounded up, unavailability down, and both are never 0."""
    spec = WorkloadSpec(name="a", group_id="a", max_surge=surge, max_unavailable=unavailable)
    assert fenceposts(spec, replicas) == expected


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"replicas": 8}, "need the members app-0 to app-9; group 'app' has 8"),
        ({"replicas": -3}, "replicas of workload 'app'=-3: must be from 0 to 10000"),
        ({"replicas": 100_000_000}, "=100000000: must be from 0 to 10000"),
        (
            {"autoscaler": CpuTarget(limits=Limits(max_replicas=10**8))},
            "the autoscaler's maximum .*=100000000:",
        ),
        ({"max_surge": "a"}, "max_surge of workload 'app'='a'"),
        ({"max_surge": "999999"}, "='999999': is 999999 pods; must be at most 10000"),
        ({"startup_ms": (5,)}, "startup_ms of workload 'app'"),
        ({"readiness_ms": -1}, "readiness_ms of workload 'app'=-1"),
        ({"autoscaler": keda(polling_interval_s=0)}, "polling_interval_s=0"),
    ],
)
def test_impossible_workload_is_refused(fields: dict[str, object], refusal: str) -> None:
    """Each refusal names the value and its bound."""
    with pytest.raises(ScenarioError, match=refusal):
        world_of(**fields)  # type: ignore[arg-type] # by name


def test_static_pods_of_a_deployment_have_names_for_those_that_end() -> None:
    """With fewer, a pod would come back as the static member that it was."""
    scenario = world_of(replicas=3, max_surge="1", pods=6)
    (group,) = scenario.groups
    assert isinstance(group, ConsumerGroupSpec)
    members = tuple(structs.replace(each, instance_id=each.name) for each in group.members)
    with pytest.raises(ScenarioError, match="3 static members that end, need the members app-0 to"):
        structs.replace(scenario, groups=(structs.replace(group, members=members),))
    seventh = structs.replace(members[0], name="app-6", instance_id="app-6")
    enough = structs.replace(group, members=(*members, seventh))
    static = structs.replace(scenario, groups=(enough,))
    assert with_membership(scenario, static=True) == static


def test_pod_is_not_started_or_stopped_by_hand() -> None:
    """Kubernetes would start it again; the message names what to use."""
    with pytest.raises(ScenarioError, match="it is a pod"):
        world_of(RestartMember(at_ms=5, member="app-0", down_ms=1))
    with pytest.raises(ConfigError, match=r"session\.timeout\.ms"):
        world_of(RollOut(at_ms=5, workload="app", settings={"session.timeout.ms": "-1"}))
    with pytest.raises(ScenarioError, match="unknown workload 'api'"):
        world_of(RollOut(at_ms=5, workload="api"))
    with pytest.raises(ScenarioError, match="unknown pod 'api-0'"):
        world_of(EvictPod(at_ms=5, member="api-0"))
    with pytest.raises(ScenarioError, match="replicas of ScaleWorkload=9"):
        world_of(ScaleWorkload(at_ms=5, workload="app", replicas=9))


@pytest.mark.parametrize(
    ("drain", "fields", "message"),
    [
        ({"node": 3}, {"nodes": 2}, "node of DrainNode=3: must be from 1 to 2"),
        ({"notice_ms": 11}, {}, "notice_ms of DrainNode=11: must be from 0 to 10"),
        ({}, {"pod_disruption_budget": PodDisruptionBudget()}, "give min_available or max_unav"),
        (
            {},
            {"pod_disruption_budget": PodDisruptionBudget(min_available="101%")},
            "='101%': give min_available or max_unavailable, as a number or as percent",
        ),
        (
            {},
            {
                "kind": "StrimziPodSet",
                "pod_disruption_budget": PodDisruptionBudget(max_unavailable="1"),
            },
            "knows no scale of a StrimziPodSet; give min_available as a number",
        ),
    ],
)
def test_drain_that_no_cluster_can_have_is_refused(
    drain: dict[str, int], fields: dict[str, Any], message: str
) -> None:
    """The message names the value, the bound and the fix."""
    node = {"node": 1, **drain}
    with pytest.raises(ScenarioError, match=message):
        world_of(DrainNode(at_ms=5, for_ms=10, **node), **fields)  # type: ignore[arg-type]
