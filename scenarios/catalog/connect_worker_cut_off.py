"""A Connect worker is cut off from all brokers for longer than its session.

Worker 3 hears nothing from its coordinator. Within six seconds of noticing it stops all that it
runs and forgets its assignment, so that nobody runs a task twice when its work is given away. The
others wait for it with the scheduled delay. It is back before the delay is over and receives its
work again.

Look at: the work stopped before any other worker could be given it (KAFKA-9184, where a worker
without a coordinator went on as a zombie); no delay any more after the work is dealt out.
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, PartitionNetwork, Scenario, WorkerSpec

SCENARIO: Final = Scenario(
    name="connect-worker-cut-off",
    title="A Connect worker cut off from its coordinator",
    story="Worker 3 is cut off from 60 s to 100 s. It stops its work by itself, and is given it "
    "again when it is back within the scheduled delay of 60 s.",
    duration_ms=180_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=10_000),
                WorkerSpec(name="worker-3", start_ms=10_000),
            ),
            connectors={"jdbc-orders": 4, "s3-archive": 5},
            settings={"scheduled.rebalance.max.delay.ms": "60000"},
        ),
    ),
    happenings=(PartitionNetwork(at_ms=60_000, member="worker-3", for_ms=40_000),),
)
