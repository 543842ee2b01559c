"""A Connect cluster moves from the eager protocol to the sessioned one, one worker at a time.

The timeline of a recording of Connect 4.3.1 (`tests/data/wire`), with a scheduled delay of 3 s. Two
eager workers stop all work at every rebalance. One leaves and comes back as a sessioned worker:
the group speaks what all understand and stays eager. When the last eager worker leaves, the same
member moves to the sessioned protocol without joining anew. A compatible worker brings the group
down to `compatible`, and from then on work is revoked in one generation and assigned in the next.

Look at: the protocol of each generation; all work dealt out anew while the group is eager; the
delay after a worker has left, which only the incremental protocols have.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    AddConnector,
    ConnectGroupSpec,
    Scenario,
    StartMember,
    StopMember,
    WorkerSpec,
)

SESSIONED: Final = {"connect.protocol": "sessioned"}
COMPATIBLE: Final = {"connect.protocol": "compatible"}

SCENARIO: Final = Scenario(
    name="connect-eager-to-sessioned-upgrade",
    title="Connect from eager to sessioned, worker by worker",
    story="Two eager workers are replaced by sessioned ones, over a compatible one; the group "
    "speaks the newest protocol that all its members know.",
    duration_ms=170_000,
    brokers=1,
    broker_settings={"group.initial.rebalance.delay.ms": "500"},
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            connect_protocol="eager",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=13_800),
            ),
            settings={"scheduled.rebalance.max.delay.ms": "3000"},
        ),
    ),
    happenings=(
        AddConnector(at_ms=20_600, group_id="connect-cluster", connector="src3", tasks=1),
        AddConnector(at_ms=23_700, group_id="connect-cluster", connector="snk3", tasks=2),
        StopMember(at_ms=32_500, member="worker-2"),
        StartMember(at_ms=79_800, member="worker-2", settings=SESSIONED),
        StopMember(at_ms=92_500, member="worker-1"),
        StartMember(at_ms=106_300, member="worker-1", settings=COMPATIBLE),
        StopMember(at_ms=121_000, member="worker-1"),
        StartMember(at_ms=135_700, member="worker-1", settings=SESSIONED),
    ),
)
