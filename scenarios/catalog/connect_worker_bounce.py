"""A deploy restarts the workers of a Connect cluster one after another.

Three workers run two connectors with nine tasks. From the first minute on, every forty seconds
one worker shuts down in good order and is back five seconds later. With `connect.protocol=eager`
every rebalance stops all tasks; the incremental protocols leave the departed worker's tasks
unassigned for up to `scheduled.rebalance.max.delay.ms` and give them back to the worker that
returns.
"""

from coordinator_sim.scenario import ConnectGroupSpec, Scenario, WorkerSpec, rolling_bounce

WORKERS = tuple(f"worker-{number}" for number in range(1, 4))

SCENARIO = Scenario(
    name="connect-worker-bounce",
    title="Rolling bounce of a Connect cluster",
    story=(
        "Three workers run two connectors with nine tasks. A deploy stops one worker every forty "
        "seconds and starts it again five seconds later, well within the scheduled delay of one "
        "minute: under the incremental protocols each worker gets its own tasks back."
    ),
    duration_ms=300_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=name) for name in WORKERS),
            connectors={"jdbc-source": 4, "s3-sink": 5},
            settings={"scheduled.rebalance.max.delay.ms": "60000"},
        ),
    ),
    happenings=rolling_bounce(WORKERS, first_at_ms=60_000, every_ms=40_000, down_ms=5_000),
)
