"""Twelve consumers are killed at once and come back before their sessions end.

A rack loses power for eight seconds. Its consumers come back with new ids while the coordinator
still waits for the old ones: the group it prepares has twenty-four members, of which twelve will
never answer. The rebalance ends when the sessions of the dead have ended.

Look at: members added before the old ones fail; how long nobody owns anything; two generations at
most until all is as before.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    RestartMember,
    Scenario,
    TopicSpec,
)

NAMES: Final = tuple(f"consumer-{number:02}" for number in range(1, 13))

SCENARIO: Final = Scenario(
    name="mass-restart",
    title="Twelve consumers killed and back at once",
    story="all twelve consumers are killed at 60 s and start again 8 s later, with sessions of "
    "20 s.",
    duration_ms=150_000,
    topics=(TopicSpec(name="orders", partitions=24),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"session.timeout.ms": "20000"},
            members=tuple(ConsumerSpec(name=name, processing_ms=1_000) for name in NAMES),
        ),
    ),
    happenings=tuple(
        RestartMember(at_ms=60_000, member=name, down_ms=8_000, graceful=False) for name in NAMES
    ),
)
