"""The offsets partition of a group is not replicated for a while, in the middle of a rebalance.

A third consumer starts, and the record with the new assignment is appended, but no replica follows.
After `offsets.commit.timeout.ms` the leader's SyncGroup, and those that waited for it, are answered
REBALANCE_IN_PROGRESS (Kafka 3.9), and the members try again until replication is back.

Look at: SyncGroup answers with an error of the coordinator, taken as a reason to rejoin and not as
a failure; one stable generation at the end (KAFKA-10870).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    HoldReplication,
    Scenario,
    StartMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="replication-stalls",
    title="Replication of the offsets topic stalls in a rebalance",
    story="Consumer 3 starts at 30 s; from 30.5 s on the offsets partition is not replicated for "
    "12 s, and the new assignment cannot be stored.",
    duration_ms=90_000,
    profile="3.9",
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"enable.auto.commit": "false"},
            members=(
                ConsumerSpec(name="consumer-1"),
                ConsumerSpec(name="consumer-2"),
                ConsumerSpec(name="consumer-3", start_ms=None),
            ),
        ),
    ),
    happenings=(
        StartMember(at_ms=30_000, member="consumer-3"),
        HoldReplication(at_ms=30_500, group_id="orders-app", for_ms=12_000),
    ),
)
