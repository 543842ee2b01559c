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
from coordinator_sim_reports.engine import Engine
from coordinator_sim_reports.failures import LOST_WORKERS, has_lost_workers
from coordinator_sim_reports.hadoop_files import check_folder, is_uri, location
from coordinator_sim_reports.page_options import PageOptions
from coordinator_sim_reports.run_labels import format_date
from coordinator_sim_reports.sources import events_of, open_traces

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE_NAME: Final = "report.html"
TABLES_DIR: Final = "tables"
LOCAL_EVENTS: Final = 2_000_000
"""Number of events below which a report is done before a JVM would be up."""
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
    master: str | None = None,
    page: PageOptions = PageOptions(),  # noqa: B008 - frozen
    window_of: Callable[[RunManifest], Window] | None = None,
    progress: Callable[[str], None] | None = None,
) -> ReportSummary:
    """Compute the report of one or many traces.

    Args:
        traces: Run directories, or directories that hold some; paths, or URIs as text.
        out: A path or URI, directory for `report.html` and `tables/`; created with its parents.
        master: Spark master URL; None to compute small traces in this process, others by Spark
            on this machine. The tables are the same.
        page: Heading of the page, largest parts of long tables in it and in the summary, and
            whether the runs are set beside each other.
        window_of: Gives the time of a trace that the report is of; None for all of it.
        progress: Called with the present step.

    Raises:
        ConfigError: no trace is given, two hold the same run, or `out` is a file.
        DataError: a path is not a trace, or a file of it is damaged.
        MissingDependencyError: the `report` extra is missing; where Spark computes, the `spark`
            extra or a Java runtime.
    """
    session.check_extra("report" if master is None else "spark")
    from coordinator_sim_reports.page_rows import page_rows
    from coordinator_sim_reports.render import render_page
    from coordinator_sim_reports.tables import derive_tables
    from coordinator_sim_reports.transforms.windows import Windows

    tell = progress or _silent
    with _opened(traces, out, master, tell) as (engine, runs, folder):
        shown = {} if window_of is None else {run: window_of(run.info) for run in runs}
        windows = None
        if any(window != ALWAYS for window in shown.values()):
            windows = Windows({run.info.trace_id: each for run, each in shown.items()})
            page = replace(page, shown=_times_of(shown))
        tables = derive_tables(engine, windows)
        order = {run.info.trace_id: number for number, run in enumerate(runs)}
        of_runs = sorted(engine.rows(tables["runs"]), key=lambda row: order[row["trace_id"]])
        rows = page_rows(folder / TABLES_DIR, of_runs, page)
        tell("computing savings")
        windows_of = {run.info.trace_id: shown.get(run, ALWAYS) for run in runs}
        weighed = _weighed(rows.findings, runs, windows_of, page.limits.weighed_events)
        rows = changed(rows, findings=weighed)
        file = folder / PAGE_NAME
        file.write_text(render_page(rows), encoding="utf-8")
    return ReportSummary(
        page=str(file),
        tables=str(folder / TABLES_DIR),
        runs=len(runs),
        rebalances=rows.totals["rebalances"],
        comparison=[dict(row) for row in rows.comparison],
        group_count=rows.told_totals["groups"],
        groups=[dict(row) for row in rows.groups],
        reasons=[dict(row) for row in rows.reasons],
    )


@contextmanager
def _opened(
    traces: Sequence[Path | str],
    out: Path | str,
    master: str | None,
    tell: Callable[[str], None],
) -> Iterator[tuple[Engine, list[RunDirectory], Path]]:
    """Yield what computes the report, the traces, and where the report goes.

    URIs are opened by a session of Spark, so one that is there before their size is known.
    """

    def done(name: str) -> None:
        tell(f"computed {name}")

    def on_spark(spark: "SparkSession", runs: list[RunDirectory], folder: Path) -> Engine:
        from coordinator_sim_reports.spark_engine import SparkEngine

        return SparkEngine(spark, (folder / TABLES_DIR).absolute(), done, runs)

    if any(is_uri(str(each)) for each in (*traces, out)):
        session.check_extra()
        tell("starting Spark")
        with _damage_named(), session.spark_session(master or session.DEFAULT_MASTER) as spark:
            folder = location(str(out), spark)
            check_folder(folder, "report")
            runs = open_traces([location(str(each), spark) for each in traces])
            session.fit_to(spark, events_of(runs))
            yield on_spark(spark, runs, folder), runs, folder
        return
    runs, folder = open_traces([Path(each) for each in traces]), Path(out)
    check_folder(folder, "report")
    events = events_of(runs)
    if master is None and events < LOCAL_EVENTS:
        from coordinator_sim_reports.local_engine import LocalEngine

        with LocalEngine(folder / TABLES_DIR, done, runs) as engine:
            yield engine, runs, folder
        return
    session.check_extra()
    tell("starting Spark")
    with (
        _damage_named(),
        session.spark_session(
            master or session.DEFAULT_MASTER,
            shuffle_partitions=session.partitions_for(events),
            adaptive=events >= session.BRIEF_EVENTS,
            small=events < session.SMALL_EVENTS,
            brief=events < session.BRIEF_EVENTS,
        ) as spark,
    ):
        yield on_spark(spark, runs, folder), runs, folder


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
