"""Start-up storm: twenty consumers of a new group start within two seconds.

Without a delay each of them would cause a rebalance of its own. The coordinator answers the first
one only after `group.initial.rebalance.delay.ms` (3 s), and as long as others arrived meanwhile it
waits for another 3 s, up to the rebalance timeout.

Look at: one single generation with twenty members, about 6 s after the first JoinGroup; twenty
MEMBER_ID_ASSIGNED before it. With `--set group.initial.rebalance.delay.ms=0` the same storm shows
what the delay is for.
"""

from typing import Final

from coordinator_sim.sim.scenario import ConsumerGroupSpec, ConsumerSpec, Scenario, TopicSpec

MEMBER_COUNT: Final = 20

SCENARIO: Final = Scenario(
    name="startup-storm",
    title="Start-up storm of twenty consumers",
    story="Twenty consumers of a new group start 100 ms apart. The initial rebalance delay gathers "
    "them into one generation.",
    duration_ms=45_000,
    topics=(TopicSpec(name="orders", partitions=40),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=tuple(
                ConsumerSpec(name=f"consumer-{number:02}", start_ms=100 * (number - 1))
                for number in range(1, MEMBER_COUNT + 1)
            ),
        ),
    ),
)
