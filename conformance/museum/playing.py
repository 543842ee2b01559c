"""Plays the suite on broken code: `python -m coordinator_sim_conformance.museum.playing ID N S`.

The suite is the coordinator's cases as three profiles, the cases of clients and of assignors, and
what every scenario of the catalogue must show. The code is imported after it was broken, hence
the imports inside.
"""

import resource
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from coordinator_sim_conformance.museum.breaking import install
from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.exhibits import exhibit_named

if TYPE_CHECKING:
    from coordinator_sim_conformance.running import Ending

PROFILES: Final = ("4.4", "3.9", "0.10.2")
"""One of each family."""

Turn = tuple[str, Callable[[], bool]]
"""A case by the name that an exhibit knows it by, and whether it passes."""


def detectors(exhibit: Exhibit, enough: int) -> list[str]:
    """The names of the first cases that do not pass, until there are enough.

    A coordinator's case is called `ID as PROFILE`, a client's or an assignor's by its id, and a
    scenario's `scenario NAME`. The one that is known to notice the exhibit is played first.
    """
    found: list[str] = []
    for name, passes in _known_first(exhibit.noticed_by):
        if not passes():
            found.append(name)
            if len(found) == enough:
                break
    return found


def _known_first(known: str) -> Iterator[Turn]:
    """Every case, the known one before all others; its kind alone is imported for it."""
    kinds = (_of_scenarios, _of_coordinators, _of_clients, _of_assignors)
    known_kind = next((kind for kind in kinds if _is_of(kind, known)), _of_assignors)
    yield from (turn for turn in known_kind() if turn[0] == known)
    for kind in kinds:
        yield from (turn for turn in kind() if turn[0] != known)


def _is_of(kind: Callable[[], Iterator[Turn]], name: str) -> bool:
    if kind is _of_scenarios:
        return name.startswith("scenario ")
    if kind is _of_coordinators:
        return " as " in name
    return kind is _of_clients and name.startswith("C-")


def _of_coordinators() -> Iterator[Turn]:
    from coordinator_sim_conformance.registry import all_cases
    from coordinator_sim_conformance.running import cases_for, play_case
    from coordinator_sim_conformance.targets.simulator import SimulatorTarget

    target = SimulatorTarget()
    for profile in PROFILES:
        for case in cases_for(all_cases(), profile):
            play = partial(play_case, case, target, profile)
            yield f"{case.case_id} as {profile}", partial(_ends_well, play)


def _of_clients() -> Iterator[Turn]:
    from coordinator_sim_conformance.registry import all_client_cases
    from coordinator_sim_conformance.running import play_client_case

    for case in all_client_cases():
        yield case.case_id, partial(_ends_well, partial(play_client_case, case))


def _of_assignors() -> Iterator[Turn]:
    from coordinator_sim_conformance.museum.assignor_questions import QUESTIONS

    for question_id, check in QUESTIONS.items():
        yield question_id, partial(_passes, check)


def _of_scenarios() -> Iterator[Turn]:
    from coordinator_sim_conformance.scenario_cases.registry import all_scenario_cases

    for case in all_scenario_cases():
        yield f"scenario {case.case_id}", partial(_passes, case.play)


def _ends_well(play: "Callable[[], Ending]") -> bool:
    from coordinator_sim_conformance.running import Verdict

    return play().verdict in {Verdict.PASSED, Verdict.SKIPPED}


def _passes(check: Callable[[], None]) -> bool:
    from coordinator_sim.errors import CoordinatorSimError

    try:
        check()
    except (CoordinatorSimError, AttributeError, LookupError, TypeError, ValueError):
        return False
    return True


def main() -> None:
    """Break the code as the first argument says, and print so many detectors as JSON.

    The third argument is the processor time, in seconds, at which the system ends the process.
    """
    seconds = int(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    exhibit = exhibit_named(sys.argv[1])
    install(exhibit)
    sys.stdout.buffer.write(msgspec.json.encode(detectors(exhibit, int(sys.argv[2]))))


if __name__ == "__main__":
    main()
