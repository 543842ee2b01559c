"""The report job: traces in, Parquet tables and one HTML page out."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace as changed
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim.runs.run_directory import RunDirectory
from coordinator_sim.trace.schema import RunManifest
from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim_reports import session
from coordinator_sim_reports.failures import LOST_WORKERS, has_lost_workers
from coordinator_sim_reports.hadoop_files import check_folder, is_uri, location
from coordinator_sim_reports.page_options import PageOptions
from coordinator_sim_reports.run_labels import format_date
from coordinator_sim_reports.sources import events_of, open_traces, read_traces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE_NAME: Final = "report.html"
TABLES_DIR: Final = "tables"
_UNREADABLE: Final = re.compile(
    r"FAILED_READ_FILE.*?(?:file:/*(?=/)|\b(?=[a-z][a-z0-9+-]+:/))(\S+?)\.?\s", re.DOTALL
)
"""The path of a local file, or the URI of another."""


class ReportSummary(Struct, frozen=True, kw_only=True):
    """Summary of a report, for the terminal and for machines.

    Args:
        page: The HTML file.
        tables: Directory with one subdirectory per Parquet table.
        runs: Number of traces read.
        rebalances: Number of rebalances found.
        comparison: Rows of the comparison table; see `transforms.summary.churn_comparison`.
        group_count: Number of groups; of several drawn worlds of one choice those of the first.
        groups: Rows of the group summary, the groups with most rebalances first; at most
            `PageLimits.groups`. See `workers.group_summary`.
        reasons: Rows of the reasons table for these groups; see `transforms.summary.reasons`.
    """

    page: str
    tables: str
    runs: int
    rebalances: int
    comparison: list[dict[str, Any]]
    group_count: int
    groups: list[dict[str, Any]]
    reasons: list[dict[str, Any]]


def build_report(
    traces: Sequence[Path | str],
    out: Path | str,
    *,
    master: str = session.DEFAULT_MASTER,
    page: PageOptions = PageOptions(),  # noqa: B008 - frozen
    window_of: Callable[[RunManifest], Window] | None = None,
    progress: Callable[[str], None] | None = None,
) -> ReportSummary:
    """Compute the report of one or many traces.

    Args:
        traces: Run directories, or directories that hold some; paths, or URIs as text.
        out: A path or URI, directory for `report.html` and `tables/`; created with its parents.
        master: Spark master URL.
        page: Heading of the page, largest parts of long tables in it and in the summary, and
            whether the runs are set beside each other.
        window_of: Gives the time of a trace that the report is of; None for all of it.
        progress: Called with the present step.

    Raises:
        ConfigError: no trace is given, one is given twice, or `out` is a file.
        DataError: a path is not a trace, or a file of it is damaged.
        MissingDependencyError: the `spark` extra or a Java runtime is missing.
    """
    session.check_extra()
    from coordinator_sim_reports.page_rows import page_rows
    from coordinator_sim_reports.render import render_page
    from coordinator_sim_reports.tables import TableStore, derive_tables
    from coordinator_sim_reports.transforms.windows import Windows

    tell = progress or _silent
    with _damage_named(), _opened(traces, out, master) as (spark, runs, folder):
        tables_path = folder / TABLES_DIR
        store = TableStore(spark, tables_path.absolute(), lambda name: tell(f"computed {name}"))
        shown = {} if window_of is None else {run: window_of(run.info) for run in runs}
        windows = None
        if any(window != ALWAYS for window in shown.values()):
            windows = Windows(spark, {run.info.trace_id: each for run, each in shown.items()})
            page = replace(page, shown=_times_of(shown))
        tables = derive_tables(read_traces(spark, runs), store, windows)
        order = {run.info.trace_id: number for number, run in enumerate(runs)}
        of_runs = [row.asDict() for row in tables["runs"].collect()]
        of_runs.sort(key=lambda row: order[row["trace_id"]])
        rows = page_rows(tables_path, of_runs, page)
        tell("computing savings")
        windows_of = {run.info.trace_id: shown.get(run, ALWAYS) for run in runs}
        weighed = _weighed(rows.findings, runs, windows_of, page.limits.weighed_events)
        rows = changed(rows, findings=weighed)
        file = folder / PAGE_NAME
        file.write_text(render_page(rows), encoding="utf-8")
    return ReportSummary(
        page=str(file),
        tables=str(tables_path),
        runs=len(runs),
        rebalances=rows.totals["rebalances"],
        comparison=[dict(row) for row in rows.comparison],
        group_count=rows.told_totals["groups"],
        groups=[dict(row) for row in rows.groups],
        reasons=[dict(row) for row in rows.reasons],
    )


@contextmanager
def _opened(
    traces: Sequence[Path | str], out: Path | str, master: str
) -> Iterator[tuple["SparkSession", list[RunDirectory], Path]]:
    """Yield a session that fits the traces, the traces, and where the report goes.

    URIs are opened by the session, so one that is there before their size is known.
    """
    if any(is_uri(str(each)) for each in (*traces, out)):
        with session.spark_session(master) as spark:
            folder = location(str(out), spark)
            check_folder(folder, "report")
            runs = open_traces([location(str(each), spark) for each in traces])
            session.fit_to(spark, events_of(runs))
            yield spark, runs, folder
        return
    runs = open_traces([Path(each) for each in traces])
    check_folder(Path(out), "report")
    events = events_of(runs)
    with session.spark_session(
        master,
        shuffle_partitions=session.partitions_for(events),
        adaptive=events >= session.BRIEF_EVENTS,
        small=events < session.SMALL_EVENTS,
        brief=events < session.BRIEF_EVENTS,
    ) as spark:
        yield spark, runs, Path(out)


@contextmanager
def _damage_named() -> Iterator[None]:
    """Turn damaged files and lost workers into one line; other failures pass unchanged."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        found = _UNREADABLE.search(str(error))
        if found is None and has_lost_workers(str(error)):
            raise DataError(LOST_WORKERS) from error
        if found is None:
            raise
        raise DataError(f"{unquote(found[1])} cannot be read: it is damaged") from error


def _weighed(
    findings: Sequence[Mapping[str, Any]],
    runs: Sequence[RunDirectory],
    windows: Mapping[str, Window],
    most_events: int,
) -> list[dict[str, Any]]:
    """Return rows of findings with `saving`: what `coordinator-sim findings` says that it saves.

    `saving` is None where that is not computed: traces in object stores, and those that together
    have more than `most_events` events, count from the costliest finding on.
    """
    from coordinator_sim.replay.findings import Finding
    from coordinator_sim.replay.savings import weigh
    from coordinator_sim.replay.work import Partitions

    rows = [{**row, "saving": None} for row in findings]
    by_trace = {run.info.trace_id: run for run in runs if not is_uri(str(run.path))}
    left = most_events
    for trace_id in dict.fromkeys(row["trace_id"] for row in rows if row["setting"]):
        run = by_trace.get(trace_id)
        if run is None or run.info.counts.get("events", 0) > left:
            continue
        left -= run.info.counts.get("events", 0)
        own = [row for row in rows if row["trace_id"] == trace_id]
        told = [Finding(**{name: row[name] for name in Finding.__struct_fields__}) for row in own]
        events = list(run.events())
        for row, each in zip(
            own,
            weigh(told, events, run.info, Partitions({}), window=windows[trace_id]),
            strict=True,
        ):
            row.update(saving=each.words, saves_s=each.finding.saves_s, basis=each.finding.basis)
    return rows


def _times_of(shown: Mapping[RunDirectory, Window]) -> tuple[str, ...]:
    """Return the times that traces are shown of, in words, each once."""
    spans = [
        (window.nearest_us(run.info.first_ts_us or 0), window.nearest_us(run.info.last_ts_us or 0))
        for run, window in shown.items()
    ]
    words = (" to ".join(f"{format_date(at_us)} UTC" for at_us in span) for span in spans)
    return tuple(dict.fromkeys(words))


def _silent(what: str) -> None:
    del what
