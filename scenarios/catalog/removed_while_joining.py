"""A cooperative consumer is removed while the answer to its JoinGroup is on the way.

A third consumer starts, and consumer 2 joins the rebalance, keeping its partitions as cooperative
members do. The answer takes 25 s. Without it the consumer cannot heartbeat, so that the coordinator
removes it after its session of 10 s, and its partitions go to others. When the answer arrives, its
SyncGroup is told that it is unknown: what it still holds is lost, and has to be given up before it
joins anew.

Look at: partitions lost before the second JoinGroup; no partition that two consumers read from then
on (KAFKA-12983, where the member went on reading what it had lost).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    DelayResponse,
    Scenario,
    StartMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="removed-while-joining",
    title="A cooperative consumer removed while it joins",
    story="Consumer 3 starts at 30 s; the answer to consumer 2's JoinGroup is 25 s late, longer "
    "than its session of 10 s.",
    duration_ms=120_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("cooperative-sticky",),
            settings={"session.timeout.ms": "10000"},
            members=(
                ConsumerSpec(name="consumer-1"),
                ConsumerSpec(name="consumer-2", start_ms=500),
                ConsumerSpec(name="consumer-3", start_ms=None),
            ),
        ),
    ),
    happenings=(
        StartMember(at_ms=30_000, member="consumer-3"),
        DelayResponse(at_ms=30_000, member="consumer-2", api="JOIN_GROUP", by_ms=25_000),
    ),
)
