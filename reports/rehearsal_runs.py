"""The runs of a rehearsal: world after world, the deploys of one world side by side."""

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError
from coordinator_sim_reports.trials import Asked, Finished, Trial, simulate_trial, trials

PATIENCE_S: Final = 10.0
"""Worlds that are done sooner are simulated by this process alone."""


class Pace(Struct, frozen=True, kw_only=True):
    """How long the simulation may take, and by how many processes.

    Args:
        within_s: Begin no world that would end later than so many seconds after the beginning of
            the rehearsal, taking as long as the longest so far; one is always simulated.
        workers: Processes at most.
        patience_s: Time left from which on there are several.
    """

    within_s: float = 60.0
    workers: int = 2
    patience_s: float = PATIENCE_S


def simulate_worlds(
    asked: Sequence[Asked], traces: Path, pace: Pace, tell: Callable[[int, int], None]
) -> tuple[list[Trial], list[Finished]]:
    """Simulate world after world, the same one for every deploy, while there is time.

    Runs that are finished in `traces` are kept.

    Args:
        asked: Scenarios of each group, all with the same seeds.
        traces: Folder of all traces.
        pace: How long that may take.
        tell: Called with the runs that are done, and how many there are.

    Raises:
        DataError: a run failed.
    """
    grid = [(trial, group) for group in asked for trial in trials(group)]
    seeds = list(dict.fromkeys(trial.seed for trial, _ in grid))
    began_s, longest_s = time.monotonic(), 0.0
    done: list[Trial] = []
    finished: list[Finished] = []
    tell(0, len(grid))
    with ExitStack() as stack:
        pool: ProcessPoolExecutor | None = None
        for number, seed in enumerate(seeds):
            round_began_s = time.monotonic()
            if done and round_began_s - began_s + longest_s > pace.within_s:
                break
            if pool is None and _is_long(pace, longest_s * (len(seeds) - number)):
                pool = stack.enter_context(workers(pace.workers))
            world = [each for each in grid if each[0].seed == seed]
            for (trial, _), result in zip(world, _results(world, traces, pool), strict=True):
                if result.failure:
                    raise DataError(result.failure)
                done.append(trial)
                finished.append(result)
                tell(len(done), len(grid))
            longest_s = max(longest_s, time.monotonic() - round_began_s)
    return done, finished


def _is_long(pace: Pace, left_s: float) -> bool:
    return pace.workers > 1 and left_s > pace.patience_s


def _results(
    world: Sequence[tuple[Trial, Asked]], traces: Path, pool: ProcessPoolExecutor | None
) -> Iterable[Finished]:
    folders = [str(traces.absolute())] * len(world)
    own, groups = zip(*world, strict=True)
    if pool is None:
        return map(simulate_trial, own, folders, groups)
    return pool.map(simulate_trial, own, folders, groups)


def workers(count: int) -> ProcessPoolExecutor:
    """Return so many processes, each started anew: a fork would share what the parent holds."""
    return ProcessPoolExecutor(count, get_context("spawn"), initializer=_leave_interrupts)


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that waits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
