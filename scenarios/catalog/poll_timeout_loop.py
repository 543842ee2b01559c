"""Consumers that poll too slowly put out and pull in one another.

Each of three consumers is busy now and then for longer than `max.poll.interval.ms`. It leaves by
itself, the others take over its partitions, and minutes later it is back and everything moves
again. The restless members are never the same, so that the group is not left in peace.

Look at: LeaveGroup "consumer poll timeout has expired." every half minute; two rebalances for each;
the share of the time in which somebody's work stands still.
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
    name="poll-timeout-loop",
    title="Slow pollers keep a group rebalancing",
    story="Of three consumers each in turn is busy for 25 s, every 30 s, with a "
    "max.poll.interval.ms of 15 s.",
    duration_ms=330_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"max.poll.interval.ms": "15000"},
            members=tuple(ConsumerSpec(name=f"consumer-{number}") for number in range(1, 4)),
        ),
    ),
    happenings=tuple(
        SlowPoll(at_ms=30_000 + 30_000 * turn, member=f"consumer-{turn % 3 + 1}", for_ms=25_000)
        for turn in range(9)
    ),
)
