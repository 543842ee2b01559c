"""A connector is added to a Connect cluster of three workers.

The cluster runs two connectors. A third one with six tasks is created: its configuration appears
in the config topic, every worker reads it there and asks to rejoin. Nobody stops anything: the
workers join with what they run, the leader assigns only the new connector, then its tasks.

Look at: each worker's ASSIGNED holds the new work alone and revokes nothing; no work that ran
before is stopped. With `connect.protocol=eager` every connector and task is stopped and started
instead.
"""

from typing import Final

from coordinator_sim.sim.scenario import AddConnector, ConnectGroupSpec, Scenario, WorkerSpec

SCENARIO: Final = Scenario(
    name="connector-added",
    title="A connector is added to a Connect cluster",
    story="Three workers run two connectors; at 40 s a third connector with six tasks is created. "
    "Under the incremental protocol nothing that runs is stopped.",
    duration_ms=100_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=f"worker-{number}") for number in range(1, 4)),
            connectors={"jdbc-orders": 4, "s3-archive": 5},
        ),
    ),
    happenings=(
        AddConnector(at_ms=40_000, group_id="connect-cluster", connector="elastic-search", tasks=6),
    ),
)
