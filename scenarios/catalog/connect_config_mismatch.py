"""The leader of a Connect cluster lags behind its followers' config topic.

A connector is created while the leader reads no new record for four seconds. The follower rejoins
with a newer offset than the leader has read; it cannot assign, and answers all CONFIG_MISMATCH.
A failed assignment makes a worker rejoin at once: the group goes through one generation after the
other, as fast as the network carries them, until the leader has read the record.

Look at: hundreds of generations within two seconds, and nothing started or stopped in them.
"""

from typing import Final

from coordinator_sim.scenario import (
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
    story="Worker 1, which leads, reads no new configuration from 60 s on, for four seconds; a "
    "connector created meanwhile makes the group rebalance as fast as the network allows.",
    duration_ms=90_000,
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
        LagConfigTopic(at_ms=60_000, member="worker-1", for_ms=4_000),
        AddConnector(at_ms=60_100, group_id="connect-cluster", connector="s3-archive", tasks=3),
    ),
)
