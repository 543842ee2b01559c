"""A member of the consumer protocol is fenced, and joins again under its old id.

One of three consumers is frozen for longer than its session. The coordinator removes it and gives
its partitions to the others. When it wakes up it sends its next heartbeat, with an epoch that
nobody has any more, and is told so.

Look at: it releases everything as lost, not revoked, and commits nothing of it; then it joins with
epoch 0 and the member id that it has had all along. A classic consumer would get another id.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    PauseMember,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="new-member-fenced",
    title="A fenced member of the consumer protocol",
    story="Three consumers with group.protocol=consumer; one is frozen for 25 s, with a session of "
    "12 s, and comes back.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders", partitions=9),),
    broker_settings={
        "group.consumer.session.timeout.ms": "12000",
        "group.consumer.heartbeat.interval.ms": "3000",
    },
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"group.protocol": "consumer"},
            members=tuple(ConsumerSpec(name=f"consumer-{number}") for number in range(1, 4)),
        ),
    ),
    happenings=(PauseMember(at_ms=30_000, member="consumer-2", for_ms=25_000),),
)
