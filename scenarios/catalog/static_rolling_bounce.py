"""Rolling bounce of a consumer group with static membership.

Six consumers have a `group.instance.id` each and are restarted one after another, as a deploy does.
A static consumer does not leave when it closes, and it is back long before its session of 45 s
ends. So the coordinator gives the new process a new member id under the old instance id and answers
it from memory: the generation stays, nobody else is asked to rejoin.

Look at: the generation is the same before and after the deploy; there is one STATIC_REPLACED and
no PREPARE_REBALANCE for each restart; each partition rests only while its own consumer is away.
Compare with `rolling-bounce`, where the same deploy costs two rebalances a consumer.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    Scenario,
    TopicSpec,
    rolling_bounce,
)

MEMBERS: Final = tuple(f"consumer-{number}" for number in range(1, 7))

SCENARIO: Final = Scenario(
    name="static-rolling-bounce",
    title="Rolling bounce of consumers with static membership",
    story="Six static consumers are restarted one by one, 15 s apart, each away for 5 s. None of "
    "them leaves, so no restart causes a rebalance.",
    duration_ms=150_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=tuple(
                ConsumerSpec(name=name, instance_id=f"instance-{name}") for name in MEMBERS
            ),
        ),
    ),
    happenings=rolling_bounce(MEMBERS, first_at_ms=30_000, every_ms=15_000, down_ms=5_000),
)
