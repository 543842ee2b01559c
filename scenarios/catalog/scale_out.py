"""Scale-out: a consumer group grows from three members to six.

Three consumers work for half a minute; then an autoscaler starts three more within a second.
Each newcomer first gets its member id (MEMBER_ID_REQUIRED), then joins. The first one to join moves
the group to PreparingRebalance; the others arrive while the old members still have to hear of it by
their heartbeats, so the same rebalance takes them up.

Look at: one rebalance for three newcomers, because they come within one heartbeat interval; the
time from PREPARE_REBALANCE to JOIN_COMPLETE, which is how long the slowest old member takes until
its next heartbeat and the end of its poll.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    Scenario,
    TopicSpec,
    scale_out,
)

FIRST: Final = tuple(f"consumer-{number}" for number in range(1, 4))
ADDED: Final = tuple(f"consumer-{number}" for number in range(4, 7))

SCENARIO: Final = Scenario(
    name="scale-out",
    title="Scale-out of a consumer group from three members to six",
    story="Three consumers own twelve partitions; at 30 s three more start within a second. "
    "Every partition count becomes two.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=(
                *(ConsumerSpec(name=name) for name in FIRST),
                *(ConsumerSpec(name=name, start_ms=None) for name in ADDED),
            ),
        ),
    ),
    happenings=scale_out(ADDED, first_at_ms=30_000, every_ms=400),
)
