"""`demo`: the main job. Rolling deploys under every assignor, and what each one costs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim.cli.arguments import (
    MasterOption,
    ProcessingOption,
    ProcessingTimeOption,
    SeedsOption,
    parse_variety,
)
from coordinator_sim.cli.simulation import Simulation, assignor_label, simulate

if TYPE_CHECKING:
    from coordinator_sim.sim.scenario.variety import Variety

DEPLOYS: Final = (
    ("consumer-rolling-deploy", ("range", "roundrobin", "sticky", "cooperative-sticky")),
    ("connect-rolling-deploy", ("eager", "compatible", "sessioned")),
)
"""Scenario, and the assignors (or Connect protocols) it is run under."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the traces and the report.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of the first world.")] = 0,
    seeds: SeedsOption = 5,
    processing: ProcessingOption = "",
    processing_ms: ProcessingTimeOption = "",
    master: MasterOption = None,
) -> None:
    """Simulate rolling deploys of consumers and Connect workers; compare how assignors churn.

    Each assignor meets the same drawn worlds. Writes the traces and one self-contained HTML report,
    and prints the table of churn: medians over the worlds, with the least and the most.

    Example: coordinator-sim demo --out out
    """
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.cli.report import compute, print_churn, print_ending
    from coordinator_sim_reports.session import check_extra

    check_extra("report")
    variety = parse_variety(processing, processing_ms)
    traces = [
        trace
        for name, assignors in DEPLOYS
        for assignor in assignors
        for trace in simulate_deploys(
            name, assignor, variety, seeds=range(seed, seed + seeds), out=out / "traces"
        )
    ]
    typer.echo("\nComputing the report ...\n")
    summary = compute(
        traces, out / "report", master=master, title="Rolling deploys under every assignor"
    )
    console = PrintableConsole()
    print_churn(summary, console)
    console.print()
    print_ending(summary, console)


def simulate_deploys(
    name: str, assignor: str, variety: "Variety", *, seeds: range, out: Path
) -> list[Path]:
    """One deploy under one assignor in several worlds; answers their run directories."""
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.sim.scenario.scenario import with_assignor
    from coordinator_sim.sim.scenario.variants import with_variety
    from coordinator_sim_scenarios.catalog import scenario_named

    scenario = with_variety(with_assignor(scenario_named(name), assignor), variety)
    directories = []
    event_count = 0
    with progress_bar(f"simulating {name} with {assignor}", len(seeds)) as advance:
        for done, seed in enumerate(seeds):
            advance(done)
            simulation = Simulation(
                scenario=scenario,
                seed=seed,
                assignor=assignor_label(scenario),
                options={"assignor": assignor, "varied": "true"},
            )
            directories.append(out / f"{name}-{assignor}-{seed}")
            event_count += len(simulate(simulation, directories[-1]))
    typer.echo(
        f"simulated {scenario.duration_ms // 1000} s of {name} with {assignor} in {len(seeds)} "
        f"worlds: {event_count:,} events"
    )
    return directories
