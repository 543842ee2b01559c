"""Topics appear that a group reads by an expression, which its coordinator resolves.

Four consumers of the consumer protocol subscribe to `orders-.*`. The expression is RE2, and the
coordinator matches it: at once when a topic is created, at the next heartbeat of some member. The
members ask for the names of the topics that they are given, by their ids.

Look at: one new target for each new topic, however many members read the expression; the members
that are given a topic that they do not know acknowledge what they know, ask for its name, and have
it with the next step. In `pattern-storm` each classic consumer has to see the topic itself.
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
    name="new-regex",
    title="Topics appear that a new group reads by an expression",
    story="Four consumers with group.protocol=consumer subscribe to orders-.*; topics are created "
    "at 30 s and at 60 s.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders-eu", partitions=4), TopicSpec(name="payments", partitions=4)),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=(),
            pattern="orders-.*",
            settings={"group.protocol": "consumer"},
            members=tuple(
                ConsumerSpec(name=f"consumer-{number}", start_ms=1_400 * number)
                for number in range(4)
            ),
        ),
    ),
    happenings=(
        CreateTopic(at_ms=30_000, topic="orders-us", partitions=4),
        CreateTopic(at_ms=60_000, topic="orders-asia", partitions=4),
    ),
)
