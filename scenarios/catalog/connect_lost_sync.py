"""The answer to a worker's SyncGroup is lost while nobody has left.

A connector is created, and the new assignment never reaches worker 3. Its request times out after
12 s, it looks for its coordinator and joins again, with the same id. The leader assigned tasks
that were never started; nobody left, so it takes them for undelivered and not for lost.

Look at: no scheduled delay in any assignment (KAFKA-9848, where a failed SyncGroup started one of
five minutes); all tasks of the new connector started in the end.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    AddConnector,
    ConnectGroupSpec,
    DropResponse,
    Scenario,
    WorkerSpec,
)

SCENARIO: Final = Scenario(
    name="connect-lost-sync",
    title="A SyncGroup answer lost in a Connect cluster",
    story="A connector is created at 60 s and the assignments for worker 3 are lost on their way. "
    "It asks again after its request timeout of 12 s.",
    duration_ms=120_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=10_000),
                WorkerSpec(name="worker-3", start_ms=10_000),
            ),
            connectors={"jdbc-orders": 4},
            settings={"request.timeout.ms": "12000"},
        ),
    ),
    happenings=(
        DropResponse(at_ms=59_000, member="worker-3", api="SYNC_GROUP"),
        AddConnector(at_ms=60_000, group_id="connect-cluster", connector="s3-archive", tasks=5),
    ),
)
