"""A revocation that takes eight seconds: only those wait who are to get what it frees.

Two consumers of the consumer protocol share twelve partitions. Each callback of the first one takes
8 s, as that of an application that ends its work before it gives partitions up. Two more join.

Look at: the second consumer gives its share up within a second, and the newcomers read that before
the first one has begun to; what the first one gives up comes twenty seconds later, because it runs
two callbacks before it acknowledges. Nobody but the owners-to-be waits for it: the second one reads
on. In a classic group with a cooperative assignor the first one's callback holds up everybody's
next rebalance.
"""

from typing import Final

from coordinator_sim.sim.scenario import ConsumerGroupSpec, ConsumerSpec, Scenario, TopicSpec

SCENARIO: Final = Scenario(
    name="new-slow-revocation",
    title="A slow revocation in a group of the consumer protocol",
    story="Two consumers with group.protocol=consumer share twelve partitions; a callback of the "
    "first one takes 8 s. At 60 s two more join.",
    duration_ms=120_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"group.protocol": "consumer"},
            members=(
                ConsumerSpec(name="slow", callback_ms=8_000),
                ConsumerSpec(name="quick"),
                ConsumerSpec(name="newcomer-1", start_ms=60_000),
                ConsumerSpec(name="newcomer-2", start_ms=60_000),
            ),
        ),
    ),
)
