"""A Connect worker crashes and returns within the scheduled delay.

One of three workers is killed and restarted 25 s later. Its session of 10 s ends first: the others
rebalance, and the leader holds the lost work back for `scheduled.rebalance.max.delay.ms` (60 s
here) instead of moving it. The worker returns with nothing and under a new member id; when the
delay is over the leader hands the lost work to the worker without any, which is the one returned.

Look at: no task of the two others is ever stopped; the delay shrinks from rebalance to rebalance;
the lost work rests for the whole delay although its worker was back after 25 s.
Compare with `connect-worker-lost`, where the worker is not back in time.
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, RestartMember, Scenario, WorkerSpec

SCENARIO: Final = Scenario(
    name="connect-worker-crash",
    title="A Connect worker crashes and returns within the scheduled delay",
    story="One of three workers is killed at 40 s and is back at 65 s, before the scheduled delay "
    "of 60 s has run out. It gets its work back, and nobody else's work is touched.",
    duration_ms=180_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=f"worker-{number}") for number in range(1, 4)),
            connectors={"jdbc-orders": 4, "s3-archive": 5},
            settings={"scheduled.rebalance.max.delay.ms": "60000"},
        ),
    ),
    happenings=(RestartMember(at_ms=40_000, member="worker-2", down_ms=25_000, graceful=False),),
)
