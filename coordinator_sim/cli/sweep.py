"""`sweep`: the catalogue under every protocol, assignor and membership, compared by Spark."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from reports.sweep import SweepSummary


def sweep(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="Catalogue names; all that can be compared by default."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Directory for sweep.html, tables/ and traces/.")
    ] = Path("out/sweep"),
    seeds: Annotated[int, typer.Option(help="Runs of each choice, with seeds from 0 on.")] = 1,
    master: Annotated[str, typer.Option(help="Spark master URL.")] = "local[2]",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON summary instead of tables.")
    ] = False,
) -> None:
    """Run scenarios under every choice as Spark tasks; compare what the choices cost.

    Eager against incremental cooperative Connect, range against sticky against cooperative-sticky,
    dynamic against static members.

    Example: coordinator-sim sweep consumer-rolling-deploy connect-worker-crash --out out/sweep
    """
    from rich.console import Console

    from reports.session import check_extra

    check_extra()
    from reports.sweep import run_sweep

    errors = Console(stderr=True)
    if json or not errors.is_terminal:
        summary = run_sweep(scenarios or [], out, seeds=seeds, master=master)
    else:
        with errors.status("starting Spark") as status:
            summary = run_sweep(
                scenarios or [], out, seeds=seeds, master=master, progress=status.update
            )
    if json:
        print_json(summary)
    else:
        print_choices(summary, Console())


def print_json(summary: "SweepSummary") -> None:
    """Print the summary as one JSON document."""
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())


def print_choices(summary: "SweepSummary", console: "Console") -> None:
    """Print one table a question, and where the page is."""
    from rich import box
    from rich.table import Table

    from reports.sweep_page import MEASURES, TITLES, choice_name, shown, unit_of

    for question in dict.fromkeys(row["question"] for row in summary.choices):
        rows = [row for row in summary.choices if row["question"] == question]
        table = Table(
            title=f"{TITLES[question]} ({rows[0]['scenarios']} scenarios)",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=0,
        )
        table.add_column("", no_wrap=True)
        for name in ("interrupted", "moved", "unowned", "duplicates", "reprocessed", "run twice"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in rows:
            cells = [shown(row[measure.column], measure) for measure in MEASURES]
            table.add_row(choice_name(row["choice"]), *cells)
        console.print(table)
        console.print(
            f"unowned, run twice: {unit_of(question)}-seconds\n", highlight=False, soft_wrap=True
        )
    console.print(
        f"{summary.runs} runs of {summary.scenarios} scenarios; report: {summary.page}",
        highlight=False,
        soft_wrap=True,
    )
