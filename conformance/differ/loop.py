"""The loop: random programs on both sides, the reference some commands behind ours.

Programs learn from our answers, so the reference works on one chunk of commands while ours works on
the next. Until the first difference both answers are equal, so what a program learnt holds for
both.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from coordinator_sim_conformance.differ.comparison import Difference, first_difference
from coordinator_sim_conformance.differ.explained import Explanation, explanation_of
from coordinator_sim_conformance.differ.programs import Program, program_of
from coordinator_sim_conformance.differ.references import Reference
from coordinator_sim_conformance.differ.share_state_programs import ShareStateProgram
from coordinator_sim_conformance.differ.sides import LinesProcess

Json = dict[str, Any]

CHUNK: Final = 64
"""Commands sent at once; few enough to fit into a pipe."""
PROGRAM_STEPS: Final = 400
"""Default number of commands of one world."""
SEED_STRIDE: Final = 1_000_003
"""Distance between the seeds of two runs, so that their programs are independent."""


class Side(Protocol):
    """Something that answers commands one by one."""

    def answer(self, command: Json) -> Json:
        """Return the answer to one command."""
        ...


class Exchange(Struct, frozen=True):
    """One command and both answers to it."""

    command: Json
    ours: Json
    theirs: Json


class Failure(Struct, frozen=True):
    """A program up to its first unexplained difference.

    Args:
        seed: Seed of the program.
        exchanges: All exchanges up to the command whose answers differ.
    """

    seed: int
    exchanges: tuple[Exchange, ...]
    difference: Difference


class Outcome(Struct, frozen=True):
    """Result of a run.

    Args:
        steps: Number of commands that both sides answered.
        seconds: Wall time.
        failure: First unexplained difference.
        explained: Number of uses of each explanation.
        kinds: Every signature of an unexplained difference, with the seeds of its programs.
        again: Number of programs played again before their result counted.
        unplayed: Seeds of programs for which this host was too slow.
        gone: Why nothing more could be asked; empty as a rule.
    """

    steps: int
    programs: int
    seconds: float
    failure: Failure | None
    explained: dict[str, int]
    kinds: dict[str, list[int]]
    again: int = 0
    unplayed: tuple[int, ...] = ()
    gone: str = ""

    @property
    def steps_per_second(self) -> float:
        """Number of commands that both sides answered, per second of wall time."""
        return self.steps / self.seconds if self.seconds else 0.0


class Plan(Struct, frozen=True, kw_only=True):
    """Parameters of a run.

    Args:
        steps: Total number of commands.
        program_steps: Number of commands of one world.
        without: Kinds of commands that programs leave out.
        keeps_going: Whether to continue with the next program after a difference.
        world: Type of the programs' groups.
        program_seed: Seed of the only program; None draws seeds from `seed`.
    """

    reference: Reference
    steps: int
    seed: int
    program_steps: int = PROGRAM_STEPS
    without: tuple[str, ...] = ()
    explanations: tuple[Explanation, ...] = ()
    keeps_going: bool = False
    world: str = "classic"
    program_seed: int | None = None

    def program_seeds(self) -> Iterator[int]:
        """Yield the seeds of the programs, without end unless there is a single one."""
        if self.program_seed is not None:
            return iter((self.program_seed,))
        return count(self.seed * SEED_STRIDE)


def run(plan: Plan, ours: Side, theirs: LinesProcess, progress: Callable[[int], None]) -> Outcome:
    """Run programs until the steps are used up or a difference appears.

    Args:
        plan: Parameters of the run.
        ours: Simulator.
        theirs: Reference.
        progress: Called with the number of steps compared so far.
    """
    started = perf_counter()
    judge = _Judge(plan)
    done = programs = 0
    waiting: deque[tuple[int, list[tuple[Json, Json]]]] = deque()
    for seed, chunk in _chunks(plan, ours):
        theirs.send([msgspec.json.encode(command) for command, _ in chunk])
        waiting.append((seed, chunk))
        programs += chunk[0][0]["op"] == "init"
        if len(waiting) > 1:
            done += judge.compare(*waiting.popleft(), theirs)
            progress(done)
        if judge.failure is not None and not plan.keeps_going:
            break
    while waiting:
        done += judge.compare(*waiting.popleft(), theirs)
    return Outcome(
        done, programs, perf_counter() - started, judge.failure, judge.explained, judge.kinds
    )


def _chunks(plan: Plan, ours: Side) -> Iterator[tuple[int, list[tuple[Json, Json]]]]:
    """Yield chunks of commands with our answers; a chunk never reaches into the next program."""
    left = plan.steps
    for seed in plan.program_seeds():
        if left == 0:
            return
        program = program_of(plan.reference, seed, plan.without, plan.world)
        size = min(left, plan.program_steps)
        left -= size
        chunk: list[tuple[Json, Json]] = []
        for command in _commands(program, size):
            answer = ours.answer(command)
            program.learn(answer)
            chunk.append((command, answer))
            if len(chunk) == CHUNK:
                yield program.seed, chunk
                chunk = []
        if chunk:
            yield program.seed, chunk


def _commands(program: Program | ShareStateProgram, size: int) -> Iterator[Json]:
    opening = program.opening()
    yield from opening[:size]
    for number in range(len(opening), size):
        yield program.next(number)


class _Judge:
    """Compares chunk after chunk and keeps the current program's exchanges."""

    def __init__(self, plan: Plan) -> None:
        self.failure: Failure | None = None
        self.explained: dict[str, int] = {}
        self.kinds: dict[str, list[int]] = {}
        self._plan = plan
        self._exchanges: list[Exchange] = []
        self._is_abandoned = False

    def compare(self, seed: int, chunk: list[tuple[Json, Json]], theirs: LinesProcess) -> int:
        """Compare one chunk with the reference's answers; return the number of commands compared.

        After a difference the rest of its program is skipped, as the two worlds differ.
        """
        for command, mine in chunk:
            answer = theirs.receive()
            if command["op"] == "init":
                self._exchanges = []
                self._is_abandoned = False
            if self._is_abandoned:
                continue
            self._exchanges.append(Exchange(command, mine, answer))
            difference = first_difference(command, mine, answer)
            if difference is not None:
                self._judge(seed, difference)
        return len(chunk)

    def _judge(self, seed: int, difference: Difference) -> None:
        self._is_abandoned = True
        found = explanation_of(self._plan.explanations, self._plan.reference.name, difference)
        if found is not None:
            name = found.explanation_id
            self.explained[name] = self.explained.get(name, 0) + 1
            return
        self.kinds.setdefault(difference.signature, []).append(seed)
        if self.failure is None:
            self.failure = Failure(seed, tuple(self._exchanges), difference)
