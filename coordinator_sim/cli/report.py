"""`report`: rebalances, causes and assignor churn of traces, computed by Spark."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from reports.jobs import ReportSummary

LISTED_GROUPS = 30
"""Groups that the terminal shows; the page and the tables have all."""


def report(
    traces: Annotated[
        list[Path], typer.Argument(help="Run directories, or directories that hold some.")
    ],
    out: Annotated[Path, typer.Option(help="Directory for report.html and tables/.")] = Path(
        "out/report"
    ),
    master: Annotated[str, typer.Option(help="Spark master URL.")] = "local[2]",
    compare: Annotated[
        list[Path] | None, typer.Option(help="A further trace to set beside the others.")
    ] = None,
    title: Annotated[str, typer.Option(help="Heading of the page.")] = (
        "Rebalance and assignor report"
    ),
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON summary instead of tables.")
    ] = False,
) -> None:
    """Report how often, why and how long groups rebalanced, and what each assignor moved.

    Example: coordinator-sim report out/traces --out out/report
    """
    from rich.console import Console

    from reports.session import check_extra

    check_extra()
    from reports.jobs import build_report

    errors = Console(stderr=True)
    paths = [*traces, *(compare or ())]
    if json or not errors.is_terminal:
        summary = build_report(paths, out, master=master, title=title)
    else:
        with errors.status("starting Spark") as status:
            summary = build_report(
                paths,
                out,
                master=master,
                title=title,
                progress=lambda name: status.update(f"computed {name}"),
            )
    if json:
        print_json(summary)
    else:
        print_tables(summary, Console())


def print_json(summary: "ReportSummary") -> None:
    """Print the summary as one JSON document."""
    import msgspec

    typer.echo(msgspec.json.format(msgspec.json.encode(summary), indent=2).decode())


def print_tables(summary: "ReportSummary", console: "Console") -> None:
    """Print rebalances per group and reason, churn per assignor, and where the page is."""
    print_groups(summary, console)
    print_churn(summary, console)
    console.print(f"report: {summary.page}", highlight=False, soft_wrap=True)


def print_groups(summary: "ReportSummary", console: "Console") -> None:
    """Print how often, why and how long each group rebalanced."""
    from rich.table import Table

    from reports.render import format_duration

    table = Table(title=f"Rebalances: {summary.rebalances:,} in {summary.runs:,} runs")
    for name in ("run", "group", "reason"):
        table.add_column(name, overflow="fold")
    for name in ("count", "unfinished", "median", "longest"):
        table.add_column(name, justify="right", no_wrap=True)
    for group in summary.groups[:LISTED_GROUPS]:
        first = True
        for reason in _reasons_of(group, summary.reasons):
            table.add_row(
                f"{group['scenario']}, {group['assignor']}" if first else "",
                group["group_id"] if first else "",
                reason["reason"],
                f"{reason['count']:,}",
                f"{reason['open']:,}",
                format_duration(reason["p50_ms"]),
                format_duration(reason["max_ms"]),
            )
            first = False
    console.print(table)
    if len(summary.groups) > LISTED_GROUPS:
        hidden = len(summary.groups) - LISTED_GROUPS
        console.print(f"{hidden:,} more groups are in the report", highlight=False)


def _reasons_of(group: dict[str, Any], reasons: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The reasons of one group, most frequent first."""
    key = ("trace_id", "cluster_id", "group_id")
    own = [row for row in reasons if all(row[name] == group[name] for name in key)]
    return sorted(own, key=lambda row: (-row["count"], row["reason"]))


def print_churn(summary: "ReportSummary", console: "Console") -> None:
    """Print what each assignor moved and what it cost, per scenario."""
    if all(row["moved"] is None for row in summary.comparison):
        console.print(
            "No trace holds assignments (broker logs never do), so churn is not known.",
            highlight=False,
        )
        return
    for protocol_type in dict.fromkeys(row["protocol_type"] for row in summary.comparison):
        rows = [row for row in summary.comparison if row["protocol_type"] == protocol_type]
        console.print(_churn_table(f"Churn by assignor, per run: {protocol_type} groups", rows))


def _churn_table(title: str, rows: Iterable[dict[str, Any]]) -> Any:  # noqa: ANN401 - rich.Table
    from rich.table import Table

    from reports.render import format_count, format_decimal, format_seconds

    table = Table(title=title)
    table.add_column("scenario", overflow="fold")
    table.add_column("assignor", no_wrap=True)
    for name in (
        "rebal.",
        "kept",
        "moved",
        "bound",
        "excess",
        "sticky",
        "interr.",
        "unowned p*s",
        "stopped s",
    ):
        table.add_column(name, justify="right", no_wrap=True)
    scenario = None
    for row in rows:
        table.add_row(
            row["scenario"] if row["scenario"] != scenario else "",
            row["assignor"],
            format_count(row["rebalances"]),
            format_count(row["kept"]),
            format_count(row["moved"]),
            format_count(row["lb_balanced"]),
            format_count(row["excess_moves"]),
            format_decimal(row["stickiness"], 3),
            format_count(row["interrupted"]),
            format_seconds(row["unowned_s"]),
            ("<= " if row["stopped_quality"] == "bound" else "") + format_seconds(row["stopped_s"]),
        )
        scenario = row["scenario"]
    return table
