"""The leader of a Connect cluster is killed: no scheduled delay.

Worker 1 started first and leads. When it is killed, another worker leads, and a leader's memory of
who had what is its own: the new one sees work that nobody has, as if it were just created, and
deals it out at once. Only the loss of a follower is waited for. When worker 1 returns, one
generation revokes and the next one assigns, as for any newcomer.

Look at: the delay in the assignments after the crash, which is nothing although
`scheduled.rebalance.max.delay.ms` is five minutes; the work that the survivors keep running.
Compare with `connect-worker-lost`, where a follower is lost.
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
    name="connect-leader-lost",
    title="The leader of a Connect cluster killed",
    story="Worker 1, which leads, is killed at 60 s and back at 120 s. The new leader knows "
    "nothing of the lost work and deals it out at once.",
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
        ),
    ),
    happenings=(
        CrashMember(at_ms=60_000, member="worker-1"),
        StartMember(at_ms=120_000, member="worker-1"),
    ),
)
