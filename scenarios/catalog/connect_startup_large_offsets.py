"""A Connect worker cannot join before it has read the offset topic, and that takes two minutes.

The topic's offsets go up to 30 million, of which compaction has left two: that follows from how
the topic was written and cleaned. 21,000 source partitions have committed once an hour for sixty
days and six hours, at Kafka's own settings. A segment stays open for a week and is never cleaned,
so what was written since the last one was closed is all there, and of what lies before one record
for each source partition.

A worker reads all of them before it looks for its coordinator: first the offsets, then the
statuses, then the configurations, of which there are fewer than a thousand. The group knows nothing
of it all the while. What a record costs is not derived but assumed: 58 us, so that two million take
the two minutes of the source documents. Measured were 5 us on a worker of today, with which the
same topic takes eleven seconds (docs/guides/connect-start-up.md).

Look at: the phases at the end; that a bounced worker is away for two minutes and gets its work back
after five, when the scheduled delay is over.
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, RestartMember, Scenario, WorkerSpec
from coordinator_sim.sim.scenario.world import InternalTopicsSpec, OffsetHistory, TopicCosts

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
                offset_history=OffsetHistory(
                    source_partitions=21_000,
                    commit_every_ms=3_600_000,
                    written_ms=(60 * 24 + 6) * 3_600_000,
                ),
                config_records=900,
                status_records=900,
                costs=TopicCosts(record_ns=58_000),
            ),
        ),
    ),
    happenings=(RestartMember(at_ms=200_000, member="worker-2", down_ms=5_000),),
)
