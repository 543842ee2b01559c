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
from coordinator_sim_reports.sources import TraceFrames, events_of, open_traces, read_traces
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

    from coordinator_sim_reports.tables import TableStore


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
_CANDIDATE_COLUMNS: Final = (
    "unit string, number bigint, candidate string, runs bigint, is_best boolean, "
    + ", ".join(f"{name}{end} double" for name in OBJECTIVES for end in ("", "_low", "_high"))
)
_TOLD_EVERY_S: Final = 1.0
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
        choices: Rows of `transforms.costs.choice_costs`, in reading order.
        by_scenario: Rows of `transforms.costs.scenario_costs`, in reading order.
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


def run_sweep(
    asked: Asked,
    out: Path | str,
    *,
    unasked: Mapping[str, str],
    master: str = DEFAULT_MASTER,
    within_s: float = math.inf,
    progress: Callable[[str], None] | None = None,
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
        within_s: Simulate no further worlds if they would not be done so soon; one is simulated
            however long it takes. The comparison comes on top.
        progress: Called with the present step.

    Raises:
        ConfigError: `out` is a file, or a scenario cannot be compared.
        DataError: a run failed, as one with an assignor that raises.
        MissingDependencyError: the `spark` extra or a Java runtime is missing.
    """
    if not is_uri(str(out)):
        check_folder(Path(out), "sweep")
    every = trials(asked)
    check_extra()
    from coordinator_sim_reports.sweep_page import Scope, render_sweep

    tell = progress or _silent
    with spark_session(master, small=True) as spark:
        folder = location(str(out), spark)
        check_folder(folder, "sweep")
        grid, finished = simulate_all(spark, every, asked, folder / TRACES_DIR, within_s, tell)
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
        page = folder / PAGE_NAME
        compared = {name: rows[name] for name in ("choices", "by_scenario")}
        text = render_sweep(scope, candidates=found, answers=rows["objective"], **compared)
        page.write_text(text, encoding="utf-8")
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
    from coordinator_sim_reports.tables import TableStore

    tell(f"reading {len(finished)} run{'' if len(finished) == 1 else 's'}")
    runs = open_traces([location(each.path, spark) for each in finished])
    fit_to(spark, events_of(runs))
    frames = read_traces(spark, runs)
    store = TableStore(spark, tables.absolute(), lambda name: tell(f"computed {name}"))
    lags = _lag_rows(spark, grid, finished) if objective_lag_ms else None
    costs, choices, by_scenario = _compare(_trial_rows(spark, grid), frames, store, lags)
    order = {trial.trace_id: number for number, trial in enumerate(grid)}
    ordered = sorted(_rows(costs), key=lambda row: order[row["trace_id"]])
    found, answers = candidates(ordered), list[Answer]()
    rows = candidate_rows(found)
    store.keep("candidates", spark.createDataFrame(rows, _CANDIDATE_COLUMNS))
    if objective_lag_ms:
        answers = answers_of(ordered, objective_lag_ms)
    return found, {
        "choices": sorted(_rows(choices), key=_reading_order),
        "by_scenario": sorted(_rows(by_scenario), key=_reading_order),
        "candidates": rows,
        "objective": answers,
    }


def simulate_all(
    spark: "SparkSession",
    grid: Sequence[Trial],
    asked: Asked,
    traces: Path,
    within_s: float,
    tell: Callable[[str], None],
) -> tuple[list[Trial], list[Finished]]:
    """Simulate the trials, each as a task; where time is short, world after world.

    Those that an earlier sweep finished are kept.

    Args:
        spark: The session.
        grid: All trials.
        asked: What the sweep was asked for.
        traces: Folder of all traces of the sweep, a `HadoopPath` behind a URI.
        within_s: Begin no round of worlds that would end later, taking as long as those before.
        tell: Called now and then with how many runs are done.

    Returns:
        The trials of the worlds that there was time for, and what became of each.

    Raises:
        DataError: a run failed; names the first one, and how many.
    """
    seeds = list(dict.fromkeys(trial.seed for trial in grid))
    worlds = len(seeds)
    if within_s < math.inf:
        worlds = -(-spark.sparkContext.defaultParallelism * worlds // len(grid))
    began_s, longest_s = time.monotonic(), 0.0
    done: list[Trial] = []
    finished: list[Finished] = []
    for first in range(0, len(seeds), worlds):
        round_began_s = time.monotonic()
        if done and round_began_s - began_s + longest_s > within_s:
            break
        chosen = frozenset(seeds[first : first + worlds])
        drawn = [trial for trial in grid if trial.seed in chosen]
        told = partial(_tell_runs, tell, len(done), len(grid))
        finished += _simulated(spark, drawn, asked, traces, told)
        done += drawn
        longest_s = max(longest_s, time.monotonic() - round_began_s)
        failures = [each.failure for each in finished if each.failure]
        if failures:
            more = f" (and {len(failures) - 1} more runs)" if len(failures) > 1 else ""
            raise DataError(f"{failures[0]}{more}")
    return done, finished


def _simulated(
    spark: "SparkSession",
    grid: Sequence[Trial],
    asked: Asked,
    traces: Path,
    tell: Callable[[int], None],
) -> list[Finished]:
    """Simulate trials, one Spark task each; `tell` is called with the number of finished ones."""
    if not isinstance(traces, Path):
        return simulate_behind_uri(spark, grid, asked, traces, tell)
    simulate = partial(simulate_trial, out=str(traces.absolute()), asked=asked)
    context = spark.sparkContext
    with _counted(context, tell):
        return list(context.parallelize(grid, len(grid)).map(simulate).collect())


def _tell_runs(tell: Callable[[str], None], before: int, total: int, done: int) -> None:
    tell(f"simulated {before + done} of {total} run{'' if total == 1 else 's'}")


@contextmanager
def _counted(context: "SparkContext", tell: Callable[[int], None]) -> Iterator[None]:
    """Tell now and then how many tasks of the running job are done."""
    done = Event()
    tracker = context.statusTracker()

    def watch() -> None:
        most = 0
        tell(most)
        while not done.wait(_TOLD_EVERY_S):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            # A stage that is done is not active any more while its results are on their way.
            most = max(most, *(stage.numCompletedTasks for stage in stages if stage), 0)
            tell(most)

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
    from coordinator_sim_reports.transforms.costs import LAG_COSTS

    told = [(location(each.path, spark) / LAG_NAME).read_bytes() for each in finished]
    costs = [msgspec.json.decode(text, type=dict[str, float]) for text in told]
    rows = [
        (trial.trace_id, *(own.get(name) for name in LAG_COSTS))
        for trial, own in zip(grid, costs, strict=True)
    ]
    return listed(spark, rows, ", ".join(["trace_id string", *(f"{n} double" for n in LAG_COSTS)]))


def _compare(
    trial_rows: "DataFrame",
    frames: TraceFrames,
    store: "TableStore",
    lags: "DataFrame | None",
) -> tuple["DataFrame", "DataFrame", "DataFrame"]:
    """Return the costs by run, by choice, and by scenario and choice; every table is kept.

    What a lag objective costs the runs (`lags`) is among them.
    """
    from coordinator_sim_reports.tables import kinds_of
    from coordinator_sim_reports.transforms import (
        availability,
        balance,
        moves,
        rebalances,
        working,
    )
    from coordinator_sim_reports.transforms.costs import choice_costs, run_costs, scenario_costs
    from coordinator_sim_reports.transforms.work import work

    runs = store.keep("runs", frames.runs)
    kinds = kinds_of(frames.events)
    events = rebalances.group_events(frames.events, kinds)
    held = store.keep("rebalances", rebalances.rebalances(events))
    dense, resources = frames.generations, frames.resources
    owned = store.keep("ownership", working.ownership_of(dense, resources, events, runs, kinds))
    tables = {
        "rebalances": held,
        "ownership": owned,
        "moves": store.keep("moves", moves.moves(dense, resources)),
        "unowned": store.keep("unowned", availability.unowned(owned, held, runs)),
        "stopped": store.keep("stopped", availability.stop_the_world(owned, held, runs)),
        "imbalance": store.keep("imbalance", balance.imbalance(dense, resources, runs)),
        "work": store.keep("work", work(frames.events)),
    }
    if lags is not None:
        tables["lag_costs"] = store.keep("lag_costs", lags)
    costs = store.keep("run_costs", run_costs(trial_rows, dense, tables))
    return (
        costs,
        store.keep("choice_costs", choice_costs(costs)),
        store.keep("scenario_costs", scenario_costs(costs)),
    )


def _rows(table: "DataFrame") -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in table.collect()]


def _reading_order(row: dict[str, Any]) -> tuple[int, str, int, int, str]:
    """Sort key: questions in their order, scenarios by name, choices from oldest to newest."""
    from coordinator_sim_reports.transforms.costs import QUESTIONS
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
