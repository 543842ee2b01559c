"""Three workers join a Connect cluster of two at the same time.

One generation takes all three in and revokes from the two old workers what is above the new fair
share; the next one deals it out.

Look at: loads that differ by no more than one connector and one task two generations after the
newcomers came (KAFKA-10413, where more than one newcomer left the cluster uneven).
"""

from typing import Final

from coordinator_sim.sim.scenario import ConnectGroupSpec, Scenario, WorkerSpec, scale_out

SCENARIO: Final = Scenario(
    name="connect-several-joiners",
    title="Three workers join a Connect cluster at once",
    story="Two workers run everything until three more start at 60 s; one generation revokes and "
    "the next one assigns.",
    duration_ms=120_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=(
                WorkerSpec(name="worker-1"),
                WorkerSpec(name="worker-2"),
                *(WorkerSpec(name=f"worker-{number}", start_ms=None) for number in (3, 4, 5)),
            ),
            connectors={"copy-a": 6, "copy-b": 7, "copy-c": 8, "copy-d": 2, "copy-e": 3},
        ),
    ),
    happenings=scale_out(("worker-3", "worker-4", "worker-5"), first_at_ms=60_000, every_ms=0),
)
