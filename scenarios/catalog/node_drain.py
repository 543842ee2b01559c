"""A node is drained under a consumer group, and a budget lets its pods go one at a time.

Two of six pods run on each of three nodes. `kubectl drain` evicts one pod of node 1, and is refused
the other one every five seconds until the replacement of the first is Ready: the group shares the
partitions of one member, and never those of two.

Look at: PodEvicted and EvictionRefused, and the members that leave and join between them.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    DrainNode,
    PodDisruptionBudget,
    Scenario,
    TopicSpec,
    WorkloadSpec,
)

MEMBERS: Final = tuple(ConsumerSpec(name=f"orders-{each}", start_ms=None) for each in range(8))
SCENARIO: Final = Scenario(
    name="node-drain",
    title="A node is drained within a budget",
    story="Six pods on three nodes; node 1 is drained, and one pod at most may be missing.",
    duration_ms=240_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(ConsumerGroupSpec(group_id="orders-app", topics=("orders",), members=MEMBERS),),
    kubernetes_nodes=3,
    kubernetes=(
        WorkloadSpec(
            name="orders",
            group_id="orders-app",
            replicas=6,
            pod_disruption_budget=PodDisruptionBudget(max_unavailable="1"),
        ),
    ),
    happenings=(DrainNode(at_ms=60_000, node=1, for_ms=120_000),),
)
