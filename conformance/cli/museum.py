"""`museum`: which case finds which seeded fault."""

from typing import Annotated

import msgspec
import typer
from rich import box
from rich.table import Table

from coordinator_sim.cli.console import PrintableConsole
from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.cli.progress import progress_bar
from coordinator_sim.errors import DataError
from coordinator_sim_conformance.museum.exhibits import EXHIBITS, exhibit_named
from coordinator_sim_conformance.museum.hunt import Finding, hunted


def museum(
    exhibit: Annotated[
        list[str] | None,
        typer.Option(help="Only this one; may be given again.", metavar="ID"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array of findings instead of a table.")
    ] = False,
) -> None:
    """Break core and clients in one line at a time; exit 1 when no case notices.

    Example: conformance museum --exhibit KAFKA-12890
    """
    from coordinator_sim_conformance.museum.playing import turns

    chosen = [exhibit_named(name) for name in exhibit] if exhibit else list(EXHIBITS)
    findings: list[Finding] = []
    with progress_bar("playing on broken code", len(chosen)) as advance:
        for finding in hunted(chosen):
            findings.append(finding)
            advance(len(findings))
    suite = dict(turns())
    names = dict.fromkeys(name for finding in findings for name in finding.detectors)
    if failing := [name for name in names if name in suite and not suite[name]()]:
        cases = ", ".join(failing)
        raise DataError(f"the suite fails without any fault: {cases}; mend that first")
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(findings)).decode())
    else:
        _print(findings)
    if any(not finding.detectors for finding in findings):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _print(findings: list[Finding]) -> None:
    stories = {exhibit.exhibit_id: exhibit.story for exhibit in EXHIBITS}
    table = Table("exhibit", "what goes wrong", "first noticed by", box=box.SIMPLE_HEAD)
    for finding in findings:
        noticed = finding.detectors[0] if finding.detectors else "nothing"
        table.add_row(finding.exhibit_id, stories[finding.exhibit_id], noticed)
    PrintableConsole().print(table)
    count = sum(1 for finding in findings if finding.detectors)
    typer.echo(f"{count} of {len(findings)} faults noticed")
