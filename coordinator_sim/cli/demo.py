"""`demo`: the main job. Rolling deploys under every assignor, and what each one costs."""

from pathlib import Path
from typing import Annotated, Final

import typer

from coordinator_sim.cli.simulation import Simulation, assignor_label, simulate

DEPLOYS: Final = (
    ("consumer-rolling-deploy", ("range", "roundrobin", "sticky", "cooperative-sticky")),
    ("connect-rolling-deploy", ("eager", "compatible", "sessioned")),
)
"""Scenario, and the assignors (or Connect protocols) it is run under."""


def demo(
    out: Annotated[Path, typer.Option(help="Folder of the traces and the report.")] = Path("out"),
    seed: Annotated[int, typer.Option(help="Seed of all chance.")] = 0,
    master: Annotated[str, typer.Option(help="Spark master.")] = "local[2]",
) -> None:
    """Simulate rolling deploys of consumers and Connect workers; compare how assignors churn.

    Writes the traces and one self-contained HTML report, and prints the table of churn.

    Example: coordinator-sim demo --out out
    """
    from rich.console import Console

    from coordinator_sim.cli.report import compute, print_churn
    from reports.java import find_java
    from reports.session import check_extra

    check_extra()
    find_java()
    traces = [
        simulate_deploy(name, assignor, seed=seed, out=out / "traces")
        for name, assignors in DEPLOYS
        for assignor in assignors
    ]
    typer.echo("\nSpark computes the report; that takes about half a minute ...\n")
    summary = compute(
        traces, out / "report", master=master, title="Rolling deploys under every assignor"
    )
    console = Console()
    print_churn(summary, console)
    console.print(f"\nreport: {summary.page}", highlight=False, soft_wrap=True)


def simulate_deploy(name: str, assignor: str, *, seed: int, out: Path) -> Path:
    """One deploy under one assignor; answers its run directory."""
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.scenario.scenario import with_assignor
    from scenarios.catalog import scenario_named

    scenario = with_assignor(scenario_named(name), assignor)
    directory = out / f"{name}-{assignor}"
    simulation = Simulation(
        scenario=scenario,
        seed=seed,
        assignor=assignor_label(scenario),
        options={"assignor": assignor},
    )
    with progress_bar(f"simulating {directory.name}", scenario.duration_ms * 1000) as advance:
        events = simulate(simulation, directory, on_progress=advance)
    typer.echo(
        f"simulated {scenario.duration_ms // 1000} s of {name} with {assignor}: "
        f"{len(events)} events"
    )
    return directory
