"""A deploy restarts the workers of a Connect cluster one after another.

Three workers run two connectors with nine tasks. From the first minute on, once a minute one
worker shuts down in good order and is back five seconds later. With `connect.protocol=eager`
every rebalance stops all tasks. The incremental protocols leave the departed worker's work
unassigned until `scheduled.rebalance.max.delay.ms` is over, and then give it to the worker that
came back; but a leader takes the memory of what it waited for with it.
"""

from coordinator_sim.sim.scenario import ConnectGroupSpec, Scenario, WorkerSpec, rolling_bounce

WORKERS = tuple(f"worker-{number}" for number in range(1, 4))

SCENARIO = Scenario(
    name="connect-worker-bounce",
    title="Rolling bounce of a Connect cluster",
    story=(
        "Three workers run two connectors with nine tasks. A deploy stops one worker a minute "
        "and starts it again five seconds later, within the scheduled delay of twenty seconds: "
        "under the incremental protocols the worker that came back gets the work of the departed."
    ),
    duration_ms=300_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=name) for name in WORKERS),
            connectors={"jdbc-source": 4, "s3-sink": 5},
            settings={"scheduled.rebalance.max.delay.ms": "20000"},
        ),
    ),
    happenings=rolling_bounce(WORKERS, first_at_ms=60_000, every_ms=60_000, down_ms=5_000),
)
