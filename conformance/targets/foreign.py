"""Plays cases on a running endpoint: in wall time, side by side, each with names of its own."""

import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from math import ceil
from typing import Final

from msgspec.structs import replace

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.running import NOT_PASSED, Ending, Verdict, play_case, skipped
from coordinator_sim_conformance.script.comparing import options_of
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.asked import DELAY, SHORTEST_SESSION, settings_of
from coordinator_sim_conformance.targets.endpoint import HANGS, Endpoint
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
_COMMANDS: Final = re.compile(
    "append|cluster|compact|elect|fail|force|hold|load|marker|partition|release|resign|shutdown|"
    "startup|stored|transition|broker.* started=no"
)
"""Lines of scripts that no client can tell a broker to do."""
_OF_NEW_GROUPS: Final = re.compile("(beat|settled|inspect|share|stream|running)")
"""Lines of scripts for which topics have ids."""
_WAIT: Final = re.compile(r"wait (\d+)")
_ANY_MS: Final = 1 << 31
"""A session that is as long as any."""
_SESSION: Final = re.compile(r"\bsession=(\d+)")


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
    problems: list[str] = []

    def play(case: Case) -> Ending:
        if problems:
            gone = skipped(case, profile, f"not played: {problems[0]} in a case before")
            return replace(gone, verdict=Verdict.UNKNOWN)
        ending = played(endpoint, case, profile)
        if ending.verdict in NOT_PASSED and (problem := endpoint.asked_problem()):
            problems.append(problem)
            if ending.frames:
                verdict = Verdict.HUNG if problem.startswith(HANGS) else Verdict.CRASHED
                reason = f"{problem} while this case was under way"
                return replace(ending, verdict=verdict, reason=reason)
        return ending

    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        endings = [pool.submit(play, case) for case in playing]
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
    left_out = _left_out(endpoint, case, profile)
    if left_out is not None:
        return left_out
    waited_s, slowed = waits_s(case, profile), _slowed(endpoint, case, profile)
    longest = int(LONGEST_WAIT_S / max(waited_s, 1))
    has_topics = any(map(_OF_NEW_GROUPS.match, case.lines_of(profile)))
    before: Ending | None = None
    for each in (attempts[0], attempts[-1]) if waited_s > _LONG_S else attempts:
        label = f"{case.case_id}-{each.factor}"
        stretch = 1 if DELAY in asked_by(case, profile) else max(1, min(each.stretch, longest))
        margins = Margins(each.factor, max(slowed, stretch))
        target = WallTimeTarget(endpoint, label, margins, has_topics=has_topics)
        with closing(target):
            try:
                ending = play_case(case, target, profile)
                target.leave()
            except (ConnectionEnded, DataError, MalformedAnswer) as gone:
                ending = replace(skipped(case, profile, str(gone)), verdict=Verdict.UNKNOWN)
        ending = replace(ending, margins=each.factor, frames=tuple(target.frames))
        if ending.verdict not in NOT_PASSED:
            return replace(ending, frames=())
        if endpoint.problem() or endpoint.asked_problem():
            if before is not None and len(before.transcript) > len(ending.transcript):
                ending = before
            break
        before = ending
    return replace(ending, timing=ending.expectation.startswith("wait"))


def _left_out(endpoint: Endpoint, case: Case, profile: str) -> Ending | None:
    """Return the ending of a case that is not played at all; None if it is."""
    declared = endpoint.declared.lacks.get(case.requirement.requirement_id)
    if declared is not None:
        return skipped(case, profile, f"declared: {declared}")
    commands = commands_of(case, profile)
    if commands:
        return skipped(case, profile, f"{endpoint.name} is nobody's to command: {commands[0]}")
    waited_s = waits_s(case, profile)
    slowly_s = waited_s * _slowed(endpoint, case, profile)
    if slowly_s <= LONGEST_WAIT_S:
        return None
    is_helped = waited_s <= LONGEST_WAIT_S
    unlock = f"{DELAY}={asked_by(case, profile)[DELAY]}" if is_helped else ""
    return skipped(
        case, profile, f"waits {slowly_s:.0f} s, more than {LONGEST_WAIT_S}", unlock=unlock
    )


def commands_of(case: Case, profile: str) -> list[str]:
    """Return the lines of a case that no client can tell a broker to do."""
    return [line for line in case.lines_of(profile) if _COMMANDS.match(line)]


def _slowed(endpoint: Endpoint, case: Case, profile: str) -> float:
    """How many times longer everything takes with an endpoint's initial delay, or sessions.

    1 where the case does not depend on them, or would wait too long for a session.
    """
    asked, found = asked_by(case, profile), endpoint.settings
    if int(asked.get(DELAY, 0)):
        return max(1, int(found.get(DELAY, 0)) / int(asked[DELAY]))
    if SHORTEST_SESSION in asked:
        return 1
    sessions = map(int, _SESSION.findall("\n".join(case.lines_of(profile))))
    times = max(1, ceil(int(found.get(SHORTEST_SESSION, 0)) / min(sessions, default=_ANY_MS)))
    return times if waits_s(case, profile) * times <= LONGEST_WAIT_S else 1


def asked_by(case: Case, profile: str) -> dict[str, str]:
    """Return the broker settings that a case asks for, by Kafka's names."""
    found: dict[str, str] = {}
    for line in case.lines_of(profile):
        name, *words = line.split()
        if name == "broker":
            found |= settings_of(options_of(words))
    return found


def waits_s(case: Case, profile: str) -> float:
    """How long a case waits, in seconds."""
    waits = map(_WAIT.match, case.lines_of(profile))
    return sum(int(each[1]) for each in waits if each is not None) / 1000
