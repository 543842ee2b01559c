"""The report job: traces in, Parquet tables and one HTML page out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError
from reports.session import DEFAULT_MASTER, check_extra, spark_session
from reports.sources import open_traces, read_traces

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PAGE_NAME: Final = "report.html"
TABLES_DIR: Final = "tables"
DEFAULT_TITLE: Final = "Rebalance and assignor report"
_COLLECTED_REBALANCES: Final = 5_000
"""Rebalances that a page may draw; a driver holds them with ease."""
_COLLECTED_GROUPS: Final = 2_000
_SMALL_EVENTS: Final = 200_000
"""Below this many events a job is over before generated code has paid for its compilation."""


class ReportSummary(Struct, frozen=True, kw_only=True):
    """What a report says, for the terminal and for machines.

    Args:
        page: The HTML file.
        tables: Directory with one Parquet table a subdirectory.
        runs: Traces read.
        rebalances: Rebalances found.
        comparison: Rows of the comparison table; see `transforms.summary.churn_comparison`.
        groups: Rows of the group summary; see `transforms.summary.group_summary`.
        reasons: Rows of the reasons table; see `transforms.summary.reasons`.
    """

    page: str
    tables: str
    runs: int
    rebalances: int
    comparison: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    reasons: list[dict[str, Any]]


def build_report(
    traces: Sequence[Path],
    out: Path,
    *,
    master: str = DEFAULT_MASTER,
    title: str = DEFAULT_TITLE,
    progress: Callable[[str], None] | None = None,
) -> ReportSummary:
    """Compute the report of one or many traces.

    Args:
        traces: Run directories, or directories that hold some.
        out: Gets `report.html` and `tables/`; created with its parents.
        master: Spark master URL.
        title: Heading of the page.
        progress: Told the name of each table that is done.

    Raises:
        ConfigError: No trace is named, one is named twice, or `out` is a file.
        DataError: A path is not a trace.
        MissingDependencyError: The `spark` extra or a Java runtime is absent.
    """
    runs = open_traces(traces)
    if out.exists() and not out.is_dir():
        raise ConfigError(f"{out} is a file; name a directory for the report")
    check_extra()
    from reports.render import ReportRows, reading_order, render_page
    from reports.tables import TableStore, derive_tables

    tables_path = out / TABLES_DIR
    small = sum(run.info.counts.get("events", 0) for run in runs) < _SMALL_EVENTS
    with spark_session(master, small=small) as spark:
        frames = read_traces(spark, runs)
        store = TableStore(spark, tables_path.absolute(), progress or _silent)
        tables = derive_tables(frames, store)
        rebalances = tables["rebalances"]
        rows = ReportRows(
            title=title,
            runs=_rows(tables["runs"], "scenario", "assignor", "trace_id"),
            quality=_rows(tables["data_quality"], "scenario", "assignor", "trace_id"),
            comparison=sorted(_rows(tables["comparison"]), key=reading_order),
            groups=_rows(
                tables["groups"], "scenario", "assignor", "group_id", limit=_COLLECTED_GROUPS
            ),
            rebalances=_rows(
                rebalances, "trace_id", "seen_us", "group_id", limit=_COLLECTED_REBALANCES
            ),
            rebalance_count=rebalances.count(),
            reasons=_rows(tables["reasons"], "group_id", "reason"),
            durations=_rows(tables["durations"], "phase"),
        )
    page = out / PAGE_NAME
    page.write_text(render_page(rows), encoding="utf-8")
    return ReportSummary(
        page=str(page),
        tables=str(tables_path),
        runs=len(runs),
        rebalances=rows.rebalance_count,
        comparison=[dict(row) for row in rows.comparison],
        groups=[dict(row) for row in rows.groups],
        reasons=[dict(row) for row in rows.reasons],
    )


def _rows(table: "DataFrame", *order: str, limit: int | None = None) -> list[dict[str, Any]]:
    ordered = table.orderBy(*order) if order else table
    kept = ordered if limit is None else ordered.limit(limit)
    return [row.asDict() for row in kept.collect()]


def _silent(name: str) -> None:
    del name
