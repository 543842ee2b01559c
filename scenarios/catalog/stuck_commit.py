"""A commit is never answered while a cooperative group rebalances.

Before it rejoins, a consumer commits what it has consumed, and waits for that. The answer is lost
again and again. The wait has an end, which is the rebalance timeout of 15 s, counted from when
the consumer began to wait. The coordinator counts from when the rebalance began, so it has removed
the member by then; the member learns that it is unknown and joins anew.

Look at: the consumer removed at 45 s; its partitions lost at 48 s, when its wait is over; a group
complete again at 51 s (KAFKA-14024, where the commit was tried for ever and the member never
rejoined).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    DropResponse,
    Scenario,
    StartMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="stuck-commit",
    title="Commits that are never answered before a rejoin",
    story="Consumer 3 starts at 30 s and the group rebalances; the answers to consumer 1's commits "
    "are lost, and it waits for them no longer than its rebalance timeout.",
    duration_ms=120_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("cooperative-sticky",),
            settings={"max.poll.interval.ms": "15000", "session.timeout.ms": "10000"},
            members=(
                ConsumerSpec(name="consumer-1"),
                ConsumerSpec(name="consumer-2"),
                ConsumerSpec(name="consumer-3", start_ms=None),
            ),
        ),
    ),
    happenings=(
        DropResponse(at_ms=30_000, member="consumer-1", api="OFFSET_COMMIT", count=5),
        StartMember(at_ms=30_000, member="consumer-3"),
    ),
)
