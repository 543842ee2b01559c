"""Plays the suite on broken code: `python -m coordinator_sim_conformance.museum.playing S W ID`.

The suite is the coordinator's cases as three profiles, the cases of clients and of assignors, and
what every scenario of the catalogue must show. It is loaded once; each exhibit is put into the
functions of a fork. A fault of what runs on import has an interpreter of its own.
"""

import gc
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from coordinator_sim_conformance.museum.breaking import broken_source, install, path_of, source_of
from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.exhibits import EXHIBITS, HEALTHY, exhibit_named
from coordinator_sim_conformance.museum.patching import LoadedFunctions, differ_in_functions_alone

if TYPE_CHECKING:
    from coordinator_sim_conformance.running import Ending

PROFILES: Final = ("4.4", "3.9", "0.10.2")
"""One of each family."""

HANG: Final = "does not end"
"""The detector of an exhibit under which the suite does not come to its end."""
ALONE: Final = "--alone"
"""The first argument of an interpreter for one exhibit."""

Turn = tuple[str, Callable[[], bool]]
"""A case by the name that an exhibit knows it by, and whether it passes."""


def detectors(exhibit: Exhibit) -> list[str]:
    """The name of the first case that does not pass; empty if every case passes.

    The one that is known to notice the exhibit is played first.
    """
    known_first = sorted(turns(), key=lambda turn: turn[0] != exhibit.noticed_by)
    return next(([name] for name, passes in known_first if not passes()), [])


def turns() -> Iterator[Turn]:
    """Every case of the suite.

    A coordinator's case is called `ID as PROFILE`, a client's or an assignor's by its id, and a
    scenario's `scenario NAME`, a report's `report ID`.
    """
    for kind in (_of_scenarios, _of_reports, _of_coordinators, _of_clients, _of_assignors):
        yield from kind()


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


def _of_reports() -> Iterator[Turn]:
    from coordinator_sim_conformance.museum.reports import reports

    for report in reports():
        yield f"report {report.id}", partial(_passes, report.play)


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


def _play_in_a_fork(exhibit: Exhibit, loaded: LoadedFunctions, bounds: tuple[str, str]) -> None:
    """Play one exhibit in a child process, which prints its detectors; print why it could not."""
    child = os.fork()
    if not child:
        processor_s, patience_s = int(bounds[0]), float(bounds[1])
        resource.setrlimit(resource.RLIMIT_CPU, (processor_s, processor_s + 1))
        signal.setitimer(signal.ITIMER_REAL, patience_s)
        if not _put(exhibit, loaded):
            module = "coordinator_sim_conformance.museum.playing"
            program = [sys.executable, "-m", module, ALONE, exhibit.exhibit_id]
            os.execv(sys.executable, program)  # noqa: S606 - our own module; keeps both bounds
        _print_detectors(exhibit)
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == -signal.SIGXCPU:
        _print([HANG])
    elif status == -signal.SIGALRM:
        _print(
            f"not decided: the suite neither ended nor used {bounds[0]} s of a processor within "
            f"{float(bounds[1]):g} s; play it again on a machine with less to do"
        )
    elif status:
        _print(f"the process of the suite ended with {status}")


def _put(exhibit: Exhibit, loaded: LoadedFunctions) -> bool:
    """Put the fault into loaded functions; False if it changes what ran on import."""
    if exhibit == HEALTHY:
        return True
    if exhibit.module not in sys.modules:
        install(exhibit)
        return True
    source, path = source_of(exhibit.module), str(path_of(exhibit.module))
    whole, broken = (
        compile(text, path, "exec", dont_inherit=True)
        for text in (source, broken_source(exhibit, source))
    )
    if not differ_in_functions_alone(whole, broken):
        return False
    loaded.put(broken, exhibit.exhibit_id)
    return True


def _print_detectors(exhibit: Exhibit) -> None:
    try:
        _print(detectors(exhibit))
    except Exception as error:  # noqa: BLE001 - whoever reads the line raises it
        _print(f"{type(error).__name__}: {error}")


def _print(outcome: list[str] | str) -> None:
    sys.stdout.buffer.write(msgspec.json.encode(outcome) + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Play each exhibit, and print a line of JSON for it: its detectors, or why there are none.

    Arguments: seconds of a processor and seconds on the clock for each exhibit, then their ids.
    """
    if sys.argv[1] == ALONE:
        exhibit = exhibit_named(sys.argv[2])
        install(exhibit)
        _print_detectors(exhibit)
        return
    processor_s, patience_s, *ids = sys.argv[1:]
    list(turns())  # Loads the suite; nothing is played.
    loaded = LoadedFunctions({each.module for each in EXHIBITS})
    gc.freeze()
    for exhibit_id in ids:
        _play_in_a_fork(exhibit_named(exhibit_id), loaded, (processor_s, patience_s))


if __name__ == "__main__":
    main()
