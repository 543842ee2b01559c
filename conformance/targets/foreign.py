"""Plays cases on a running endpoint: in wall time, side by side, each with names of its own."""

import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from typing import Final

from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.running import Ending, Verdict, play_case, skipped
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.endpoint import Endpoint
from coordinator_sim_conformance.targets.target import MalformedAnswer
from coordinator_sim_conformance.targets.wall_time import (
    LONGEST_WAIT_S,
    Margins,
    WallTimeTarget,
)
from coordinator_sim_conformance.wire.links import ConnectionEnded

SIDE_BY_SIDE: Final = 24
"""Cases played at once: they mostly wait."""
_ATTEMPTS: Final = ((1, 1), (2, 4), (4, 16))
"""Factor of the margins, and of time itself, when a case is played first and if it does not pass.

Time is stretched only as far as the case still ends soon.
"""
_LONG_S: Final = 20
"""Cases that wait longer are played again once, with the widest margins."""
_WAIT: Final = re.compile(r"wait (\d+)")


def play_on(endpoint: Endpoint, cases: Iterable[Case], profile: str) -> Iterator[Ending]:
    """Play cases on an endpoint; those that wait longest begin first.

    Args:
        endpoint: The endpoint.
        cases: Cases of that profile.
        profile: Profile whose behaviour is required.

    Yields:
        How each case ended, as soon as it did.
    """
    playing = longest_first(cases, profile)
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        endings = [pool.submit(played, endpoint, case, profile) for case in playing]
        try:
            for ending in as_completed(endings):
                yield ending.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def longest_first(cases: Iterable[Case], profile: str) -> list[Case]:
    """Return cases in the order in which they are begun."""
    return sorted(cases, key=lambda case: -_waits_s(case, profile))


def played(endpoint: Endpoint, case: Case, profile: str) -> Ending:
    """Play a case; one that does not pass is played again, slower and with wider margins.

    Where the endpoint's process has ended, nothing is played again.
    """
    lacking = _left_out(endpoint, case, profile)
    if lacking:
        return skipped(case, profile, lacking)
    waits_s = _waits_s(case, profile)
    longest = int(LONGEST_WAIT_S / max(waits_s, 1))
    for factor, stretch in (_ATTEMPTS[0], _ATTEMPTS[-1]) if waits_s > _LONG_S else _ATTEMPTS:
        label = f"{case.case_id}-{factor}"
        margins = Margins(factor, max(1, min(stretch, longest)))
        with closing(WallTimeTarget(endpoint, label, margins)) as target:
            try:
                ending = play_case(case, target, profile)
                target.leave()
            except (ConnectionEnded, DataError, MalformedAnswer) as gone:
                ending = replace(skipped(case, profile, str(gone)), verdict=Verdict.UNKNOWN)
        ending = replace(ending, margins=factor, frames=tuple(target.frames))
        if ending.verdict not in {Verdict.FAILED, Verdict.UNKNOWN}:
            return replace(ending, frames=())
        if endpoint.problem():
            break
    return replace(ending, timing=ending.expectation.startswith("wait"))


def _left_out(endpoint: Endpoint, case: Case, profile: str) -> str:
    """Why a case is not played at all; empty if it is."""
    declared = endpoint.declared.lacks.get(case.requirement.requirement_id)
    if declared is not None:
        return f"declared: {declared}"
    waits_s = _waits_s(case, profile)
    if waits_s > LONGEST_WAIT_S:
        return f"waits {waits_s:.0f} s, more than {LONGEST_WAIT_S}"
    return ""


def _waits_s(case: Case, profile: str) -> float:
    """How long a case waits, in seconds."""
    waits = map(_WAIT.match, case.lines_of(profile))
    return sum(int(each[1]) for each in waits if each is not None) / 1000
