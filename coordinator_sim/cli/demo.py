"""`demo`: the main job. Rolling deploys under every assignor, and what each one costs."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from msgspec import Struct

from coordinator_sim.cli.arguments import (
    MasterOption,
    ProcessingOption,
    ProcessingTimeOption,
    SeedsOption,
    parse_variety,
)
from coordinator_sim.cli.simulation import Simulation, assignor_label, simulate

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

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
    traces = simulate_deploys(variety, range(seed, seed + seeds), out / "traces")
    typer.echo("\nComputing the report ...\n")
    summary = compute(
        traces, out / "report", master=master, title="Rolling deploys under every assignor"
    )
    console = PrintableConsole()
    print_churn(summary, console)
    console.print()
    print_ending(summary, console)


def simulate_deploys(variety: "Variety", seeds: range, out: Path) -> list[Path]:
    """Every deploy under every assignor in several worlds, on every processor.

    Returns:
        The run directories.
    """
    from coordinator_sim_reports.rehearsal_runs import workers

    deploys = [(name, assignor) for name, assignors in DEPLOYS for assignor in assignors]
    directories = {
        deploy: [out / f"{'-'.join(deploy)}-{seed}" for seed in seeds] for deploy in deploys
    }
    with workers(os.cpu_count() or 1) as pool:
        runs = {
            deploy: [
                pool.submit(simulate_deploy, *deploy, variety, seed, directory)
                for seed, directory in zip(seeds, own, strict=True)
            ]
            for deploy, own in directories.items()
        }
        try:
            for (name, assignor), own in runs.items():
                finished = _results(own, f"simulating {name} with {assignor}")
                typer.echo(
                    f"simulated {finished[0].duration_ms // 1000} s of {name} with {assignor} in "
                    f"{len(finished)} worlds: {sum(each.events for each in finished):,} events"
                )
        finally:
            pool.shutdown(cancel_futures=True)
    return [directory for own in directories.values() for directory in own]


def _results(runs: "Sequence[Future[Simulated]]", label: str) -> "list[Simulated]":
    """Wait for runs, and show how many are done."""
    from coordinator_sim.cli.progress import progress_bar

    finished = []
    with progress_bar(label, len(runs)) as advance:
        for run in runs:
            finished.append(run.result())
            advance(len(finished))
    return finished


class Simulated(Struct, frozen=True):
    """How long a run was, and how many events it has."""

    duration_ms: int
    events: int


def simulate_deploy(
    name: str, assignor: str, variety: "Variety", seed: int, directory: Path
) -> Simulated:
    """One deploy under one assignor in one world, into a run directory."""
    from coordinator_sim.sim.scenario.scenario import with_assignor
    from coordinator_sim.sim.scenario.variants import with_variety
    from coordinator_sim_scenarios.catalog import scenario_named

    scenario = with_variety(with_assignor(scenario_named(name), assignor), variety)
    simulation = Simulation(
        scenario=scenario,
        seed=seed,
        assignor=assignor_label(scenario),
        options={"assignor": assignor, "varied": "true"},
    )
    return Simulated(scenario.duration_ms, len(simulate(simulation, directory)))
