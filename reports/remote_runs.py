"""Runs of a sweep whose traces go behind a URI, which no worker in Python could write to.

A task simulates into a folder of its own and returns the files; the driver puts them in their place
as they come, some tasks at a time, so that an interrupted sweep goes on from there.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, cast

from msgspec import Struct

from coordinator_sim.trace.schema import MANIFEST_NAME
from coordinator_sim_reports.hadoop_files import HadoopPath
from coordinator_sim_reports.log_ingest import run_tasks
from coordinator_sim_reports.trials import Asked, Finished, Trial, is_finished, simulate_trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
