"""A static leader restarts without a rebalance, and still notices that its topic grows.

The leader of a static group restarts within its session and is given its old assignment. It is told
that it leads, with the members' subscriptions, and that it need not assign: from then on it watches
the partitions of their topics again. Two minutes later the topic grows.

Look at: no rebalance at the restart; one rebalance, begun by the leader, after the partitions were
added (KAFKA-13435, where the restarted leader did not know that it led, and nobody read the new
partitions).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    AddPartitions,
    ConsumerGroupSpec,
    ConsumerSpec,
    RestartMember,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="static-leader-restart",
    title="A static leader restarts, then its topic grows",
    story="The leader of three static consumers restarts at 30 s, and at 60 s the topic grows from "
    "6 to 9 partitions.",
    duration_ms=150_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"metadata.max.age.ms": "30000"},
            members=tuple(
                ConsumerSpec(
                    name=f"consumer-{number}",
                    instance_id=f"orders-{number}",
                    start_ms=500 * (number - 1),
                )
                for number in range(1, 4)
            ),
        ),
    ),
    happenings=(
        RestartMember(at_ms=30_000, member="consumer-1", down_ms=3_000),
        AddPartitions(at_ms=60_000, topic="orders", to=9),
    ),
)
