"""Rolling deploy of a Connect cluster: every worker is restarted once.

Four workers run three connectors with 21 tasks. A deploy stops one worker after another in good
order, each is away for 20 s, and the next one follows when the cluster had time to settle. This is
half of what `demo` runs, once for each value of `connect.protocol`.

Look at: under `eager` every stop and every return stops and starts all work of the cluster. Under
`compatible` and `sessioned` the work of a worker that is away waits for it during the scheduled
delay (its default of 5 minutes is more than the 20 s) and nobody else is touched. What that costs
is told by drawn worlds, `run --varied` and `demo`, in which starts and stops take their time.
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, Scenario, WorkerSpec, rolling_bounce

WORKERS: Final = tuple(f"worker-{number}" for number in range(1, 5))

SCENARIO: Final = Scenario(
    name="connect-rolling-deploy",
    title="Rolling deploy of Connect workers",
    story="Four workers with three connectors and 21 tasks are restarted one by one, 60 s apart, "
    "each away for 20 s.",
    duration_ms=420_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=name) for name in WORKERS),
            connectors={"jdbc-orders": 6, "s3-archive": 8, "elastic-search": 7},
        ),
    ),
    happenings=rolling_bounce(WORKERS, first_at_ms=60_000, every_ms=60_000, down_ms=20_000),
)
