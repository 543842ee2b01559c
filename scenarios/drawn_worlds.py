"""Strategies of worlds with share groups, Kafka Streams applications and workloads of Kubernetes.

Every happening ends before a quiet time that is long enough for the world to come to rest.
"""

from typing import Final, Literal

from hypothesis import strategies as st

from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    ConsumerSpec,
    CpuTarget,
    Limits,
    PerRecord,
    PodDisruptionBudget,
    RecordFates,
    ScaledObject,
    Scenario,
    ShareConsumerSpec,
    ShareGroupSpec,
    StateStoreSpec,
    StreamsGroupSpec,
    SubtopologySpec,
    TopicSpec,
    Trigger,
    WorkerSpec,
    WorkloadSpec,
)
from coordinator_sim_scenarios.drawn_happenings import LAST_FAULT_MS, faults_on, starts

_OF_PODS: Final = ("StopMember", "CrashMember", "PauseMember", "SlowPoll")
_OF_WORLDS: Final = ("CrashBroker", "PauseBroker", "PartitionNetwork")
SHARE_FAULTS: Final = ("StartMember", "RestartMember", *_OF_PODS, *_OF_WORLDS, "AddPartitions")
"""Kinds of happenings that are drawn for share groups."""
STREAMS_FAULTS: Final = (
    *("StartMember", "RestartMember", *_OF_PODS, *_OF_WORLDS),
    *("MoveCoordinator", "DegradeNetwork", "FailOffsetsReads", "SlowDownstream"),
)
"""Kinds of happenings that are drawn for Kafka Streams: none that ends an application."""
WORKLOAD_FAULTS: Final = (
    *("RollOut", "ScaleWorkload", "EvictPod", "DrainNode", "RollBrokers", *_OF_PODS, *_OF_WORLDS),
)
"""Kinds of happenings that are drawn for workloads of Kubernetes."""


_SHARES_SETTLE_MS: Final = 100_000
"""Longer than I13 waits for the longest lock."""


@st.composite
def share_scenarios(draw: st.DrawFn) -> Scenario:
    """Worlds with a share group whose members release, reject, renew or fail on records."""
    every = st.sampled_from((0, 0, 3, 7, 50))
    fates = st.builds(
        RecordFates,
        poison_every=every,
        reject_every=every,
        release_every=every,
        renew_every=every,
    )
    members = tuple(
        ShareConsumerSpec(
            name=f"worker-{number}",
            start_ms=draw(starts()),
            acknowledges="explicit",
            commits=draw(st.sampled_from(("poll", "sync", "async"))),
            fates=draw(fates),
        )
        for number in range(draw(st.integers(1, 3)))
    )
    limits = {"max.poll.records": st.just("5"), "share.acquire.mode": st.just("record_limit")}
    group = ShareGroupSpec(
        group_id="workers",
        topics=("t",),
        members=members,
        settings=draw(st.fixed_dictionaries({}, optional=limits)),
        group_settings={"share.record.lock.duration.ms": "15000"},
    )
    scenario = Scenario(
        name="drawn-shares",
        title="A drawn share group",
        story="Drawn by Hypothesis.",
        duration_ms=LAST_FAULT_MS + _SHARES_SETTLE_MS,
        topics=(TopicSpec(name="t", partitions=draw(st.integers(1, 2)), records_per_s=5),),
        groups=(group,),
    )
    return draw(faults_on(scenario, faults=SHARE_FAULTS))


_STREAMS_SETTLE_MS: Final = 150_000
"""Sessions, commits that wait for a minute, and two restores of 8 s, one after the other."""


@st.composite
def streams_scenarios(draw: st.DrawFn) -> Scenario:
    """Worlds with a Kafka Streams application of up to four instances and three subtopologies."""
    stores = st.builds(
        StateStoreSpec,
        bytes=st.sampled_from((0, 1_000_000, 400_000_000)),
        restore_bytes_per_s=st.sampled_from((50_000_000, 200_000_000)),
    )
    kept = [{name: draw(stores)} if draw(st.booleans()) else {} for name in ("a", "b", "c")]
    first = SubtopologySpec(source_topics=("lines",), writes=("words",), stores=kept[0])
    alone = SubtopologySpec(source_topics=("lines", "orders"), stores=kept[2])
    counts = SubtopologySpec(repartition_topics=("words",), stores=kept[1])
    static = draw(st.booleans())
    members = tuple(
        ConsumerSpec(
            name=f"streams-{number}",
            start_ms=draw(starts()) if number > 1 else 0,
            instance_id=f"streams-{number}" if static else None,
            processing_ms=draw(st.sampled_from((10, 500))),
        )
        for number in range(1, draw(st.integers(1, 4)) + 1)
    )
    group = StreamsGroupSpec(
        group_id="words",
        subtopologies=draw(st.sampled_from(((first, counts), (alone,), (first, counts, alone)))),
        members=members,
        settings={"max.poll.interval.ms": "20000", "metadata.max.age.ms": "10000"},
        commit_interval_ms=draw(st.sampled_from((30_000, 1_000))),
        persistent_volume=draw(st.booleans()),
    )
    of_groups = {
        "num.standby.replicas": ("0", "1", "2"),
        "num.warmup.replicas": ("2", "0", "1"),
        "acceptable.recovery.lag": ("10000", "0"),
        "initial.rebalance.delay.ms": ("3000", "0"),
        "session.timeout.ms": ("45000", "6000"),
        "heartbeat.interval.ms": ("5000", "1000"),
        "task.offset.interval.ms": ("60000", "15000"),
    }
    scenario = Scenario(
        name="drawn-streams",
        title="A drawn Kafka Streams application",
        story="Drawn by Hypothesis.",
        duration_ms=LAST_FAULT_MS + _STREAMS_SETTLE_MS,
        profile="4.4",
        topics=tuple(
            TopicSpec(name=name, partitions=draw(st.integers(1, 4)), records_per_s=5)
            for name in ("lines", "orders")
        ),
        groups=(group,),
        broker_settings={
            f"group.streams.{name}": draw(st.sampled_from(values))
            for name, values in of_groups.items()
        },
    )
    return draw(faults_on(scenario, faults=STREAMS_FAULTS))


_PODS: Final = 12
_Kind = Literal["Deployment", "StatefulSet", "StrimziPodSet"]
_WORKLOADS_SETTLE_MS: Final = 420_000
"""The longest back-off of a container, 300 s, and its restart and those that wait for it."""


@st.composite
def _groups_of_pods(draw: st.DrawFn) -> ConsumerGroupSpec | ConnectGroupSpec:
    """Consumers, static ones or not, or workers of a Connect cluster."""
    names, static = [f"app-{each}" for each in range(_PODS)], draw(st.booleans())
    if draw(st.sampled_from((False, False, True))):
        delay = draw(st.sampled_from(("10000", "0")))
        return ConnectGroupSpec(
            group_id="orders-app",
            workers=tuple(WorkerSpec(name=name, start_ms=None) for name in names),
            connectors={"jdbc": draw(st.integers(1, 5))},
            settings={"session.timeout.ms": "10000", "scheduled.rebalance.max.delay.ms": delay},
        )
    pace = PerRecord(us=5_000, poll_us=500_000)
    return ConsumerGroupSpec(
        group_id="orders-app",
        topics=("orders",),
        members=tuple(
            ConsumerSpec(
                name=name, start_ms=None, processing=pace, instance_id=name if static else None
            )
            for name in names
        ),
        assignors=(draw(st.sampled_from(("cooperative-sticky", "range"))),),
        settings={"session.timeout.ms": "10000", "max.poll.interval.ms": "20000"},
    )


@st.composite
def workload_scenarios(draw: st.DrawFn) -> Scenario:
    """Worlds with a Deployment, StatefulSet or StrimziPodSet, with an autoscaler or without."""
    group = draw(_groups_of_pods())
    is_connect = isinstance(group, ConnectGroupSpec)
    kinds: tuple[_Kind, ...] = ("Deployment", "StatefulSet")
    kind = draw(st.sampled_from((*kinds, "StrimziPodSet") if is_connect else kinds))
    least, most = draw(st.integers(1, 2)), draw(st.integers(2, 4))
    lag = {"consumerGroup": "orders-app", "topic": "orders", "lagThreshold": "100"}
    keda = ScaledObject(
        triggers=(Trigger(metadata=lag),),
        min_replica_count=draw(st.integers(0, 2)),
        max_replica_count=most,
        cooldown_period_s=60,
    )
    cpu = CpuTarget(limits=Limits(min_replicas=least, max_replicas=most), utilization=50)
    counts = st.sampled_from(("25%", "0", "1", "2", "100%"))
    kept = st.sampled_from(("0", "1", "2")) if kind == "StrimziPodSet" else counts
    workload = WorkloadSpec(
        name="app",
        group_id=group.group_id,
        kind=kind,
        replicas=draw(st.integers(0, 4)),
        strategy=draw(st.sampled_from(("RollingUpdate", "Recreate"))),
        max_surge=draw(counts),
        max_unavailable=draw(counts),
        pod_management=draw(st.sampled_from(("OrderedReady", "Parallel"))),
        startup_ms=draw(st.sampled_from(((5_000, 5_000), (1_000, 20_000), (0, 0)))),
        readiness_ms=draw(st.sampled_from((1_000, 0, 10_000))),
        min_ready_s=draw(st.sampled_from((0, 0, 10))),
        shutdown_ms=draw(st.sampled_from(((0, 1_000), (500, 500), (20_000, 40_000)))),
        termination_grace_period_s=draw(st.sampled_from((30, 5, 0))),
        autoscaler=None if is_connect else draw(st.sampled_from((None, keda, cpu))),
        pod_disruption_budget=PodDisruptionBudget(min_available=draw(kept)),
    )
    scenario = Scenario(
        name="drawn-workload",
        title="A drawn workload",
        story="Drawn by Hypothesis.",
        duration_ms=LAST_FAULT_MS + _WORKLOADS_SETTLE_MS,
        topics=(TopicSpec(name="orders", partitions=4, records_per_s=draw(st.integers(0, 50))),),
        groups=(group,),
        kubernetes=(workload,),
        kubernetes_nodes=draw(st.integers(1, 3)),
    )
    return draw(faults_on(scenario, faults=WORKLOAD_FAULTS))
