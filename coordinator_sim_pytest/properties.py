"""Drawn scenarios as tests: run one, judge it, and tell a failure so that it can be repeated.

Meant for `@given(scenarios(...))` of `coordinator_sim_scenarios.strategies`. The file of a failure
is written again for each failing example, so that the last one, the shrunk one, stays.
"""

import os
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from coordinator_sim.sim.runner import run_scenario
from coordinator_sim.sim.scenario import Scenario, scenario_to_json
from coordinator_sim.sim.stories import Story
from coordinator_sim.trace.events import TraceEvent
from coordinator_sim.trace.recorder import MemoryRecorder
from coordinator_sim_conformance.checkers import Report, check_all, slice_lines
from coordinator_sim_conformance.scenario_timing import circumstances_of, with_calm
from coordinator_sim_scenarios.stories import scenario_story

FAILED: Final = Path("out") / "failed"
"""Folder of the scenarios that failed, below the folder that pytest runs in."""
MAX_LINES: Final = 80
"""Largest number of the story's lines that a failure shows."""
_FIRST_LINES: Final = 20
"""How many of them are the first ones, where the story is longer."""
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]+")

_Place = tuple[str, str, int]
"""Where a failure is from: the exception's class, and the file and line that raised it."""
_PLACES: Final[dict[str, list[_Place]]] = {}
"""The places of each test's failures so far: Hypothesis shrinks those of each place apart."""


class SimulatedRun(Struct, frozen=True, kw_only=True):
    """A scenario that was run to its end.

    Args:
        scenario: The scenario, followed by calm.
        seed: Seed of its choices.
        events: Every event, in order.
        report: The verdicts of the invariants I1 to I10.
    """

    scenario: Scenario
    seed: int
    events: Sequence[TraceEvent]
    report: Report

    def story(self) -> list[str]:
        """Return the events that a reader wants, a line each."""
        return scenario_story(self.events)


@contextmanager
def simulated(
    scenario: Scenario,
    *,
    seed: int = 0,
    directory: Path | None = None,
    story: Story | None = None,
) -> Iterator[SimulatedRun]:
    """Run a scenario and calm after it, check the invariants, and give the run to the block.

    Whatever fails, an invariant or an assertion of the block, gets a note: the story of the run,
    the scenario's file, and the command that runs it again.

    Args:
        scenario: Scenario to run, drawn or one's own.
        seed: Seed of its choices.
        directory: Folder for the file of a failed scenario; `out/failed` by default.
        story: Further happenings, as a simpy process; a failed scenario's file lacks them.

    Raises:
        AssertionError: an invariant is broken.
    """
    __tracebackhide__ = True
    calm = with_calm(scenario)
    lasting = structs.replace(calm, duration_ms=max(calm.duration_ms, scenario.duration_ms))
    folder = FAILED if directory is None else directory
    recorder = MemoryRecorder()
    try:
        run_scenario(lasting, seed=seed, recorder=recorder, story=story)
        known = circumstances_of(lasting, has_story=story is not None)
        report = check_all(recorder.events, known)
        run = SimulatedRun(scenario=lasting, seed=seed, events=recorder.events, report=report)
        judge(run)
        yield run
    except Exception as error:
        told = _story(scenario_story(recorder.events))
        path = folder / f"{_name(error)}.json"
        error.add_note("\n".join((*told, *_again(lasting, seed, path))))
        raise


def judge(run: SimulatedRun) -> None:
    """Fail with the name, the message and the time of every broken invariant.

    Raises:
        AssertionError: an invariant is broken.
    """
    __tracebackhide__ = True
    found = run.report.violations
    if found:
        names = {result.invariant: result.name for result in run.report.results}
        lines = [
            f"{each.invariant} {names[each.invariant]}: {each.message}"
            f" (at {each.at_us / 1e6:.3f} s)"
            for each in found
        ]
        proof = slice_lines(run.events, found[0], circumstances_of(run.scenario))
        lines += ["The smallest history that shows the first:", *proof]
        raise AssertionError("\n".join(lines))


def _story(lines: list[str]) -> list[str]:
    """The story under its own heading, without its middle where it is long."""
    shown = lines
    if len(lines) > MAX_LINES:
        last = MAX_LINES - _FIRST_LINES
        left_out = len(lines) - MAX_LINES
        shown = [*lines[:_FIRST_LINES], f"... {left_out} lines left out", *lines[-last:]]
    return ["", "What happened:", *(shown or ["nothing"])]


def _again(scenario: Scenario, seed: int, path: Path) -> list[str]:
    """Write the scenario's file; return how to run it again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(scenario_to_json(scenario))
    return ["", f"Scenario: {path}", f"Run it again: coordinator-sim run {path} --seed {seed}"]


def _name(error: Exception) -> str:
    """Return the name of the present test as a file's, numbered from its second failure on."""
    test = os.environ.get("PYTEST_CURRENT_TEST", "scenario").rpartition(" (")[0] or "scenario"
    module, _, rest = test.partition("::")
    parts = (Path(module).stem, *rest.split("::")) if rest else (module,)
    name = _NOT_IN_NAMES.sub("-", ".".join(parts)).strip("-")
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = (type(error).__name__, last.filename, last.lineno or 0)
    places = _PLACES.setdefault(name, [])
    if place not in places:
        places.append(place)
    number = places.index(place) + 1
    return name if number == 1 else f"{name}-{number}"
