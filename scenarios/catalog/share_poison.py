"""Poison in a share group: records on which every application fails.

Three members share two partitions. One record in five hundred cannot be processed: whoever gets it
releases it with its next fetch, which often gets it again, until the limit of deliveries archives
it.
The other records are not held up by it, as they would be behind a consumer's position.

Look at: RECORDS_DELIVERED of one offset with `deliveries` from 1 to 5; offsets beyond it that are
accepted meanwhile; no delivery after the fifth.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    RecordFates,
    Scenario,
    ShareConsumerSpec,
    ShareGroupSpec,
    TopicSpec,
)

SCENARIO: Final = Scenario(
    name="share-poison",
    title="Poison in a share group",
    story="One record in 500 fails at each of its five deliveries and is archived; three members "
    "share two partitions, and the other records go on.",
    duration_ms=60_000,
    topics=(TopicSpec(name="orders", partitions=2, records_per_s=50),),
    groups=(
        ShareGroupSpec(
            group_id="orders-workers",
            topics=("orders",),
            members=tuple(
                ShareConsumerSpec(
                    name=f"worker-{number}",
                    acknowledges="explicit",
                    fates=RecordFates(poison_every=500),
                )
                for number in range(1, 4)
            ),
            group_settings={"share.delivery.count.limit": "5"},
        ),
    ),
)
