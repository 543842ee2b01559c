"""Scale-out of a share group beyond the number of partitions.

Two members cannot keep up with one partition: a record takes 20 ms, and 200 come each second. At
30 s four more start. The partition is assigned to all six, none gives anything up, and each record
still goes to one of them.

Look at: TARGET_ASSIGNED with the same partition for every member; no member stops when others
join; the offsets delivered per second before and after, where a consumer group of one partition
would have five idle members.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    PerRecord,
    Scenario,
    ShareConsumerSpec,
    ShareGroupSpec,
    TopicSpec,
    scale_out,
)

FIRST: Final = tuple(f"worker-{number}" for number in range(1, 3))
ADDED: Final = tuple(f"worker-{number}" for number in range(3, 7))

SCENARIO: Final = Scenario(
    name="share-scale-out",
    title="Scale-out of a share group beyond its partitions",
    story="Two members work on one partition and fall behind; at 30 s four more start and share "
    "it, and the group catches up.",
    duration_ms=90_000,
    topics=(TopicSpec(name="orders", partitions=1, records_per_s=200),),
    groups=(
        ShareGroupSpec(
            group_id="orders-workers",
            topics=("orders",),
            members=(
                *(ShareConsumerSpec(name=name, processing=PerRecord(us=20_000)) for name in FIRST),
                *(
                    ShareConsumerSpec(name=name, start_ms=None, processing=PerRecord(us=20_000))
                    for name in ADDED
                ),
            ),
            settings={"max.poll.records": "20", "share.acquire.mode": "record_limit"},
        ),
    ),
    happenings=scale_out(ADDED, first_at_ms=30_000, every_ms=400),
)
