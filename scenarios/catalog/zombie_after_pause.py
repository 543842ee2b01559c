"""A zombie after a pause: a process stops for longer than its session, then goes on.

consumer-1 is frozen for 25 s (a long garbage collection, a suspended machine), its session is 10 s.
The coordinator removes it and gives its partitions away. When it wakes up it does not know: it goes
on with the batch it holds, and for a moment two processes work on one partition. Its commit and its
heartbeat are refused, because neither its member id nor its generation is known any more.

Look at: MEMBER_FAILED during the pause; OFFSET_COMMIT with an error after it: fencing by generation
is what keeps the zombie from setting offsets back; LOST instead of REVOKED at the client.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    PauseMember,
    Scenario,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="zombie-after-pause",
    title="A zombie consumer after a pause longer than its session",
    story="A consumer is frozen for 25 s with a session of 10 s. Its partitions are given away; "
    "when it goes on, its commits and heartbeats are refused and it joins anew.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders", partitions=9),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            members=tuple(ConsumerSpec(name=f"consumer-{number}") for number in range(1, 4)),
            settings={"session.timeout.ms": "10000"},
        ),
    ),
    happenings=(PauseMember(at_ms=30_000, member="consumer-1", for_ms=25_000),),
)
