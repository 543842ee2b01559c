"""A Connect worker returns with an assignment that has been given to others.

Worker 3 is frozen for 50 s: its session ends, the scheduled delay of 15 s is over, and its work is
dealt out to the others. When it thaws it still runs what it had, and reports that with its
JoinGroup. The leader sees connectors and tasks that two workers run, takes them from both, and
deals them out once in the generation after that.

Look at: the same names revoked from two workers in one generation; nothing owned twice afterwards
(KAFKA-9841, where the duplicates stayed).
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, PauseMember, Scenario, WorkerSpec

SCENARIO: Final = Scenario(
    name="connect-outdated-worker",
    title="A Connect worker returns with an outdated assignment",
    story="Worker 3 is frozen from 60 s to 110 s, longer than its session and the scheduled delay. "
    "It wakes up running what the others were given meanwhile.",
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
            settings={"scheduled.rebalance.max.delay.ms": "15000"},
        ),
    ),
    happenings=(PauseMember(at_ms=60_000, member="worker-3", for_ms=50_000),),
)
