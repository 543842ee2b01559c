"""A subscription changes, the join that follows fails, and the subscription changes back.

Consumer 1 subscribes to a second topic and begins to rejoin; the answer to its JoinGroup is lost.
Before it can ask again, its subscription is what it was. It has given its partitions up for a join
that never happened, so it has to send a JoinGroup all the same.

Look at: the partitions of consumer 1 revoked once and assigned again; every partition owned in the
end (KAFKA-9815, where the consumer thought that nothing had changed and went on with nothing).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ChangeSubscription,
    ConsumerGroupSpec,
    ConsumerSpec,
    DropResponse,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="subscription-reverted",
    title="A subscription changed and changed back around a lost JoinGroup",
    story="Consumer 1 subscribes to payments too at 30 s, the answer to its JoinGroup is lost, and "
    "at 40 s it subscribes to orders alone again.",
    duration_ms=120_000,
    topics=(TopicSpec(name="orders", partitions=6), TopicSpec(name="payments", partitions=4)),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"max.poll.interval.ms": "20000", "request.timeout.ms": "15000"},
            members=tuple(ConsumerSpec(name=f"consumer-{number}") for number in range(1, 4)),
        ),
    ),
    happenings=(
        DropResponse(at_ms=30_000, member="consumer-1", api="JOIN_GROUP"),
        ChangeSubscription(at_ms=30_000, member="consumer-1", topics=("orders", "payments")),
        ChangeSubscription(at_ms=40_000, member="consumer-1", topics=("orders",)),
    ),
)
