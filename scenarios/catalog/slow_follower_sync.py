"""A consumer is slow to ask for its assignment, and the cooperative follow-up overtakes it.

A third consumer starts. In a cooperative group those that give partitions up rejoin at once. Each
time consumer 2's JoinGroup answer is late, so that the rejoin of the others finds it without its
assignment. It must rejoin with what it knows and get what it is due, and the rounds must end.

Look at: a bounded number of generations, and every partition owned at the end (KAFKA-14382, where
the member that missed its assignment started the next rebalance, and so on for ever).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConstantLatency,
    ConsumerGroupSpec,
    ConsumerSpec,
    DelayResponse,
    NetworkSpec,
    Scenario,
    StartMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="slow-follower-sync",
    title="A follower too slow for cooperative follow-up rounds",
    story="Consumer 3 starts at 30 s; three answers to consumer 2's JoinGroup are 1.5 s late while "
    "the follow-up round begins at once.",
    duration_ms=50_000,
    network=NetworkSpec(latency=ConstantLatency(us=10_000)),
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("cooperative-sticky",),
            members=(
                ConsumerSpec(name="consumer-1"),
                ConsumerSpec(name="consumer-2", start_ms=500),
                ConsumerSpec(name="consumer-3", start_ms=None),
            ),
        ),
    ),
    happenings=(
        StartMember(at_ms=30_000, member="consumer-3"),
        DelayResponse(at_ms=30_000, member="consumer-2", api="JOIN_GROUP", by_ms=1_500, count=3),
    ),
)
