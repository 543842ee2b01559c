"""Mixed clients: Java, librdkafka and franz-go in one group.

A Java consumer runs; one on librdkafka and one on franz-go join it, all with the range assignor.
At 40 s the application on librdkafka is busy for 12 s, longer than `max.poll.interval.ms` of 8 s;
at 65 s the Java consumer is, too. Then the other two stop, one after the other.

Look at: librdkafka's main thread joins and beats while its application works, and it leaves the
group at the next half second after the interval is over; Java's heartbeat thread leaves at the
instant. franz-go watches no polls at all. Only Java and franz-go give a reason when they leave.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    Scenario,
    SlowPoll,
    StopMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="mixed-clients",
    title="Java, librdkafka and franz-go in one group",
    story="Three clients share a range group; the applications on librdkafka and Java are busy for "
    "longer than they may be, and two of the members stop.",
    duration_ms=105_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("range",),
            members=(
                ConsumerSpec(name="on-java"),
                ConsumerSpec(name="on-librdkafka", client="librdkafka", start_ms=10_000),
                ConsumerSpec(name="on-franz-go", client="franz-go", start_ms=20_000),
            ),
            settings={"session.timeout.ms": "6000", "max.poll.interval.ms": "8000"},
        ),
    ),
    happenings=(
        SlowPoll(at_ms=40_000, member="on-librdkafka", for_ms=12_000),
        SlowPoll(at_ms=65_000, member="on-java", for_ms=12_000),
        StopMember(at_ms=90_000, member="on-librdkafka"),
        StopMember(at_ms=95_000, member="on-franz-go"),
    ),
)
