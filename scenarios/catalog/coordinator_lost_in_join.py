"""The coordinator dies while members wait in JoinGroup, and they keep their ids.

A fourth consumer starts, the others rejoin, the third one late, and while they wait for it the
coordinator's broker is killed. A broken connection is no reason to forget who one is: the three old
members ask the next coordinator with the ids they have, which it knows from the log. Nobody waits
for ghosts.

Look at: no second id for the three old members, no member that fails by its session, and a
generation that completes within seconds of the failover (KAFKA-13214, where the id was thrown away
and the next rebalance waited for the old one's session).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    CrashBroker,
    Scenario,
    SlowPoll,
    StartMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="coordinator-lost-in-join",
    title="The coordinator dies while members wait in JoinGroup",
    story="Consumer 4 starts at 30 s and consumer 3 is busy for 4 s; at 32 s, with three "
    "JoinGroups parked, the coordinator's broker is killed for 30 s.",
    duration_ms=120_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    broker_settings={"offsets.topic.num.partitions": "3"},
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=(
                *(
                    ConsumerSpec(name=f"consumer-{number}", start_ms=700 * number)
                    for number in range(1, 4)
                ),
                ConsumerSpec(name="consumer-4", start_ms=None),
            ),
        ),
    ),
    happenings=(
        SlowPoll(at_ms=29_900, member="consumer-3", for_ms=4_000),
        StartMember(at_ms=30_000, member="consumer-4"),
        CrashBroker(at_ms=32_000, broker=2, for_ms=30_000),
    ),
)
