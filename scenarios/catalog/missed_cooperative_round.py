"""A consumer misses a cooperative round: its SyncGroup comes when the next one has begun.

Consumers 3 and 4 start one after the other. The answer to consumer 2's JoinGroup is late, so that
its SyncGroup is told REBALANCE_IN_PROGRESS. It never learns what that round took from it, and
joins the next one with partitions that it owned before. The generation in its subscription says
how old that claim is, and the leader believes the newer one.

Look at: no partition that two consumers own (KAFKA-12983, KAFKA-13419 and KAFKA-13891, where the
stale claim won and two consumers read one partition).
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
    name="missed-cooperative-round",
    title="A consumer misses a cooperative round",
    story="Consumer 3 starts at 30 s and consumer 4 at 34 s; the answer to consumer 2's JoinGroup "
    "is 6 s late, so that it learns of the first round only that it is over.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders", partitions=8),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("cooperative-sticky",),
            members=(
                ConsumerSpec(name="consumer-1"),
                ConsumerSpec(name="consumer-2", start_ms=500),
                ConsumerSpec(name="consumer-3", start_ms=None),
                ConsumerSpec(name="consumer-4", start_ms=None),
            ),
        ),
    ),
    happenings=(
        StartMember(at_ms=30_000, member="consumer-3"),
        DelayResponse(at_ms=30_000, member="consumer-2", api="JOIN_GROUP", by_ms=6_000),
        StartMember(at_ms=34_000, member="consumer-4"),
    ),
)
