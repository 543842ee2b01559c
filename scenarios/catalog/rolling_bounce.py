"""A deploy restarts the consumers of a group one after another.

Six consumers share twelve partitions of one topic. From the first minute on, every twenty
seconds one of them closes in good order and is back two seconds later. Each stop and each return
costs the group a rebalance; how many partitions change hands is the assignor's doing.
"""

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    Scenario,
    TopicSpec,
    rolling_bounce,
)

MEMBERS = tuple(f"orders-{number}" for number in range(1, 7))

SCENARIO = Scenario(
    name="rolling-bounce",
    title="Rolling bounce of a consumer group",
    story=(
        "Six consumers share twelve partitions. A deploy closes one of them every twenty seconds "
        "and starts it again two seconds later: each member costs the group two rebalances."
    ),
    duration_ms=240_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=tuple(ConsumerSpec(name=name) for name in MEMBERS),
        ),
    ),
    happenings=rolling_bounce(MEMBERS, first_at_ms=60_000, every_ms=20_000, down_ms=2_000),
)
