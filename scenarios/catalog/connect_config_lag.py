"""A Connect worker cannot read the config topic while the cluster's configuration changes.

Worker 3 reads no new record for two minutes, and meanwhile a connector is created. Its assignment
names an offset that it has not read. It tries to read up to it for `worker.sync.timeout.ms`, leaves
the group so that the others need not wait for it, sleeps and tries again: five times with growing
pauses, tenths of the scheduled delay, keeping its work. After the sixth failure it stops what it
runs, before the others are given it at the end of the delay.

Look at: LeaveGroup "taking too long to read the log"; 84 s later the work that is stopped, long
before the leader would have given it to the others (KAFKA-9849).
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    AddConnector,
    ConnectGroupSpec,
    LagConfigTopic,
    Scenario,
    WorkerSpec,
)

SCENARIO: Final = Scenario(
    name="connect-config-lag",
    title="A Connect worker that cannot read the config topic",
    story="Worker 3 reads nothing of the config topic from 60 s on, for two minutes; a connector "
    "is created at 61 s. It leaves, tries again, and in the end stops its work.",
    duration_ms=300_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=10_000),
                WorkerSpec(name="worker-3", start_ms=10_000),
            ),
            connectors={"jdbc-orders": 4},
        ),
    ),
    happenings=(
        LagConfigTopic(at_ms=60_000, member="worker-3", for_ms=120_000),
        AddConnector(at_ms=61_000, group_id="connect-cluster", connector="s3-archive", tasks=5),
    ),
)
