"""Crash of a member: a consumer dies without a word.

One of four consumers is killed. It sends no LeaveGroup, so its partitions belong to a dead process
until its session of 10 s is over: the coordinator cannot know earlier. Then it is removed, the
others learn of the rebalance by their next heartbeat, and rejoin.

Look at: MEMBER_FAILED comes one session timeout after the dead member's last heartbeat; its three
partitions rest for that long plus the rebalance. Committed offsets say where the new owners begin.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    CrashMember,
    Scenario,
    TopicSpec,
)

MEMBERS: Final = tuple(f"consumer-{number}" for number in range(1, 5))

SCENARIO: Final = Scenario(
    name="member-crash",
    title="Crash of a consumer, noticed by its session timeout",
    story="One of four consumers is killed at 30 s. Its partitions rest until its session of 10 s "
    "ends and the others have rebalanced.",
    duration_ms=75_000,
    topics=(TopicSpec(name="orders", partitions=12),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=tuple(ConsumerSpec(name=name) for name in MEMBERS),
            settings={"session.timeout.ms": "10000"},
        ),
    ),
    happenings=(CrashMember(at_ms=30_000, member="consumer-3"),),
)
