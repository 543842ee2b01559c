"""`mutants`: random faults of one line in the core, and whether anything notices."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from coordinator_sim_conformance.mutants.mutant import Mutant, Trial


def mutants(
    module: Annotated[
        list[str] | None,
        typer.Option(help="Of this module alone, such as join; may be repeated.", metavar="NAME"),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="This mutant alone, by its id; may be repeated.", metavar="ID"),
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option(
            help="Those of this run of --record that there still are; --sample draws more.",
            metavar="FILE",
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(help="Draw so many; all without.", min=1, metavar="N")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the drawing.")] = 0,
    tests: Annotated[
        list[Path] | None,
        typer.Option(
            help="Tests of pytest's to run on survivors; may be repeated.", metavar="PATH"
        ),
    ] = None,
    record: Annotated[
        Path | None, typer.Option(help="Write what became of each here.", metavar="FILE")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array of trials instead of a table.")
    ] = False,
) -> None:
    """Change the core in one place at a time; exit 1 when one goes unnoticed without a reason.

    Example: conformance mutants --module membership --sample 20
    """
    if not hasattr(os, "fork"):
        raise ConfigError("mutants are played in forks, which this system lacks: use Linux")
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim_conformance.mutants.generation import module_named
    from coordinator_sim_conformance.mutants.hunt import Hunt
    from coordinator_sim_conformance.mutants.record import (
        all_mutants,
        named,
        reasons_of_survivors,
        record_of,
        write_record,
    )

    everything = all_mutants([module_named(name) for name in module or ()])
    if only:
        everything = named(everything, only)
    chosen = _chosen(everything, again, sample, seed)
    reasons = reasons_of_survivors()
    trials: list[Trial] = []
    with progress_bar("breaking the core", len(chosen)) as advance:
        for trial in Hunt(tests or ()).trials(chosen, reasons):
            trials.append(trial)
            advance(len(trials))
    if record is not None:
        write_record(record_of(trials, len(everything), seed), record)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(trials)).decode())
    else:
        _print(trials)
    if any(trial.is_unexplained for trial in trials):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _chosen(
    everything: "list[Mutant]", again: Path | None, sample: int | None, seed: int
) -> "list[Mutant]":
    from coordinator_sim_conformance.mutants.record import drawn, played_again, read_record

    if again is None:
        return drawn(everything, sample, seed)
    return played_again(everything, read_record(again), sample, seed)


def _print(trials: "list[Trial]") -> None:
    from rich import box
    from rich.table import Table

    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim_conformance.mutants.mutant import Fate
    from coordinator_sim_conformance.mutants.record import by_module, fates_of

    table = Table("module", "mutants", "noticed", "score", box=box.SIMPLE_HEAD)
    for name, (killed, tried) in by_module(fates_of(trials)).items():
        table.add_row(name, str(tried), str(killed), f"{killed / tried:.0%}")
    PrintableConsole().print(table)
    survivors = [trial for trial in trials if trial.fate is Fate.SURVIVED]
    open_ones = [trial for trial in survivors if trial.is_unexplained]
    for trial in open_ones:
        mutant = trial.mutant
        typer.echo(f"survived: {mutant.mutant_id}")
        typer.echo(f"  line {mutant.line}: {mutant.before}  ->  {mutant.after}")
    killed = len(trials) - len(survivors)
    share = f" ({killed / len(trials):.1%})" if trials else ""
    typer.echo(
        f"{killed} of {len(trials)} mutants noticed{share}; "
        f"{len(survivors)} survived, {len(open_ones)} of them without a reason"
    )
