"""A Connect worker is lost for longer than the scheduled delay.

One of three workers is killed and does not come back in time. The leader notices that its work is
unowned and holds it back for `scheduled.rebalance.max.delay.ms` (60 s here), so that a worker that
restarts finds its work again. When the delay is over the work goes to the two others. Minutes later
the lost worker returns and receives a fair share by one more round of revocation.

Look at: unowned connectors and tasks from the crash until the session and the delay are over; the
delay in the assignments; two rebalances in a row at the return: one revokes, the next one assigns.
Compare with `connect-worker-crash`, where the worker is back before the delay is over.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    CrashMember,
    Scenario,
    StartMember,
    WorkerSpec,
)

SCENARIO: Final = Scenario(
    name="connect-worker-lost",
    title="A Connect worker lost for longer than the scheduled delay",
    story="One of three workers is killed at 40 s; its work stays unowned for its session and the "
    "scheduled delay of 60 s, then moves. At 160 s the worker returns.",
    duration_ms=240_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=f"worker-{number}") for number in range(1, 4)),
            connectors={"jdbc-orders": 4, "s3-archive": 5},
            settings={"scheduled.rebalance.max.delay.ms": "60000"},
        ),
    ),
    happenings=(
        CrashMember(at_ms=40_000, member="worker-2"),
        StartMember(at_ms=160_000, member="worker-2"),
    ),
)
