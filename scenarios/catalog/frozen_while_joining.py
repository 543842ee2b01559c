"""A consumer whose application is busy receives its assignment, and is removed before it looks.

A third consumer starts. Consumer 2 has asked for its new assignment when its application goes to
work for a minute; its other thread receives the assignment and heartbeats for it. Then the process
is frozen for longer than its session. When it thaws, a heartbeat tells that it is unknown, and the
generation is gone before the application has seen the assignment.

Look at: no error that ends the application; an assignment that is never taken up; partitions lost,
and one new member id (KAFKA-8104 and KAFKA-9140, where the application went on with a generation
that was no more, and failed or never joined again).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    DelayResponse,
    PauseMember,
    Scenario,
    SlowPoll,
    StartMember,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="frozen-while-joining",
    title="A consumer removed before its application sees the assignment",
    story="Consumer 3 starts at 30 s; consumer 2 joins, is busy for a minute while its assignment "
    "arrives, and is frozen from 40 s to 60 s with a session of 10 s.",
    duration_ms=150_000,
    topics=(TopicSpec(name="orders", partitions=6),),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            settings={"session.timeout.ms": "10000"},
            members=(
                ConsumerSpec(name="consumer-1"),
                ConsumerSpec(name="consumer-2"),
                ConsumerSpec(name="consumer-3", start_ms=None),
            ),
        ),
    ),
    happenings=(
        StartMember(at_ms=30_000, member="consumer-3"),
        DelayResponse(at_ms=30_000, member="consumer-2", api="SYNC_GROUP", by_ms=2_000),
        SlowPoll(at_ms=33_200, member="consumer-2", for_ms=60_000),
        PauseMember(at_ms=40_000, member="consumer-2", for_ms=20_000),
    ),
)
