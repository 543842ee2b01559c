"""The sweep job: a grid of scenarios and choices, simulated and compared by Spark.

Runs of a sweep whose traces go behind a URI, which no worker in Python could write to.

A task simulates into a folder of its own and returns the files; the driver puts them in their place
as they come, some tasks at a time, so that an interrupted sweep goes on from there.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from msgspec import Struct

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.errors import DataError
from coordinator_sim.sim.scenario.settings import CONNECT_PROTOCOLS
from coordinator_sim.trace.schema import MANIFEST_NAME
from coordinator_sim_reports.hadoop_files import HadoopPath, check_folder, is_uri, location
from coordinator_sim_reports.local_frames import listed
from coordinator_sim_reports.log_ingest import run_tasks
from coordinator_sim_reports.objective import Answer, answers_of
from coordinator_sim_reports.session import DEFAULT_MASTER, check_extra, fit_to, spark_session
from coordinator_sim_reports.sources import events_of, open_traces
from coordinator_sim_reports.tradeoffs import OBJECTIVES, Candidate, candidate_rows, candidates
from coordinator_sim_reports.trials import (
    LAG_NAME,
    Asked,
    Finished,
    Trial,
    is_finished,
    simulate_trial,
    trials,
)

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession

    from coordinator_sim_reports.spark_engine import SparkEngine


class RunFiles(Struct, frozen=True):
    """A run as it comes from a worker.

    Args:
        failure: See `Finished`.
        files: Content of each file of the trace, by its place in it.
    """

    failure: str
    files: dict[str, bytes]


def simulate_behind_uri(
    spark: "SparkSession",
    grid: Sequence[Trial],
    asked: Asked,
    traces: Path,
    tell: Callable[[int], None],
) -> list[Finished]:
    """Simulate the trials that have no finished trace, each as a task.

    Args:
        spark: The session.
        grid: The trials.
        asked: What the sweep was asked for.
        traces: Folder of all traces, a `HadoopPath`.
        tell: Called with the number of trials that are done.

    Returns:
        What became of each, in the grid's order.

    Raises:
        DataError: a worker failed, or the file system refuses.
    """
    finished: dict[str, Finished] = {}
    if traces.is_dir():
        for trial in grid:
            place = traces / trial.label
            if is_finished(place, trial):
                finished[trial.label] = Finished(path=str(place), is_kept=True)
    fresh = [trial for trial in grid if trial.label not in finished]
    tell(len(finished))
    told = run_tasks(spark, fresh, partial(_simulate, asked=asked), what="files of own assignors")
    for trial, run in zip(fresh, told, strict=True):
        finished[trial.label] = _placed(run, cast("HadoopPath", traces / trial.label))
        tell(len(finished))
    return [finished[trial.label] for trial in grid]


def _simulate(trial: Trial, asked: Asked) -> RunFiles:
    with TemporaryDirectory(prefix="coordinator-sim-run-") as scratch:
        finished = simulate_trial(trial, scratch, asked)
        folder = Path(scratch) / trial.label
        paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
    return RunFiles(finished.failure, files)


def _placed(run: RunFiles, place: HadoopPath) -> Finished:
    """Put a trace in its place, last the file without which it is none."""
    if run.failure:
        return Finished(failure=run.failure)
    with TemporaryDirectory(prefix="coordinator-sim-run-") as scratch:
        for name, content in run.files.items():
            file = Path(scratch) / ("last" if name == MANIFEST_NAME else "trace") / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        place.remove()
        place.copy_from(Path(scratch) / "trace")
        (place / MANIFEST_NAME).copy_from(Path(scratch) / "last" / MANIFEST_NAME)
    return Finished(path=str(place))


PAGE_NAME: Final = "sweep.html"
TABLES_DIR: Final = "tables"
TRACES_DIR: Final = "traces"
_JOB_STOPPED: Final = "coordinator-sim-sweep"
"""The group of Spark jobs that a sweep may stop; the error of a stopped job names it."""
_CANDIDATE_COLUMNS: Final = (
    "unit string, number bigint, candidate string, runs bigint, is_best boolean, "
    + ", ".join(f"{name}{end} double" for name in OBJECTIVES for end in ("", "_low", "_high"))
)
_TOLD_EVERY_S: Final = 1.0
DEFAULT_WITHIN_S: Final = 300.0
"""A sweep that is told no time ends after five minutes."""
_TRIAL_COLUMNS: Final = (
    "trace_id string, scenario string, choice string, membership string, seed bigint, "
    "processing_ms bigint, settings string"
)


class SweepSummary(Struct, frozen=True, kw_only=True):
    """Summary of a sweep, for the terminal and for machines.

    Args:
        page: The HTML file.
        tables: Directory with one subdirectory per Parquet table.
        runs: Number of runs compared.
        kept: How many of them an earlier sweep into the same directory had simulated.
        seeds: Number of drawn worlds of each choice.
        seeds_left: Number of those that were asked for too, but there was no time for them.
        scenarios: Number of scenarios in them.
        choices: Rows of `transforms.choice_costs.choice_costs`, in reading order.
        by_scenario: Rows of `transforms.choice_costs.scenario_costs`, in reading order.
        candidates: Every combination of choices; see `tradeoffs.candidate_rows`.
        objective: What keeping the lag objective costs, by scenario; empty without an objective.
        left_out: Scenarios of the catalogue that are not compared, with the reason; empty when the
            scenarios were chosen by name.
    """

    page: str
    tables: str
    runs: int
    kept: int
    seeds: int
    seeds_left: int
    scenarios: int
    choices: list[dict[str, Any]]
    by_scenario: list[dict[str, Any]]
    candidates: list[dict[str, Any]]
    objective: list[Answer] = []
    left_out: dict[str, str] = {}


def run_sweep(  # noqa: PLR0913 - what is run, where and for how long, by keyword
    asked: Asked,
    out: Path | str,
    *,
    unasked: Mapping[str, str],
    master: str = DEFAULT_MASTER,
    within_s: float | None = None,
    progress: Callable[[str], None] | None = None,
    announce: Callable[[str], None] | None = None,
) -> SweepSummary:
    """Simulate every trial as a Spark task, and compare the costs of the choices.

    A trial whose finished trace is in `out` is not run again. Where time is short, further worlds
    are left out, the same ones for every choice.

    Args:
        asked: What to run.
        out: Directory for `sweep.html`, `tables/` and `traces/`, a path or a URI; created with its
            parents.
        unasked: Scenarios of the catalogue that are not in the grid, with the reason.
        master: Spark master URL; its workers must see `out` unless it is a URI.
        within_s: Begin no world that would end later; the first one always ends, and the comparison
            comes on top. None is `DEFAULT_WITHIN_S`, with no exception for the first world.
        progress: Called with the present step.
        announce: Called with the number of runs, and later with how long they take.

    Raises:
        ConfigError: `out` is a file, or a scenario cannot be compared.
        DataError: a run failed, or no world is done in time.
        MissingDependencyError: the `spark` extra or a Java runtime is missing.
    """
    if not is_uri(str(out)):
        check_folder(Path(out), "sweep")
    every = trials(asked)
    check_extra()
    from coordinator_sim_reports.sweep_page import Scope, render_sweep

    tell = progress or _silent
    with spark_session(master, small=True) as spark:
        check_folder(folder := location(str(out), spark), "sweep")
        parallelism = spark.sparkContext.defaultParallelism
        outlook = Outlook(every, folder / TRACES_DIR, within_s, parallelism, announce or _silent)
        grid, finished = simulate_all(spark, every, asked, folder / TRACES_DIR, outlook, tell)
        found, rows = _compared(
            spark, grid, finished, folder / TABLES_DIR, tell, asked.objective_lag_ms
        )
        scenarios = len({trial.scenario for trial in grid})
        seeds = len({trial.seed for trial in grid})
        scope = Scope(
            runs=len(grid),
            seeds=seeds,
            seeds_left=len(asked.seeds) - seeds,
            left_out=unasked,
            is_own=bool(asked.written),
        )
        compared = {name: rows[name] for name in ("choices", "by_scenario")}
        text = render_sweep(scope, candidates=found, answers=rows["objective"], **compared)
        (page := folder / PAGE_NAME).write_text(text, encoding="utf-8")
    return SweepSummary(
        page=str(page),
        tables=str(folder / TABLES_DIR),
        runs=len(grid),
        kept=sum(each.is_kept for each in finished),
        seeds=seeds,
        seeds_left=scope.seeds_left,
        scenarios=scenarios,
        left_out=dict(unasked),
        **rows,
    )


def _compared(
    spark: "SparkSession",
    grid: Sequence[Trial],
    finished: Sequence[Finished],
    tables: Path,
    tell: Callable[[str], None],
    objective_lag_ms: int | None,
) -> tuple[list[Candidate], dict[str, list[Any]]]:
    """Compute every table of a sweep; return the candidates, and the summary's rows by field."""
    from coordinator_sim_reports.spark_engine import SparkEngine

    tell(f"reading {len(finished)} run{'' if len(finished) == 1 else 's'}")
    runs = open_traces([location(each.path, spark) for each in finished])
    fit_to(spark, events_of(runs))
    store = SparkEngine(spark, tables.absolute(), lambda name: tell(f"computed {name}"), runs)
    lags = _lag_rows(spark, grid, finished) if objective_lag_ms else None
    costs, choices, by_scenario = _compare(_trial_rows(spark, grid), store, lags)
    order = {trial.trace_id: number for number, trial in enumerate(grid)}
    ordered = sorted(store.rows(costs), key=lambda row: order[row["trace_id"]])
    found, answers = candidates(ordered), list[Answer]()
    rows = candidate_rows(found)
    store.keep("candidates", spark.createDataFrame(rows, _CANDIDATE_COLUMNS))
    if objective_lag_ms:
        answers = answers_of(ordered, objective_lag_ms)
    return found, {
        "choices": sorted(store.rows(choices), key=_reading_order),
        "by_scenario": sorted(store.rows(by_scenario), key=_reading_order),
        "candidates": rows,
        "objective": answers,
    }


class Outlook:
    """The time that a sweep takes, measured by its first runs and announced once.

    Args:
        grid: All trials.
        traces: Folder of all traces; runs that are finished there are kept.
        within_s: See `run_sweep`.
        parallelism: Runs that are simulated at a time; so many tell the length.
        announce: Called with what is found out, one line each.
    """

    def __init__(
        self,
        grid: Sequence[Trial],
        traces: Path,
        within_s: float | None,
        parallelism: int,
        announce: Callable[[str], None],
    ) -> None:
        self.ends_s = DEFAULT_WITHIN_S if within_s is None else within_s
        self.is_strict = within_s is None
        self._finished = {each.label for each in grid if is_finished(traces / each.label, each)}
        self._fresh = len(grid) - len(self._finished)
        self._parallelism = parallelism
        self._announce = announce
        self._has_announced = False
        self._began_s = time.monotonic()
        worlds = len({each.seed for each in grid})
        kept = f", {len(self._finished)} of them kept from before" if self._finished else ""
        choices = len(grid) // worlds
        announce(f"{_counted_runs(len(grid))}: {choices} in each of {worlds} drawn worlds{kept}")

    @property
    def passed_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._began_s

    def see(self, round_: Sequence[Trial], done: int) -> None:
        """Note how many runs of the first round are done; the first new ones tell the length."""
        fresh = done - sum(each.label in self._finished for each in round_)
        if self._has_announced or fresh < min(self._parallelism, self._fresh) or not fresh:
            return
        self._has_announced = True
        whole_s = self.passed_s / fresh * self._fresh
        ends = ""
        if whole_s > self.ends_s:
            ends = f"; ends after {_length(self.ends_s)}, with the same worlds for every choice"
        self._announce(f"simulating them takes about {_length(whole_s)}{ends}")


def _length(length_s: float) -> str:
    """Return a length in words, to two figures or so."""
    for unit, seconds in (("h", 3_600), ("min", 60)):
        if length_s >= 2 * seconds:
            return f"{length_s / seconds:.0f} {unit}"
    return f"{max(1.0, length_s):.0f} s"


def _counted_runs(count: int) -> str:
    return f"{count} run{'' if count == 1 else 's'}"


def simulate_all(
    spark: "SparkSession",
    grid: Sequence[Trial],
    asked: Asked,
    traces: Path,
    outlook: Outlook,
    tell: Callable[[str], None],
) -> tuple[list[Trial], list[Finished]]:
    """Simulate the trials, each as a task; where time is short, world after world.

    Those that an earlier sweep finished are kept.

    Args:
        spark: The session.
        grid: All trials.
        asked: What the sweep was asked for.
        traces: Folder of all traces of the sweep, a `HadoopPath` behind a URI.
        outlook: Begin no round of worlds that would end later, taking as long as those before.
        tell: Called now and then with how many runs are done.

    Returns:
        The trials of the worlds that there was time for, and what became of each.

    Raises:
        DataError: a run failed; names the first one, and how many. Or no world is done in time.
    """
    seeds = list(dict.fromkeys(trial.seed for trial in grid))
    worlds = -(-spark.sparkContext.defaultParallelism * len(seeds) // len(grid))
    longest_s = 0.0
    done: list[Trial] = []
    finished: list[Finished] = []
    for first in range(0, len(seeds), worlds):
        round_began_s = outlook.passed_s
        if done and round_began_s + longest_s > outlook.ends_s:
            break
        chosen = frozenset(seeds[first : first + worlds])
        drawn = [trial for trial in grid if trial.seed in chosen]

        def count_runs(count: int, drawn: Sequence[Trial] = drawn) -> None:
            tell(f"simulated {len(done) + count} of {_counted_runs(len(grid))}")  # noqa: B023
            outlook.see(drawn, count)

        limit_s = outlook.ends_s - outlook.passed_s if outlook.is_strict and not done else None
        finished += _simulated(spark, drawn, asked, traces, count_runs, limit_s)
        outlook.see(drawn, len(drawn))
        done += drawn
        longest_s = max(longest_s, outlook.passed_s - round_began_s)
        failures = [each.failure for each in finished if each.failure]
        if failures:
            more = f" (and {len(failures) - 1} more runs)" if len(failures) > 1 else ""
            raise DataError(f"{failures[0]}{more}")
    of = dict(zip((trial.label for trial in done), finished, strict=True))
    done = [trial for trial in grid if trial.label in of]
    return done, [of[trial.label] for trial in done]


def _simulated(
    spark: "SparkSession",
    grid: Sequence[Trial],
    asked: Asked,
    traces: Path,
    tell: Callable[[int], None],
    limit_s: float | None,
) -> list[Finished]:
    """Simulate trials, one Spark task each; `tell` is called with the number of finished ones.

    Raises:
        DataError: they are not done within `limit_s`; there is none behind a URI.
    """
    if not isinstance(traces, Path):
        return simulate_behind_uri(spark, grid, asked, traces, tell)
    simulate = partial(simulate_trial, out=str(traces.absolute()), asked=asked)
    context = spark.sparkContext
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    try:
        with _counted(context, tell, limit_s):
            return list(context.parallelize(grid, len(grid)).map(simulate).collect())
    except (PySparkException, Py4JError) as error:
        if limit_s is None or _JOB_STOPPED not in str(error):
            raise
        left = sum(not is_finished(traces / each.label, each) for each in grid)
        worlds = len({each.seed for each in grid})
        first = "the first world" if worlds == 1 else f"the first {worlds} worlds"
        raise DataError(
            f"after {_length(limit_s)}, {left} of the {_counted_runs(len(grid))} of {first} are "
            "not done, so that nothing can be compared; those that are done are kept: run it again "
            "to go on, or give --within a length, with which one world is always simulated"
        ) from error


@contextmanager
def _counted(
    context: "SparkContext", tell: Callable[[int], None], limit_s: float | None
) -> Iterator[None]:
    """Tell now and then how many tasks of the running job are done; stop it after `limit_s`."""
    done = Event()
    ends_s = math.inf if limit_s is None else time.monotonic() + limit_s
    context.setJobGroup(_JOB_STOPPED, "simulates the runs of a sweep", interruptOnCancel=True)
    tracker = context.statusTracker()

    def watch() -> None:
        most = 0
        tell(most)
        while not done.wait(_TOLD_EVERY_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            # A stage that is done is not active any more while its results are on their way.
            most = max(most, *(stage.numCompletedTasks for stage in stages if stage), 0)
            tell(most)
            if time.monotonic() >= ends_s:
                context.cancelJobGroup(_JOB_STOPPED)
                return

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _trial_rows(spark: "SparkSession", grid: Sequence[Trial]) -> "DataFrame":
    differ = len({trial.settings_text for trial in grid}) > 1
    rows = [
        (
            *(trial.trace_id, trial.scenario, trial.choice, trial.membership, trial.seed),
            *(trial.processing_ms, trial.settings_text if differ else ""),
        )
        for trial in grid
    ]
    return spark.createDataFrame(rows, _TRIAL_COLUMNS)


def _lag_rows(
    spark: "SparkSession", grid: Sequence[Trial], finished: Sequence[Finished]
) -> "DataFrame":
    """Return what the lag objective cost each run, as the run's task has written it."""
    from coordinator_sim_reports.transforms.choice_costs import LAG_COSTS

    told = [(location(each.path, spark) / LAG_NAME).read_bytes() for each in finished]
    costs = [msgspec.json.decode(text, type=dict[str, float]) for text in told]
    rows = [
        (trial.trace_id, *(own.get(name) for name in LAG_COSTS))
        for trial, own in zip(grid, costs, strict=True)
    ]
    return listed(spark, rows, ", ".join(["trace_id string", *(f"{n} double" for n in LAG_COSTS)]))


def _compare(
    trial_rows: "DataFrame",
    store: "SparkEngine",
    lags: "DataFrame | None",
) -> tuple["DataFrame", "DataFrame", "DataFrame"]:
    """Return the costs by run, by choice, and by scenario and choice; every table is kept.

    What a lag objective costs the runs (`lags`) is among them.
    """
    from coordinator_sim_reports.tables import kinds_of
    from coordinator_sim_reports.transforms.choice_costs import (
        OF_RUNS,
        choice_costs,
        run_costs,
        scenario_costs,
    )
    from coordinator_sim_reports.transforms.groups import Records, group_events, group_pass

    frames = store.read()
    store.keep("runs", frames.runs)
    kinds = kinds_of(store, frames.events)
    events = group_events(store, frames.events, kinds)
    told = Records(events, kinds, frames.dense_pieces, frames.resources)
    made = group_pass(store, told, frames.facts, OF_RUNS)
    tables = {name: store.keep(name, made.table(name)) for name in OF_RUNS}
    if lags is not None:
        tables["lag_costs"] = store.keep("lag_costs", lags)
    costs = store.keep("run_costs", run_costs(trial_rows, frames.generations, tables))
    return (
        costs,
        store.keep("choice_costs", choice_costs(costs)),
        store.keep("scenario_costs", scenario_costs(costs)),
    )


def _reading_order(row: dict[str, Any]) -> tuple[int, str, int, int, str]:
    """Sort key: questions in their order, scenarios by name, choices from oldest to newest."""
    from coordinator_sim_reports.transforms.choice_costs import QUESTIONS
    from coordinator_sim_reports.trials import MEMBERSHIPS

    choices = (*CONNECT_PROTOCOLS, *CONSUMER_ASSIGNORS, *MEMBERSHIPS)
    pace, is_paced, choice = row["choice"].rpartition(" ms, ")
    return (
        QUESTIONS.index(row["question"]),
        row.get("scenario", ""),
        int(pace) if is_paced else 0,
        choices.index(choice) if choice in choices else len(choices),
        choice,
    )


def _silent(what: str) -> None:
    del what
