"""A consumer group moves from eager to cooperative rebalancing in two rolling bounces.

The first bounce adds `cooperative-sticky` in front of `range`: while one old member is left the
group goes on with `range`, and all members stay eager, because each follows the protocol that all
of its own assignors support. The second bounce takes `range` away. From then on nobody stops what
it keeps.

Look at: the protocol of each generation; every partition revoked in each rebalance of the first
bounce; only what moves is revoked at the end of the second one.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    RestartMember,
    Scenario,
    TopicSpec,
    rolling_bounce,
)

NAMES: Final = ("consumer-1", "consumer-2", "consumer-3")
STRATEGY: Final = "partition.assignment.strategy"

SCENARIO: Final = Scenario(
    name="cooperative-upgrade",
    title="From range to cooperative-sticky in two rolling bounces",
    story="Three consumers with range are restarted one by one with cooperative-sticky and range, "
    "then with cooperative-sticky alone; at 200 s one of them restarts once more.",
    duration_ms=240_000,
    topics=(TopicSpec(name="orders", partitions=9),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("range",),
            members=tuple(ConsumerSpec(name=name) for name in NAMES),
        ),
    ),
    happenings=(
        *rolling_bounce(
            NAMES,
            first_at_ms=30_000,
            every_ms=20_000,
            down_ms=4_000,
            settings={STRATEGY: "cooperative-sticky,range"},
        ),
        *rolling_bounce(
            NAMES,
            first_at_ms=110_000,
            every_ms=20_000,
            down_ms=4_000,
            settings={STRATEGY: "cooperative-sticky"},
        ),
        RestartMember(at_ms=200_000, member="consumer-2", down_ms=4_000),
    ),
)
