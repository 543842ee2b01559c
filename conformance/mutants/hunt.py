"""Plays each mutant until something notices, each in a fork of a process that has all loaded.

A fork costs milliseconds, an interpreter with the core and the cases two seconds.

What may notice a mutant: cases, transcripts, random programs that Kafka answers alike, tests.

A program is one of `conformance differ`, drawn by the seeds that it compares with Kafka's own
coordinator; here its answers are those of the core before it was changed, compared as the
differ compares.
"""

import gc
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from importlib.resources import files
from pathlib import Path
from types import FrameType
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError, DataError, needing
from coordinator_sim_conformance.differ.comparison import first_difference
from coordinator_sim_conformance.differ.loop import SEED_STRIDE
from coordinator_sim_conformance.differ.programs import Program
from coordinator_sim_conformance.differ.references import REFERENCES, Reference
from coordinator_sim_conformance.differ.sides import Simulator
from coordinator_sim_conformance.museum.patching import LoadedFunctions
from coordinator_sim_conformance.mutants.generation import ROOM, code_with, modules_of_core
from coordinator_sim_conformance.mutants.mutant import Fate, Mutant, Trial
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.running import Verdict, cases_for, play_case
from coordinator_sim_conformance.targets.simulator import SimulatorTarget
from coordinator_sim_conformance.transcript import run_transcript

Json = dict[str, Any]

PROFILES: Final = ("4.4", "3.9", "0.10.2")
"""One of each family."""
_REFERENCES: Final = ("kafka-4.4.0", "kafka-3.9.2", "kafka-2.8.2", "kafka-0.10.2.2")
_PROGRAMS: Final = 2
"""Programs of each reference."""
_STEPS: Final = 400
_NO_PLUGINS: Final = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Hypothesis's plugin wants to be there before any of its strategies is; properties do without."""
_PYTEST: Final = ("-x", "-q", "--assert=plain", *_NO_PLUGINS)
_FOLDER: Final = ROOM.replace(".", "/")


class Play(Struct, frozen=True):
    """Something to play.

    Args:
        name: `JOIN-001 as 4.4`, `transcript static_member`, `differ kafka-4.4.0 1000003`, or
            the path of tests.
        passes: Plays it on the core as it is then.
        reached: Functions of the core that it called on the whole core; None where nobody looked.
        stage: Plays of a lower stage come first: 0 takes milliseconds, 1 a quarter of a second,
            2 seconds.
    """

    name: str
    passes: Callable[[], bool]
    reached: frozenset[tuple[str, str]] | None = None
    stage: int = 0

    def may_notice(self, place: tuple[str, str]) -> bool:
        """Whether the play calls a function of a module; True if its calls are unknown."""
        return self.reached is None or place in self.reached


def all_plays(tests: Sequence[Path] = ()) -> list[Play]:
    """Every play: cases, transcripts, programs, then tests; each was played once and passed.

    A case of three profiles counts three times. Cases that reach few functions come first, as
    they ask for most about each.

    Args:
        tests: Files and folders of pytest's, for what the plays before them leave alive.

    Raises:
        DataError: a play does not pass on the whole core.
    """
    cases = [_reached(name, passes) for name, passes in case_plays().items()]
    texts = files("coordinator_sim_scenarios").joinpath("transcripts")
    transcripts = [
        _reached(f"transcript {path.name[:-4]}", partial(_story_is_told, path.read_text("utf-8")))
        for path in sorted(texts.iterdir(), key=lambda path: path.name)
        if path.name.endswith(".txt")
    ]
    programs = [_program(REFERENCES[name], n) for name in _REFERENCES for n in range(_PROGRAMS)]
    ordered = sorted(cases, key=lambda play: len(play.reached or ()))
    tried = [_tests(path) for path in tests]
    return [*ordered, *transcripts, *programs, *tried]


def case_plays() -> dict[str, Callable[[], bool]]:
    """Every case of every profile by its name; nothing is played yet."""
    target = SimulatorTarget()
    return {
        f"{case.case_id} as {profile}": partial(_case_passes, case, target, profile)
        for profile in PROFILES
        for case in cases_for(all_cases(), profile)
    }


def _tests(path: Path) -> Play:
    if not path.exists():
        raise ConfigError(f"--tests {path}: no such file or folder")
    if not _tests_pass(path):
        raise DataError(f"--tests {path}: they fail without any change of the core")
    return Play(str(path), partial(_tests_pass, path), stage=2)


def _story_is_told(text: str) -> bool:
    return run_transcript(text) == text


def _tests_pass(path: Path) -> bool:
    """Run tests in this process, silently."""
    with needing("conformance", "--tests"):
        import pytest

    with (
        Path(os.devnull).open("w", encoding="utf-8") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        return pytest.main([*_PYTEST, str(path)]) == 0


def _case_passes(case: Any, target: SimulatorTarget, profile: str) -> bool:  # noqa: ANN401 - a case of the registry
    return play_case(case, target, profile).verdict in {Verdict.PASSED, Verdict.SKIPPED}


def _program(reference: Reference, number: int) -> Play:
    """A program with the answers of the whole core."""
    seed = SEED_STRIDE + number
    exchanges: list[tuple[Json, Json]] = []

    def record() -> bool:
        side = Simulator(reference.profile, has_edge=reference.has_edge)
        program = Program(reference, seed)
        for command in _commands(program):
            answer = side.answer(command)
            program.learn(answer)
            exchanges.append((command, answer))
        return True

    recorded = _reached(f"differ {reference.name} {seed}", record)
    passes = partial(_program_passes, reference, tuple(exchanges))
    return Play(recorded.name, passes, recorded.reached, stage=1)


def _commands(program: Program) -> Iterator[Json]:
    opening = program.opening()
    yield from opening
    for number in range(len(opening), _STEPS):
        yield program.next(number)


def _program_passes(reference: Reference, exchanges: Sequence[tuple[Json, Json]]) -> bool:
    side = Simulator(reference.profile, has_edge=reference.has_edge)
    return all(
        first_difference(command, side.answer(command), answer) is None
        for command, answer in exchanges
    )


def _reached(name: str, passes: Callable[[], bool]) -> Play:
    """Play it once, and note which functions of the core it calls.

    Raises:
        DataError: it does not pass.
    """
    codes: dict[Any, None] = {}

    def trace(frame: FrameType, _event: str, _argument: object) -> None:
        codes[frame.f_code] = None

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        is_sound = passes()
    finally:
        sys.settrace(before)
    if not is_sound:
        raise DataError(f"{name} fails without any change of the core; mend that first")
    return Play(name, passes, frozenset(filter(None, map(function_of, codes))))


def function_of(code: Any) -> tuple[str, str] | None:  # noqa: ANN401 - a code object
    """The module and the outermost function of a code of the core; None for other code."""
    _, folder, rest = code.co_filename.rpartition(_FOLDER)
    if not folder:
        return None
    module = ROOM + rest.removesuffix(".py").replace("/", ".")
    return module, code.co_qualname.partition(".<locals>")[0]


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
