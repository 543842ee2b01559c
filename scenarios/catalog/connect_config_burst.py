"""Connectors are created faster than the cluster rebalances.

Four connectors are written to the config topic a few milliseconds apart. Workers learn of the
second one while the generation for the first is being formed, so that they are past the
configuration that their assignment was computed from. A worker that is past it starts nothing: the
assignment may name what is gone. It rejoins.

Look at: assignments that are not started, generations that follow one another at once, and all
work running in the end.
"""

from typing import Final

from coordinator_sim.sim.scenario import AddConnector, ConnectGroupSpec, Scenario, WorkerSpec

SCENARIO: Final = Scenario(
    name="connect-config-burst",
    title="Connectors created faster than the cluster rebalances",
    story="Four connectors are created within 20 ms at 60 s; workers that have read more than "
    "their assignment knows start nothing and rejoin.",
    duration_ms=120_000,
    groups=(
        ConnectGroupSpec(
            group_id="connect-cluster",
            workers=tuple(WorkerSpec(name=f"worker-{number}") for number in range(1, 4)),
        ),
    ),
    happenings=tuple(
        AddConnector(
            at_ms=60_000 + 2 * index, group_id="connect-cluster", connector=f"copy-{index}", tasks=2
        )
        for index in range(4)
    ),
)
