"""The eager protocol spreads connectors and tasks, each kind evenly.

A cluster of four workers speaks the eager protocol and runs connectors with very different task
counts. Two more connectors are created and a worker is added: each time all work stops, and all of
it is dealt out in turn, the connectors first and then the tasks.

Look at: numbers of connectors that differ by no more than one from worker to worker, and so the
numbers of tasks (KAFKA-4553, where both kinds were dealt out mixed); everything stopped at every
rebalance.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    AddConnector,
    ConnectGroupSpec,
    Scenario,
    StartMember,
    WorkerSpec,
)

SCENARIO: Final = Scenario(
    name="connect-eager-round-robin",
    title="Eager Connect spreads connectors and tasks evenly",
    story="Four eager workers with uneven connectors; connectors are created at 40 s and 60 s, and "
    "a fifth worker starts at 80 s. Everything stops each time.",
    duration_ms=120_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            connect_protocol="eager",
            workers=(
                *(WorkerSpec(name=f"worker-{number}") for number in range(1, 5)),
                WorkerSpec(name="worker-5", start_ms=None),
            ),
            connectors={"a-large": 11, "b-small": 1, "c-small": 1, "d-large": 7},
        ),
    ),
    happenings=(
        AddConnector(at_ms=40_000, group_id="connect-cluster", connector="e-small", tasks=1),
        AddConnector(at_ms=60_000, group_id="connect-cluster", connector="f-large", tasks=9),
        StartMember(at_ms=80_000, member="worker-5"),
    ),
)
