"""The answer to a heartbeat of an old generation arrives after the member has begun to join anew.

A static consumer is frozen for longer than its session, so that the coordinator removes it. When
it goes on, the answers to its heartbeats take four seconds. The first one, UNKNOWN_MEMBER_ID, makes
it give everything up and join; no commit could be refused before, there is none. The second one
was sent in the old generation too, and its answer comes in the middle of the join: it is about a
generation that the member is no longer in.

Look at: two refused heartbeats, one loss and one JoinGroup (KAFKA-9823, where a stale error reset
the member again, and it joined twice).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    DelayResponse,
    PauseMember,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="late-heartbeat-answer",
    title="Heartbeat answers of an old generation arrive late",
    story="Consumer 2 is frozen from 30 s to 45 s with a session of 10 s; the answers to the "
    "heartbeats that it sends then are 4 s late.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"session.timeout.ms": "10000", "enable.auto.commit": "false"},
            members=tuple(
                ConsumerSpec(name=f"consumer-{number}", instance_id=f"orders-{number}")
                for number in range(1, 4)
            ),
        ),
    ),
    happenings=(
        PauseMember(at_ms=30_000, member="consumer-2", for_ms=15_000),
        DelayResponse(at_ms=44_000, member="consumer-2", api="HEARTBEAT", by_ms=4_000, count=2),
    ),
)
