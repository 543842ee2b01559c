"""Rolling deploy of a consumer group: every consumer is restarted once.

Eight consumers share two topics with 32 partitions. A deploy stops one after another in good
order, so each leaves the group; each is away for 8 s and comes back as a new member. That makes
two membership changes a consumer. This is half of what `demo` runs, once for each assignor.

Look at: how many partitions change their owner although their owner stayed. `range` and
`roundrobin` deal anew each time; `sticky` moves little, but makes every member let go of all it has
and wait for the slowest; `cooperative-sticky` moves as little and takes nothing from those who
keep it, at the price of a second rebalance whenever something has to move.

As written this is an exact world: members act in the same millisecond, so the wait for the slowest
is no wait. What a deploy costs is told by worlds that are drawn, `run --varied` and `demo`.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    Scenario,
    TopicSpec,
    rolling_bounce,
)

MEMBERS: Final = tuple(f"consumer-{number}" for number in range(1, 9))

SCENARIO: Final = Scenario(
    name="consumer-rolling-deploy",
    title="Rolling deploy of consumers",
    story="Eight consumers of 32 partitions are restarted one by one, 30 s apart, each away for "
    "8 s. Every restart is two membership changes.",
    duration_ms=330_000,
    topics=(
        TopicSpec(name="orders", partitions=20),
        TopicSpec(name="payments", partitions=12),
    ),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders", "payments"),
            members=tuple(ConsumerSpec(name=name) for name in MEMBERS),
            assignors=("range",),
        ),
    ),
    happenings=rolling_bounce(MEMBERS, first_at_ms=60_000, every_ms=30_000, down_ms=8_000),
)
