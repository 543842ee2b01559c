"""A topic appears that a group of twenty consumers reads by a pattern.

Every consumer looks at the cluster's metadata every 30 s, each at its own time, and so they would
find the new topic one after the other. The first one that sees it rejoins with a larger
subscription, and the group rebalances; whoever rejoins looks at the metadata again first, and has
then seen the topic too.

Look at: one rebalance for one topic (KAFKA-7126, where each consumer found the topic by itself and
made everyone rejoin); the partitions of the new topic owned at the end.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    CreateTopic,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="pattern-storm",
    title="A new topic for twenty consumers with a pattern",
    story="Twenty consumers, started 1.4 s apart, read orders-.* and look at the metadata every "
    "30 s; at 60 s a second topic is created.",
    duration_ms=150_000,
    topics=(TopicSpec(name="orders-eu", partitions=10),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=(),
            pattern="orders-.*",
            assignors=("roundrobin",),
            settings={"metadata.max.age.ms": "30000"},
            members=tuple(
                ConsumerSpec(
                    name=f"consumer-{number:02}", start_ms=1_400 * number, processing_ms=1_000
                )
                for number in range(1, 21)
            ),
        ),
    ),
    happenings=(CreateTopic(at_ms=60_000, topic="orders-us", partitions=10),),
)
