"""Plays the suite in this process on a broken core: `python -m conformance.museum.playing ID N`.

The core is imported after it was broken, hence the imports inside.
"""

import sys
from typing import Final

import msgspec

from conformance.museum.breaking import install
from conformance.museum.exhibit import Exhibit
from conformance.museum.exhibits import exhibit_named

PROFILES: Final = ("4.4", "3.9", "0.10.2")
"""One of each family."""


def detectors(exhibit: Exhibit, enough: int) -> list[str]:
    """The first cases that do not pass, as `ID as PROFILE`, until there are enough.

    The case that is known to notice the exhibit is played first.
    """
    from conformance.registry import all_cases
    from conformance.running import Verdict, cases_for, play_case
    from conformance.targets.simulator import SimulatorTarget

    target = SimulatorTarget()
    cases = all_cases()
    turns = [(case, profile) for profile in PROFILES for case in cases_for(cases, profile)]
    turns.sort(key=lambda turn: _name(turn[0].case_id, turn[1]) != exhibit.noticed_by)
    found: list[str] = []
    for case, profile in turns:
        ending = play_case(case, target, profile)
        if ending.verdict in {Verdict.FAILED, Verdict.UNKNOWN}:
            found.append(_name(ending.case_id, profile))
            if len(found) == enough:
                break
    return found


def _name(case_id: str, profile: str) -> str:
    return f"{case_id} as {profile}"


def main() -> None:
    """Break the core as the first argument says, and print so many detectors as JSON."""
    exhibit = exhibit_named(sys.argv[1])
    install(exhibit)
    sys.stdout.buffer.write(msgspec.json.encode(detectors(exhibit, int(sys.argv[2]))))


if __name__ == "__main__":
    main()
