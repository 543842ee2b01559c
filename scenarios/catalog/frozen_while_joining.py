"""A consumer is frozen between its SyncGroup and the answer, for longer than its session.

A third consumer starts. While the new generation is being handed out, consumer 2 is frozen for
20 s. When it thaws, its assignment waits for it, of a generation that has moved on without it: it
takes the assignment, learns by its next heartbeat that it is unknown, gives its partitions up as
lost, and joins again.

Look at: no error that ends the application; LOST instead of REVOKED; a new member id (KAFKA-8104
and KAFKA-9140, where the heartbeat's reset in the middle of a join ended in an exception).
"""

from typing import Final

from coordinator_sim.scenario import (
    ConstantLatency,
    ConsumerGroupSpec,
    ConsumerSpec,
    NetworkSpec,
    PauseMember,
    Scenario,
    StartMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="frozen-while-joining",
    title="A consumer frozen in the middle of a join",
    story="Consumer 3 starts at 30 s, and consumer 2 is frozen for 20 s while its new assignment "
    "is on the way; the session is 10 s.",
    duration_ms=120_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    network=NetworkSpec(latency=ConstantLatency(us=50_000)),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"session.timeout.ms": "10000"},
            members=(
                ConsumerSpec(name="consumer-1"),
                ConsumerSpec(name="consumer-2"),
                ConsumerSpec(name="consumer-3", start_ms=None),
            ),
        ),
    ),
    happenings=(
        StartMember(at_ms=30_000, member="consumer-3"),
        PauseMember(at_ms=31_000, member="consumer-2", for_ms=20_000),
    ),
)
