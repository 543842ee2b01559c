"""Slow processing: a consumer does not poll within `max.poll.interval.ms`.

One batch keeps consumer-2 busy for 50 s, longer than its `max.poll.interval.ms` of 30 s. Its
heartbeat thread goes on meanwhile, so the coordinator believes it healthy; then that thread itself
gives up and leaves the group. When the batch is done the application polls and learns it: its
partitions are lost, their progress can no longer be committed, and it joins as a new member.

Look at: the member is removed by a LeaveGroup with the reason "consumer poll timeout has expired.",
not by its session; two rebalances, one for leaving and one for coming back; LOST at the client:
the position it had reached and the offset that the next owner fetches are a batch apart.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    Scenario,
    SlowPoll,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="slow-processing",
    title="Slow processing past max.poll.interval.ms",
    story="A batch of 50 s keeps one of three consumers from polling, with max.poll.interval.ms at "
    "30 s. It leaves by itself and comes back when the batch is done.",
    duration_ms=110_000,
    topics=(TopicSpec(name="orders", partitions=9),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=tuple(ConsumerSpec(name=f"consumer-{number}") for number in range(1, 4)),
            settings={"max.poll.interval.ms": "30000"},
        ),
    ),
    happenings=(SlowPoll(at_ms=30_000, member="consumer-2", for_ms=50_000),),
)
