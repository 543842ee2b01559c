"""`sweep`: the catalogue under every protocol, assignor and membership, compared by Spark."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.arguments import (
    ProcessingOption,
    ProcessingTimeOption,
    SeedsOption,
    parse_variety,
)
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from coordinator_sim_reports.sweep import SweepSummary


def sweep(
    scenarios: Annotated[
        list[str] | None,
        typer.Argument(help="Catalogue names; all that can be compared by default."),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Directory for sweep.html, tables/ and traces/.")
    ] = Path("out/sweep"),
    seeds: SeedsOption = 3,
    processing: ProcessingOption = "",
    processing_ms: ProcessingTimeOption = "",
    processing_times: Annotated[
        str,
        typer.Option(
            help="Compare assignors at each of these typical processing times instead.",
            metavar="MS,MS,...",
        ),
    ] = "",
    master: Annotated[str, typer.Option(help="Spark master URL.")] = "local[2]",
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON summary instead of tables.")
    ] = False,
) -> None:
    """Run scenarios under every choice as Spark tasks; compare what the choices cost.

    Eager against incremental cooperative Connect, range against sticky against cooperative-sticky,
    dynamic against static members. Every choice meets the same drawn worlds.

    Example: coordinator-sim sweep consumer-rolling-deploy connect-worker-crash --out out/sweep
    """
    from rich.console import Console

    from coordinator_sim_reports.session import check_extra

    check_extra()
    from coordinator_sim_reports.sweep import run_sweep
    from coordinator_sim_reports.trials import left_out, trials

    grid = trials(
        scenarios or [],
        seeds,
        variety=parse_variety(processing, processing_ms),
        processing_times=parse_times(processing_times),
    )
    sweeping = partial(run_sweep, grid, out, unasked={} if scenarios else left_out(), master=master)
    errors = Console(stderr=True)
    if json or not errors.is_terminal:
        summary = sweeping()
    else:
        with errors.status("starting Spark") as status:
            summary = sweeping(progress=status.update)
    if json:
        print_json(summary)
    else:
        print_choices(summary, Console())


def parse_times(text: str) -> tuple[int, ...]:
    """Milliseconds separated by commas; empty for none.

    Raises:
        ConfigError: Something is not a whole number.
    """
    from coordinator_sim.kafka.java_numbers import java_int

    times = [java_int(time.strip(), bits=64) for time in text.split(",")] if text else []
    found = tuple(time for time in times if time is not None)
    if len(found) < len(times):
        raise ConfigError(
            f"--processing-times {text!r}: wants whole milliseconds separated by commas, as 50,1000"
        )
    return found


def print_json(summary: "SweepSummary") -> None:
    """Print the summary as one JSON document."""
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())


def print_choices(summary: "SweepSummary", console: "Console") -> None:
    """Print one table a question, and where the page is."""
    from rich import box
    from rich.table import Table

    from coordinator_sim_reports.sweep_page import MEASURES, TITLES, choice_name, shown, unit_of

    for question in dict.fromkeys(row["question"] for row in summary.choices):
        rows = [row for row in summary.choices if row["question"] == question]
        table = Table(
            title=f"{TITLES[question]} ({rows[0]['scenarios']} scenarios)",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=0,
        )
        table.add_column("", no_wrap=True)
        paced = ("interrupted", "unowned_s", "stopped_s")
        printed = [
            measure
            for measure in MEASURES
            if (
                measure.column in paced
                if question == "processing"
                else measure.column != "reprocessed"
            )
        ]
        for measure in printed:
            word = "interr." if measure.column == "interrupted" else measure.word
            table.add_column(word, justify="right", no_wrap=True)
        for row in rows:
            cells = [shown(row, measure, stacked=True) for measure in printed]
            table.add_row(choice_name(row["choice"]), *cells)
        console.print(table)
        console.print(
            f"unowned, run twice: {unit_of(question)}-seconds; stopped: seconds\n",
            highlight=False,
            soft_wrap=True,
        )
    if summary.left_out:
        console.print(f"left out: {', '.join(summary.left_out)}; the page says why")
    console.print(
        "median over the worlds drawn, and the least and the most where they differ\n"
        f"{summary.runs} runs of {summary.scenarios} scenarios; report: {summary.page}",
        highlight=False,
        soft_wrap=True,
    )
