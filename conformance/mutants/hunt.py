"""Plays each mutant until something notices, each in a fork of a process that has all loaded.

A fork costs milliseconds, an interpreter with the core and the cases two seconds.
"""

import gc
import os
import resource
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.museum.patching import LoadedFunctions
from coordinator_sim_conformance.mutants.generation import code_with, modules_of_core
from coordinator_sim_conformance.mutants.mutant import Fate, Mutant, Trial
from coordinator_sim_conformance.mutants.plays import Play, all_plays

ENDLESS: Final = "does not end"
_PATIENCE_S: Final = 15.0
"""CPU-seconds of one play; a case takes milliseconds, a program 0.25 s, tests 3 s."""
_MEMORY_BYTES: Final = 1 << 30
"""What a mutant may take on top."""
_SIZE: Final = Path("/proc/self/statm")


class Hunt:
    """The plays of a process, ready to be played on mutants.

    Args:
        tests: Files and folders of pytest's, played last.

    Raises:
        DataError: a play does not pass on the whole core.
        ConfigError: there are no such tests.
    """

    def __init__(self, tests: Sequence[Path] = ()) -> None:
        self._plays = all_plays(tests)
        self._loaded = LoadedFunctions(modules_of_core())
        self._kills: dict[str, int] = {}
        gc.collect()
        gc.freeze()

    def trials(self, mutants: Iterable[Mutant], reasons: Mapping[str, str]) -> Iterator[Trial]:
        """The fate of each mutant, in the order given.

        Args:
            mutants: What to try.
            reasons: Why some may survive, by id.
        """
        for mutant in mutants:
            killer = self._killer(mutant)
            yield Trial(
                mutant=mutant,
                fate=Fate.KILLED if killer else Fate.SURVIVED,
                killed_by=killer,
                reason="" if killer else reasons.get(mutant.mutant_id, ""),
            )

    def _killer(self, mutant: Mutant) -> str:
        """The name of the play that notices; empty for none.

        What noticed most mutants so far is played first among the plays of its stage.
        """
        place = (mutant.module, mutant.function)
        chosen = [play for play in self._plays if play.may_notice(place)]
        chosen.sort(key=lambda play: (play.stage, -self._kills.get(play.name, 0)))
        index = _in_a_fork(lambda: _noticed(self._loaded, mutant, chosen))
        if index is None:
            return ENDLESS
        if index < 0:
            return ""
        name = chosen[index].name
        self._kills[name] = self._kills.get(name, 0) + 1
        return name


def is_killed_by(loaded: LoadedFunctions, mutant: Mutant, passes: Callable[[], bool]) -> bool:
    """Whether this one play notices the mutant; the caller has what the play needs loaded."""
    return _in_a_fork(lambda: _noticed(loaded, mutant, [Play("", passes)])) != -1


def _noticed(loaded: LoadedFunctions, mutant: Mutant, plays: Sequence[Play]) -> int:
    """The index of the play that notices, or -1; runs in the fork."""
    loaded.put(code_with(mutant), mutant.mutant_id)
    for index, play in enumerate(plays):
        signal.setitimer(signal.ITIMER_PROF, _PATIENCE_S)
        try:
            passes = play.passes()
        except Exception:  # noqa: BLE001 - whatever a broken core raises is noticed
            passes = False
        if not passes:
            return index
    return -1


def _in_a_fork(work: Callable[[], int]) -> int | None:
    """What the work gives in a child process; None where it does not come to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _bound_memory()
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        try:
            os.write(writing, str(work()).encode())
        except BaseException:  # noqa: BLE001 - a fork must not go on as its parent
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answers:
        answer = answers.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    if not answer:
        raise DataError("a mutant's process ended without an answer; its traceback is above")
    return int(answer)


def _bound_memory() -> None:
    """Limit this process's memory to a fixed amount above its present size (Linux only)."""
    if not _SIZE.exists():
        return
    pages = int(_SIZE.read_bytes().split()[0])
    limit = pages * resource.getpagesize() + _MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
