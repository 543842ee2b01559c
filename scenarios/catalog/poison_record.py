"""Poison record: one record that no member can process within `max.poll.interval.ms`.

Record 700 of orders-2 takes two minutes; `max.poll.interval.ms` is 30 s. Its owner leaves the group
in the middle of it, the next one begins at the last commit and meets the same record, and so on.
What a member has processed at last it cannot commit any more.

Look at: LeaveGroup "consumer poll timeout has expired." of one member after the other; orders-2,
which is never committed beyond 700; the lag of the group.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    CommitPolicy,
    ConsumerGroupSpec,
    ConsumerSpec,
    PerRecord,
    Scenario,
    TopicSpec,
)
from coordinator_sim.sim.scenario.load import PoisonRecords

SCENARIO: Final = Scenario(
    name="poison-record",
    title="A poison record goes round the group",
    story="Of three consumers with a max.poll.interval.ms of 30 s each in turn spends two minutes "
    "on record 700 of orders-2, leaves by itself, and hands it to the next.",
    duration_ms=300_000,
    topics=(
        TopicSpec(
            name="orders",
            partitions=6,
            records_per_s=10,
            poison=PoisonRecords(ms=120_000, at=((2, 700),)),
        ),
    ),
    groups=(
        ConsumerGroupSpec(
            group_id="orders-app",
            topics=("orders",),
            assignors=("cooperative-sticky",),
            settings={"max.poll.interval.ms": "30000"},
            members=tuple(
                ConsumerSpec(
                    name=f"consumer-{number}",
                    processing=PerRecord(us=2_000),
                    commits=CommitPolicy(when="sync"),
                )
                for number in range(1, 4)
            ),
        ),
    ),
    objective_lag_ms=10_000,
)
