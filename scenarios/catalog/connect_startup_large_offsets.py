"""A Connect worker cannot join before it has read the offset topic, and that takes two minutes.

The topic's offsets go up to 30 million; compaction has left two million of the records. A worker
reads all of them before it looks for its coordinator: first the offsets, then the statuses, then
the configurations, of which there are fewer than a thousand. The group knows nothing of it all the
while. A record costs this worker 58 us, as it did the one that the source documents describe; what
it costs a worker of today is in docs/guides/connect-start-up.md.

Look at: the phases at the end; that a bounced worker is away for two minutes and gets its work back
after five, when the scheduled delay is over.
"""

from typing import Final

from coordinator_sim.scenario import ConnectGroupSpec, RestartMember, Scenario, WorkerSpec
from coordinator_sim.scenario.world import InternalTopicsSpec, TopicCosts

SCENARIO: Final = Scenario(
    name="connect-startup-large-offsets",
    title="Connect workers that read two million source offsets before they join",
    story="Both workers of a Connect cluster start, and take two minutes to read the offset topic; "
    "worker 2 is restarted at 200 s, and back before the scheduled delay has passed.",
    duration_ms=520_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(WorkerSpec(name="worker-1"), WorkerSpec(name="worker-2")),
            connectors={"jdbc-orders": 4, "s3-archive": 3},
            internal_topics=InternalTopicsSpec(
                offset_records=2_000_000,
                offset_end=30_000_000,
                config_records=900,
                status_records=900,
                costs=TopicCosts(record_ns=58_000),
            ),
        ),
    ),
    happenings=(RestartMember(at_ms=200_000, member="worker-2", down_ms=5_000),),
)
