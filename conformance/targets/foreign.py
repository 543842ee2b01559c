"""Plays cases on a running endpoint: in wall time, side by side, each with names of its own."""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from typing import Final

from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.running import Ending, Verdict, play_case, skipped
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.endpoint import Endpoint
from coordinator_sim_conformance.targets.target import ConnectionEnded, MalformedAnswer
from coordinator_sim_conformance.targets.wall_time import (
    LONGEST_WAIT_S,
    Margins,
    WallTimeTarget,
)

SIDE_BY_SIDE: Final = 24
"""Cases played at once: they mostly wait."""
ATTEMPTS: Final = (Margins(1), Margins(2, stretch=4), Margins(4, stretch=16))
"""With what a case is played first, and then as long as it does not pass.

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
    return sorted(cases, key=lambda case: -waits_s(case, profile))


def played(
    endpoint: Endpoint, case: Case, profile: str, attempts: Sequence[Margins] = ATTEMPTS
) -> Ending:
    """Play a case; one that does not pass is played again, slower and with wider margins.

    Where the endpoint's process has ended, nothing is played again. It may have ended in the
    attempt before the one that noticed, which then has less to tell.

    Args:
        endpoint: The endpoint.
        case: A case of that profile.
        profile: Profile whose behaviour is required.
        attempts: Margins of each attempt, narrow ones first.
    """
    lacking = _left_out(endpoint, case, profile)
    if lacking:
        return skipped(case, profile, lacking)
    waited_s = waits_s(case, profile)
    longest = int(LONGEST_WAIT_S / max(waited_s, 1))
    before: Ending | None = None
    for each in (attempts[0], attempts[-1]) if waited_s > _LONG_S else attempts:
        label = f"{case.case_id}-{each.factor}"
        margins = Margins(each.factor, max(1, min(each.stretch, longest)))
        with closing(WallTimeTarget(endpoint, label, margins)) as target:
            try:
                ending = play_case(case, target, profile)
                target.leave()
            except (ConnectionEnded, DataError, MalformedAnswer) as gone:
                ending = replace(skipped(case, profile, str(gone)), verdict=Verdict.UNKNOWN)
        ending = replace(ending, margins=each.factor, frames=tuple(target.frames))
        if ending.verdict not in {Verdict.FAILED, Verdict.UNKNOWN}:
            return replace(ending, frames=())
        if endpoint.problem():
            if before is not None and len(before.transcript) > len(ending.transcript):
                ending = before
            break
        before = ending
    return replace(ending, timing=ending.expectation.startswith("wait"))


def _left_out(endpoint: Endpoint, case: Case, profile: str) -> str:
    """Why a case is not played at all; empty if it is."""
    declared = endpoint.declared.lacks.get(case.requirement.requirement_id)
    if declared is not None:
        return f"declared: {declared}"
    waited_s = waits_s(case, profile)
    if waited_s > LONGEST_WAIT_S:
        return f"waits {waited_s:.0f} s, more than {LONGEST_WAIT_S}"
    return ""


def waits_s(case: Case, profile: str) -> float:
    """How long a case waits, in seconds."""
    waits = map(_WAIT.match, case.lines_of(profile))
    return sum(int(each[1]) for each in waits if each is not None) / 1000
