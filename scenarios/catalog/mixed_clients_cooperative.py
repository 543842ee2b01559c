"""Mixed clients, cooperative: Java, librdkafka and franz-go give partitions up one by one.

The three clients share a group with the cooperative-sticky assignor. A Java consumer has the whole
topic; librdkafka and franz-go join, then the Java consumer, which leads, restarts.

Look at: nobody stops consuming what it keeps. librdkafka rejoins for the second rebalance at the
earliest a second after its last JoinGroup, Java at its next heartbeat, franz-go half a second into
its session, because it beats once early to notice exactly this.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    RestartMember,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="mixed-clients-cooperative",
    title="Java, librdkafka and franz-go in one cooperative group",
    story="Three clients share a cooperative-sticky group: two join a Java consumer that owns the "
    "whole topic, and then the Java consumer restarts.",
    duration_ms=80_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("cooperative-sticky",),
            members=(
                ConsumerSpec(name="on-java"),
                ConsumerSpec(name="on-librdkafka", client="librdkafka", start_ms=10_000),
                ConsumerSpec(name="on-franz-go", client="franz-go", start_ms=25_000),
            ),
            settings={"session.timeout.ms": "6000"},
        ),
    ),
    happenings=(RestartMember(at_ms=45_000, member="on-java", down_ms=5_000),),
)
