"""A Connect worker reads 30 million source offsets before it joins: what it costs, in which phase.

Nothing was compacted away. A worker of Connect 4.3.1 needs five to six microseconds a record on the
machine on which it was measured (docs/guides/connect-start-up.md), so nearly three minutes for all
of them; the statuses and configurations after them take no time, and the join what a first join
takes. Neither the group's coordinator nor the REST API shows any of it.

Look at: the phases at the end. With `offset.storage.partitions` and more brokers the bytes come in
parallel, but one thread of the worker works on all records: it takes as long.
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, Scenario, WorkerSpec
from coordinator_sim.sim.scenario.world import InternalTopicsSpec

SCENARIO: Final = Scenario(
    name="connect-startup-30-million",
    title="A Connect worker that reads 30 million source offsets before it joins",
    story="One worker starts in a cluster whose offset topic holds 30 million records.",
    duration_ms=240_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(WorkerSpec(name="worker-1"),),
            connectors={"jdbc-orders": 4},
            internal_topics=InternalTopicsSpec(offset_records=30_000_000, config_records=900),
        ),
    ),
)
