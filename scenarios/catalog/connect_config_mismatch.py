"""The leader of a Connect cluster lags behind its followers' config topic.

A connector is created while the leader reads no new record. It writes the connector's record and
waits to read it back, for 30 s; meanwhile the follower has read it and waits in JoinGroup. Then the
write fails, and the leader joins with an older offset than its follower. It cannot assign, and
answers all CONFIG_MISMATCH. A failed assignment makes a worker rejoin at once: the group goes
through one generation after the other, as fast as the network carries them, until the leader has
read the record.

Look at: hundreds of generations from 90 s to 94 s, and nothing started or stopped in them; the
connector started in the end, although its creation was answered with an error.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    AddConnector,
    ConnectGroupSpec,
    ConstantLatency,
    LagConfigTopic,
    NetworkSpec,
    Scenario,
    WorkerSpec,
)

SCENARIO: Final = Scenario(
    name="connect-config-mismatch",
    title="A Connect leader that lags behind the config topic",
    story="Worker 1, which leads, reads no new configuration from 60 s to 94 s; a connector "
    "created meanwhile makes the group rebalance as fast as the network allows.",
    duration_ms=120_000,
    network=NetworkSpec(latency=ConstantLatency(us=2_000)),
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=10_000),
            ),
            connectors={"jdbc-orders": 4},
        ),
    ),
    happenings=(
        LagConfigTopic(at_ms=60_000, member="worker-1", for_ms=34_000),
        AddConnector(at_ms=60_100, group_id="connect-cluster", connector="s3-archive", tasks=3),
    ),
)
