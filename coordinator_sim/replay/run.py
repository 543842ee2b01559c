"""Replays a trace on disk, in the way its source allows."""

from collections.abc import Callable
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim.replay.logs import replay_log
from coordinator_sim.replay.recordings import replay_recording
from coordinator_sim.replay.report import ReplayResult
from coordinator_sim.replay.settings import UNKNOWN, Settings
from coordinator_sim.runs.run_directory import RunDirectory
from coordinator_sim.trace.events import Source

_WITH_REQUESTS: Final = frozenset({Source.SIM, Source.WIRE})


def replay_run(
    run: RunDirectory,
    settings: Settings = UNKNOWN,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> ReplayResult:
    """Replay a trace on disk; `on_progress` gets the number of events done.

    Raises:
        DataError: the trace cannot be read, or holds nothing that can be replayed.
    """
    if run.info.source in _WITH_REQUESTS:
        result = replay_recording(list(run.events()), run.info, settings)
    else:
        result = replay_log(run.events(), run.info, settings, on_progress=on_progress)
    if not result.report.groups:
        raise DataError(f"{run.path}: no group in it rebalances, so there is nothing to replay")
    return result
