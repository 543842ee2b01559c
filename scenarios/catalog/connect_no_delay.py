"""A Connect worker is lost in a cluster that does not wait for lost workers.

With `scheduled.rebalance.max.delay.ms` at 0 the leader deals lost work out in the generation in
which it misses it.

Look at: one generation after the crash, without a delay, in which the others have everything
(KAFKA-15693, where 0 meant another rebalance all the same).
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, CrashMember, Scenario, WorkerSpec

SCENARIO: Final = Scenario(
    name="connect-no-delay",
    title="A Connect worker lost without a scheduled delay",
    story="One of three workers is killed at 60 s; the scheduled delay is 0, and its work moves in "
    "the generation that notices.",
    duration_ms=120_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=10_000),
                WorkerSpec(name="worker-3", start_ms=10_000),
            ),
            connectors={"jdbc-orders": 4, "s3-archive": 5},
            settings={"scheduled.rebalance.max.delay.ms": "0"},
        ),
    ),
    happenings=(CrashMember(at_ms=60_000, member="worker-3"),),
)
