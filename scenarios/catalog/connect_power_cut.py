"""All workers of a Connect cluster are killed at once and come back one after the other.

Ten workers die in the same instant. The broker notices one session later. The first one that is
back leads, with no memory of what ran before: it is given everything, and whoever comes next has to
be given a share by revoking from those that are there.

Look at: the first worker that runs all of the cluster's work; how many generations it takes until
the work is spread again, and how much of it is stopped and started on the way.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    CrashMember,
    Scenario,
    WorkerSpec,
    scale_out,
)

WORKERS: Final = tuple(f"worker-{number:02}" for number in range(1, 11))

SCENARIO: Final = Scenario(
    name="connect-power-cut",
    title="Ten Connect workers killed at once",
    story="Ten workers are killed at 60 s and start again from 80 s on, two seconds apart.",
    duration_ms=240_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=name) for name in WORKERS),
            connectors={f"copy-{letter}": 4 for letter in "abcdefghij"},
            settings={"scheduled.rebalance.max.delay.ms": "30000"},
        ),
    ),
    happenings=(
        *(CrashMember(at_ms=60_000, member=name) for name in WORKERS),
        *scale_out(WORKERS, first_at_ms=80_000, every_ms=2_000),
    ),
)
