"""`list` and `coverage`: the requirements there are, and those that a catalogue names besides."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.table import Table

from coordinator_sim.cli.console import PrintableConsole
from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.client_cases.case import CLIENTS
from coordinator_sim_conformance.coverage import Coverage, compare, read_catalogue, read_deferred
from coordinator_sim_conformance.registry import all_requirements, any_cases, chosen
from coordinator_sim_conformance.requirements import TROGDOR, Requirement


def list_requirements(
    area: Annotated[
        list[str] | None, typer.Option(help="Only this area; may be given again.", metavar="AREA")
    ] = None,
    profile: Annotated[
        str | None, typer.Option(help="Only what this Kafka must do.", metavar="PROFILE")
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array instead of a table.")
    ] = False,
) -> None:
    """List the requirements: id, level, profiles, title.

    Example: conformance list --area JOIN --profile 3.9
    """
    found: dict[str, Requirement] = {
        case.requirement.requirement_id: case.requirement
        for case in chosen(any_cases(), areas=area or ())
    }
    if profile is not None:
        name = profile_named(profile).name
        found = {key: each for key, each in found.items() if name in each.profiles}
    if json:
        rows = [{**msgspec.to_builtins(each), "profiles": each.profiles} for each in found.values()]
        typer.echo(msgspec.json.format(msgspec.json.encode(rows)).decode())
        return
    table = Table("id", "level", "profiles", "title", box=box.SIMPLE_HEAD)
    for each in found.values():
        table.add_row(each.requirement_id, each.weight, _whose(each), each.title)
    PrintableConsole().print(table)
    typer.echo(f"{len(found)} requirements")


def _whose(requirement: Requirement) -> str:
    """Who has to meet it."""
    if requirement.is_of_trogdor:
        return TROGDOR.lower()
    return CLIENTS if requirement.is_of_clients else _span(requirement.profiles)


def _span(profiles: tuple[str, ...]) -> str:
    """Profiles as a reader says them: the first and the last."""
    if not profiles:
        return "switches by hand"
    return profiles[0] if len(profiles) == 1 else f"{profiles[0]} to {profiles[-1]}"


def coverage(
    catalogues: Annotated[
        list[Path], typer.Argument(help="YAML files: a list of cases, or a mapping with `cases`.")
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array instead of text.")
    ] = False,
) -> None:
    """Compare the requirements with catalogue files; exit 1 when one of theirs is missing.

    Example: conformance coverage classic-cases.yaml offset-cases.yaml
    """
    known = [each.requirement_id for each in all_requirements()]
    deferred = read_deferred()
    found = [compare(str(path), read_catalogue(path), known, deferred) for path in catalogues]
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(found)).decode())
    else:
        for each in found:
            _print_coverage(each, deferred)
    if any(each.missing for each in found):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _print_coverage(found: Coverage, deferred: dict[str, str]) -> None:
    total = len(found.covered) + len(found.deferred) + len(found.missing)
    typer.echo(
        f"{found.catalogue}: {total} cases, {len(found.covered)} covered, "
        f"{len(found.deferred)} deferred, {len(found.missing)} missing"
    )
    for each in found.deferred:
        typer.echo(f"  deferred {each}: {deferred[each]}")
    for each in found.missing:
        typer.echo(f"  missing  {each}")
