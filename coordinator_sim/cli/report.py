"""`report`: rebalances, causes and assignor churn of traces, here or by Spark."""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from coordinator_sim.cli.arguments import MasterOption
from coordinator_sim.cli.printing import print_json
from coordinator_sim.cli.progress import job_status
from coordinator_sim.cli.window import (
    ANY_TIME,
    WindowOptions,
    takes_window,
    window_in,
)

if TYPE_CHECKING:
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim_reports.jobs import ReportSummary

_NAMED_PARTIAL = 5
LISTED_GROUPS = 30
"""Groups that the terminal shows, those with most rebalances; the Parquet table has all."""


@takes_window
def report(
    traces: Annotated[
        list[str],
        typer.Argument(
            help="Run directories, or directories that hold some; paths or URIs.", metavar="TRACE"
        ),
    ],
    out: Annotated[
        str, typer.Option(help="Directory for report.html and tables/.", metavar="DIR")
    ] = "out/report",
    master: MasterOption = None,
    compare: Annotated[
        list[str] | None,
        typer.Option(
            help="A further trace to set beside the others: times count from the start of each run."
        ),
    ] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = (
        "Rebalance and assignor report"
    ),
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON summary instead of tables.")
    ] = False,
    window_options: WindowOptions = ANY_TIME,
) -> None:
    """Report how often, why and how long groups rebalanced, and what each assignor moved.

    With a window of time, the page and its tables have what began in it; of each trace, the end is
    that of the trace.

    Example: coordinator-sim report out/traces --out out/report --last 12h
    """
    from coordinator_sim.cli.console import PrintableConsole

    summary = compute(
        [*traces, *(compare or ())],
        out,
        master=master,
        title=title,
        is_compared=bool(compare),
        is_silent=json,
        window_options=window_options,
    )
    if json:
        print_json(summary)
    else:
        print_tables(summary, PrintableConsole())


def compute(
    paths: Sequence[Path | str],
    out: Path | str,
    *,
    master: str | None,
    title: str,
    is_compared: bool = False,
    is_silent: bool = False,
    window_options: WindowOptions = ANY_TIME,
) -> "ReportSummary":
    """Build the report; on a terminal, and unless silent, say which table is being computed."""
    from coordinator_sim_reports.session import check_extra

    check_extra("report" if master is None else "spark")
    from coordinator_sim_reports.jobs import build_report
    from coordinator_sim_reports.page_options import PageOptions

    page = PageOptions(title=title, is_compared=is_compared, words=tuple(window_options.words))
    window_of = partial(window_in, options=window_options)
    building = partial(build_report, paths, out, master=master, page=page, window_of=window_of)
    return job_status(building, is_silent=is_silent, begins="reading traces")


def print_tables(summary: "ReportSummary", console: "PrintableConsole") -> None:
    """Print rebalances per group and reason, churn per assignor, and where the page is."""
    print_groups(summary, console)
    print_churn(summary, console)
    print_ending(summary, console)


def print_ending(summary: "ReportSummary", console: "PrintableConsole") -> None:
    """Print where the page is, and which assignor wins where several are compared."""
    from coordinator_sim_reports.comparison import answers_of

    console.print(f"report: {summary.page}", highlight=False, soft_wrap=True)
    console.print_sentences(answers_of(summary.comparison))


def print_groups(summary: "ReportSummary", console: "PrintableConsole") -> None:
    """Print how often, why and how long each group rebalanced."""
    from rich import box
    from rich.table import Table

    from coordinator_sim_reports.formats import format_duration

    runs = "1 run" if summary.runs == 1 else f"{summary.runs:,} runs"
    table = Table(
        title=f"Rebalances: {summary.rebalances:,} in {runs}",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("group and run", overflow="fold", min_width=24)
    table.add_column("reason", no_wrap=True)
    for name in ("count", "open", "median", "longest"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in summary.groups[:LISTED_GROUPS]:
        known = [group["scenario"], *({group["assignor"]} - {"unknown"})]
        name = f"{group['group_id']} ({', '.join(known)})"
        for reason in _reasons_of(group, summary.reasons):
            table.add_row(
                name,
                reason["reason"],
                f"{reason['count']:,}",
                f"{reason['open']:,}",
                format_duration(reason["p50_ms"]),
                format_duration(reason["max_ms"]),
            )
            name = ""
    console.print(table)
    if summary.group_count > LISTED_GROUPS:
        console.print(
            f"the {LISTED_GROUPS} groups with most rebalances of {summary.group_count:,}; "
            f"all are in the Parquet table {summary.tables}/groups",
            highlight=False,
            soft_wrap=True,
        )


def _reasons_of(group: dict[str, Any], reasons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reasons of one group, most frequent first."""
    key = ("trace_id", "cluster_id", "group_id")
    own = [row for row in reasons if all(row[name] == group[name] for name in key)]
    return sorted(own, key=lambda row: (-row["count"], row["reason"]))


def print_churn(summary: "ReportSummary", console: "PrintableConsole") -> None:
    """Print what each assignor moved and what it cost, one table per kind of group and scenario."""
    known = [row for row in summary.comparison if row["moved"] is not None]
    partial = [row for row in summary.groups if row["missing_assignments"] is not None]
    for row in partial[:_NAMED_PARTIAL]:
        console.print(
            f"churn of {row['group_id']}: n/a, {row['missing_assignments']}",
            highlight=False,
            markup=False,
        )
    if len(partial) > _NAMED_PARTIAL:
        console.print(f"and of {len(partial) - _NAMED_PARTIAL:,} more groups", highlight=False)
    if not known and not partial:
        console.print(
            "No trace holds assignments (broker logs never do), so churn is not known.",
            highlight=False,
        )
    if not known:
        return
    for scenario in dict.fromkeys((row["protocol_type"], row["scenario"]) for row in known):
        rows = [row for row in known if (row["protocol_type"], row["scenario"]) == scenario]
        console.print(_churn_table(_churn_title(scenario, rows), rows))
    several = any(row["runs"] > 1 for row in known)
    worlds = (
        "\nmedian over the runs, below it the least and the most where they differ"
        if several
        else ""
    )
    console.print(
        "excess: moves beyond the fewest that any balanced assignment needs\n"
        "interr.: times that an owned resource was given up and owned again\n"
        "unowned: partition-seconds without an owner\n"
        "stopped: seconds from rebalances until somebody owned something again" + worlds,
        highlight=False,
    )


def _churn_title(scenario: tuple[str, str], rows: list[dict[str, Any]]) -> str:
    runs = max(row["runs"] for row in rows)
    what = f"{scenario[1]} ({scenario[0]} groups)"
    return f"Churn per run: {what}" + (f", {runs} runs each" if runs > 1 else "")


def _churn_table(title: str, rows: Iterable[dict[str, Any]]) -> Any:  # noqa: ANN401 - rich.Table
    from rich import box
    from rich.table import Table

    from coordinator_sim_reports.comparison import CHURN, churn_cells

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=0)
    table.add_column("assignor", no_wrap=True)
    for name in CHURN.values():
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(row["assignor"], *(text for _, text in churn_cells(row, stacked=True)))
    return table
