"""The leader takes eight seconds to assign, and the followers wait without losing anything.

A fourth consumer starts, and the answer to the leader's JoinGroup is late. Meanwhile the group is
in `CompletingRebalance`. The followers have asked for their assignments; the broker answers one
request of a connection at a time, so that their heartbeats wait behind that one and are then
accepted. Their commits are not sent, because the coordinator would refuse them.

Look at: no commit between JOIN_COMPLETE and SYNC_LEADER, and accepted heartbeats right behind it;
the two generations that a newcomer costs a cooperative group, and no third one (KAFKA-10134, where
such heartbeats asked for another rebalance).
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
    name="slow-leader",
    title="A leader that takes eight seconds to assign",
    story="Consumer 4 starts at 30 s, and the answer to the leader's JoinGroup is 8 s late; the "
    "others wait for it and lose nothing.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("cooperative-sticky",),
            settings={"auto.commit.interval.ms": "2000"},
            members=(
                ConsumerSpec(name="consumer-1"),
                ConsumerSpec(name="consumer-2", start_ms=500),
                ConsumerSpec(name="consumer-3", start_ms=500),
                ConsumerSpec(name="consumer-4", start_ms=None),
            ),
        ),
    ),
    happenings=(
        StartMember(at_ms=30_000, member="consumer-4"),
        DelayResponse(at_ms=30_000, member="consumer-1", api="JOIN_GROUP", by_ms=8_000),
    ),
)
