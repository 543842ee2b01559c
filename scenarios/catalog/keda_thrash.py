"""KEDA scales a consumer group by its lag, up and down without end, under a constant load.

Six pods are enough for the load. While they keep up the lag is small, so the autoscaler takes pods
away, five minutes after it has seen the last high lag; too few are left, and while each rebalance
stands still the lag grows further. It then adds pods, twice as many at most every 15 s, and every
pod joins in a rebalance of its own. Reported as kedacore/keda 1482, 5096 and 7092.

Look at: ScaleDecision, with the lag that the autoscaler saw, and PREPARE_REBALANCE after it. In ten
drawn worlds (`--varied`, seeds 0 to 9), from the tenth minute to the thirtieth: 4 to 10 changes of
the replicas (median 6.5), 5 to 12 rebalances (median 7.5), and a highest lag at a decision of
13,325 to 20,783 records (median 15,821). `keda-thrash-cured` has none in eight of ten worlds.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    PerRecord,
    ScaledObject,
    Scenario,
    TopicSpec,
    Trigger,
    WorkloadSpec,
)

PODS: Final = 15
"""Twelve replicas, and a quarter more while pods are replaced."""
LAG: Final = {"consumerGroup": "orders-app", "topic": "orders", "lagThreshold": "2000"}

SCENARIO: Final = Scenario(
    name="keda-thrash",
    title="KEDA scales a group up and down without end",
    story="Twelve partitions with 60 records a second need six pods of 6 ms a record; KEDA keeps "
    "between two and twelve, one for each 2,000 records of lag.",
    duration_ms=1_800_000,
    topics=(TopicSpec(name="orders", partitions=12, records_per_s=60),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("range",),
            members=tuple(
                ConsumerSpec(
                    name=f"orders-{each}",
                    start_ms=None,
                    processing=PerRecord(us=6_000, poll_us=1_000_000),
                )
                for each in range(PODS)
            ),
        ),
    ),
    kubernetes=(
        WorkloadSpec(
            name="orders",
            group_id="orders-app",
            replicas=2,
            autoscaler=ScaledObject(
                triggers=(Trigger(metadata=LAG),), min_replica_count=2, max_replica_count=12
            ),
        ),
    ),
)
