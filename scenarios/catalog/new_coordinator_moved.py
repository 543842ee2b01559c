"""The coordinator moves in the middle of a reconciliation of the consumer protocol.

A third consumer joins two. While the old members give up their share, the leadership of the group's
offsets partition moves to another broker. It replays the group: epochs, target, and what each
member has, gives up and waits for.

Look at: the heartbeats that acknowledge are told NOT_COORDINATOR, the members find the new
coordinator and tell everything once more; no epoch is taken back, nothing is lost, and the newcomer
gets its share from the new coordinator.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    MoveCoordinator,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="new-coordinator-moved",
    title="A coordinator moves while a new group reconciles",
    story="A third consumer with group.protocol=consumer joins at 30 s; while the others give up "
    "partitions for it, the coordinator moves to another broker.",
    duration_ms=75_000,
    brokers=3,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"group.protocol": "consumer"},
            members=(
                ConsumerSpec(name="consumer-1", callback_ms=1_500),
                ConsumerSpec(name="consumer-2"),
                ConsumerSpec(name="newcomer", start_ms=30_000),
            ),
        ),
    ),
    happenings=(MoveCoordinator(at_ms=31_500, group_id="orders-app"),),
)
