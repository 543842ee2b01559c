"""Workers join a Connect cluster right behind one another, each within a revoking round.

Every newcomer makes the leader revoke work for it, and the next one comes before that work is dealt
out. The leader does not revoke in two generations in a row: it asks for another rebalance after a
pause that grows with each attempt, deals out what is free, and revokes then.

Look at: short delays of some milliseconds to seconds in the assignments, a bounded number of
generations, and even loads in the end (KAFKA-12495, where the work stayed unevenly spread).
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, Scenario, WorkerSpec, scale_out

NEWCOMERS: Final = tuple(f"worker-{number}" for number in range(2, 7))

SCENARIO: Final = Scenario(
    name="connect-join-storm",
    title="Workers join a Connect cluster during its revoking rounds",
    story="One worker runs everything; five more start from 60 s on, 3.2 s apart, each while work "
    "is being revoked for the one before it.",
    duration_ms=180_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                *(WorkerSpec(name=name, start_ms=None) for name in NEWCOMERS),
            ),
            connectors={f"copy-{letter}": 5 for letter in "abcdef"},
        ),
    ),
    happenings=scale_out(NEWCOMERS, first_at_ms=60_000, every_ms=3_200),
)
