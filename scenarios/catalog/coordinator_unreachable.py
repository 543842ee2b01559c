"""No broker can be reached for longer than the consumers' session.

All three brokers are cut off for 40 s, longer than the session of 10 s. The consumers go on with
what they have read and own: nobody tells them anything else. The coordinator, which lives, removes
them all. When the cut heals every one of them is unknown, gives its partitions up as lost, and
joins under a new id.

Look at: partitions lost and not revoked; one generation for everybody at the end; the generation
number that goes on.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    PartitionNetwork,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="coordinator-unreachable",
    title="All brokers out of reach for longer than the session",
    story="The three brokers are cut off from all consumers from 30 s to 70 s; the sessions are "
    "10 s.",
    duration_ms=120_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"session.timeout.ms": "10000"},
            members=tuple(ConsumerSpec(name=f"consumer-{number}") for number in range(1, 4)),
        ),
    ),
    happenings=tuple(
        PartitionNetwork(at_ms=30_000, broker=broker, for_ms=40_000) for broker in (1, 2, 3)
    ),
)
