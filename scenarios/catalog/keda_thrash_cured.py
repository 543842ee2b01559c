"""The group of `keda-thrash` with as many pods at least as the load needs.

The lag of a group that keeps up says nothing about how many pods it needs, so the autoscaler must
not go below that number: `min_replica_count` is 6. Lag then adds pods for what comes on top.

Look at: ScaleDecision. In ten drawn worlds (`--varied`, seeds 0 to 9), from the tenth minute to the
thirtieth, nine have no change of the replicas and no rebalance, and one has one of each, where
`keda-thrash` has medians of 7.5 and 8.5. A `behavior` that takes pods away slowly, one in five
minutes, is no cure: in 90 minutes three such worlds had 17, 17 and 18 changes, and the same worlds
of `keda-thrash` 25, 31 and 39.
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
    name="keda-thrash-cured",
    title="KEDA keeps as many pods as the load needs",
    story="The group of keda-thrash, which needs six pods; KEDA keeps between six and twelve.",
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
                triggers=(Trigger(metadata=LAG),), min_replica_count=6, max_replica_count=12
            ),
        ),
    ),
)
