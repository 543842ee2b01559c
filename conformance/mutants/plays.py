"""What may notice a mutant: cases, transcripts, random programs that Kafka answers alike, tests.

A program is one of `conformance differ`, drawn by the seeds that it compares with Kafka's own
coordinator; here its answers are those of the core before it was changed, compared as the
differ compares.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
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
from coordinator_sim_conformance.mutants.generation import ROOM
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
