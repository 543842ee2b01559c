"""Three Connect workers on a real evening: killed, back, stopped, back too late, the leader killed.

The timeline of a recording of Connect 4.3.1 (`tests/data/wire`), with its scheduled delay of 8 s.
Worker 1 is alone at first, then 3 and 2 come. A source connector with one task and a sink
connector with three are created: each costs two generations, one for the connector and one for its
tasks. Worker 2 is killed and stays away longer than the delay; when it returns one generation
revokes and the next one assigns. Worker 3 stops in good order, which is waited for all the same,
and returns too late. At last the leader is killed: the worker that leads then knows nothing of
what was lost, and deals it out at once.

Look at: generation for generation the same leader, assignments, revocations and delays as
recorded; no delay after the leader's death.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    AddConnector,
    ConnectGroupSpec,
    CrashMember,
    Scenario,
    StartMember,
    StopMember,
    WorkerSpec,
)

SCENARIO: Final = Scenario(
    name="connect-sessioned-3-workers",
    title="Three Connect workers: killed, stopped, back, and the leader killed",
    story="Worker 2 is killed at 157 s and back at 195 s, worker 3 stops at 205 s and is back at "
    "218 s, the leader is killed at 239 s; the scheduled delay is 8 s.",
    duration_ms=300_000,
    brokers=1,
    broker_settings={"group.initial.rebalance.delay.ms": "500"},
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2", start_ms=50_500),
                WorkerSpec(name="worker-3", start_ms=46_500),
            ),
            settings={"scheduled.rebalance.max.delay.ms": "8000"},
        ),
    ),
    happenings=(
        AddConnector(at_ms=82_900, group_id="connect-cluster", connector="src", tasks=1),
        AddConnector(at_ms=85_200, group_id="connect-cluster", connector="snk", tasks=3),
        CrashMember(at_ms=157_000, member="worker-2"),
        StartMember(at_ms=194_700, member="worker-2"),
        StopMember(at_ms=205_200, member="worker-3"),
        StartMember(at_ms=218_400, member="worker-3"),
        CrashMember(at_ms=239_000, member="worker-1"),
    ),
)
