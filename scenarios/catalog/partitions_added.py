"""Partitions are added to a topic that a group consumes.

The topic grows from six partitions to ten. No member and no coordinator is told: the leader
compares the topic with what it assigned, whenever it refreshes its metadata (every 30 s here),
and rejoins. A JoinGroup of the leader always starts a rebalance, even with nothing changed in it.

Look at: the time between the growth and the rebalance; that its reason names the leader; that
until then nobody reads the new partitions.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    AddPartitions,
    ConsumerGroupSpec,
    ConsumerSpec,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="partitions-added",
    title="Partitions are added to a consumed topic",
    story="A topic grows from six to ten partitions at 40 s. The group's leader notices when it "
    "refreshes its metadata, and rejoins.",
    duration_ms=110_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=tuple(ConsumerSpec(name=f"consumer-{number}") for number in range(1, 4)),
            settings={"metadata.max.age.ms": "30000"},
        ),
    ),
    happenings=(AddPartitions(at_ms=40_000, topic="orders", to=10),),
)
