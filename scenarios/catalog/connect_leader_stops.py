"""The leader of a Connect cluster stops in good order and the others work on.

Of three workers the one that leads is stopped. The two others keep all that they run; what the
leader had is dealt out by the new leader in the very next generation.

Look at: no connector and no task of the survivors is stopped at any time (KAFKA-8463, where the
departure of the leader moved work that had nothing to do with it).
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, Scenario, StopMember, WorkerSpec

SCENARIO: Final = Scenario(
    name="connect-leader-stops",
    title="The leader of a Connect cluster stops in good order",
    story="Worker 1, which leads, stops at 60 s; the two others keep what they run and take over "
    "what it had.",
    duration_ms=120_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=10_000),
                WorkerSpec(name="worker-3", start_ms=10_000),
            ),
            connectors={"jdbc-orders": 3, "s3-archive": 6},
        ),
    ),
    happenings=(StopMember(at_ms=60_000, member="worker-1"),),
)
