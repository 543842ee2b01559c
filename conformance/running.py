"""Plays cases, on a target or on our own ports, and reports how each one ended."""

import time
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum, unique
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError, DataError
from coordinator_sim_conformance.client_cases.case import CLIENTS, ClientCase
from coordinator_sim_conformance.frames import Frame
from coordinator_sim_conformance.requirements import TROGDOR, Level
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.script.stage import BREAKS, CaseBroken, CaseFailed
from coordinator_sim_conformance.targets.target import Target, Unsupported
from coordinator_sim_conformance.trogdor_cases.case import TrogdorCase


@unique
class Verdict(StrEnum):
    """Outcome of a case."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"
    """The target lacks something that the case needs."""
    UNKNOWN = "unknown"
    """The case or the target broke off."""
    CRASHED = "crashed"
    """The target's process ended, or it takes no connection any more."""
    HUNG = "hung"
    """The target runs, and answers nothing within the bound."""


NOT_PASSED: Final = frozenset({Verdict.FAILED, Verdict.UNKNOWN, Verdict.CRASHED, Verdict.HUNG})
"""Verdicts of cases that were played and did not pass."""


class Ending(Struct, frozen=True, kw_only=True):
    """Outcome of one case for one profile, with what is needed to understand it alone.

    Args:
        profile: Profile of the coordinator; `clients` for a case of a client, `trogdor` for one
            of Trogdor.
        title: The requirement in a few words.
        level: By what means it is seen that the requirement is broken.
        is_quirk: Whether Kafka behaves oddly here, so that a break counts only when runs are
            strict.
        sources: Places in Kafka that say so.
        reason: Why it did not pass; empty when it did.
        expectation: Line of the script that was not met, or at which the case broke off; empty
            when all were met, and for cases that are not scripts.
        came: What came instead, in the script's words.
        transcript: Requests and effects, up to the end.
        frames: The same as bytes, in order; empty where no wire was used or it was not recorded.
        margins: Factor by which the margins of time were widened when this verdict was reached.
        timing: Whether the verdict is about time alone: what came was right, but not when.
        elapsed_s: Seconds that the case took on the wall clock.
        known_gap: Reason of the baseline for which the case is expected not to pass; empty where
            the baseline does not name it.
        again: The command that plays this case alone; empty until a run gives it.
        unlock: Setting, as `name=value`, or right with which a skipped case could be played; empty
            where neither helps.
    """

    case_id: str
    area: str
    profile: str
    verdict: Verdict
    title: str
    level: Level
    is_quirk: bool = False
    sources: tuple[str, ...] = ()
    reason: str = ""
    expectation: str = ""
    came: str = ""
    transcript: tuple[str, ...] = ()
    frames: tuple[Frame, ...] = ()
    margins: int = 1
    timing: bool = False
    elapsed_s: float = 0.0
    known_gap: str = ""
    again: str = ""
    unlock: str = ""


def cases_for(cases: Iterable[Case], profile: str) -> list[Case]:
    """Return the cases that this profile has to pass."""
    return [case for case in cases if profile in case.requirement.profiles]


def play_case(
    case: Case, target: Target, profile: str, *, trace: bool = False, at_version: int | None = None
) -> Ending:
    """Play one case; exceptions become its ending.

    Args:
        case: Case to play.
        target: Target to play it on.
        profile: Profile whose behaviour is required.
        trace: Whether to trace a target that can be traced.
        at_version: Version of every request that names none; None takes the script's.

    Raises:
        DataError: the target has ended, so that no other case can be played either.
    """
    return _ended(
        case, profile, lambda: case.play(target, profile, trace=trace, at_version=at_version)
    )


def skipped(case: Case, profile: str, reason: str, unlock: str = "") -> Ending:
    """Return the ending of a case that is not played; `unlock` is as in `Unsupported`."""

    def unsupported() -> tuple[str, ...]:
        raise Unsupported(reason, unlock)

    return _ended(case, profile, unsupported)


def play_client_case(case: ClientCase) -> Ending:
    """Play one case on fresh ports; exceptions become its ending."""
    return _ended(case, CLIENTS, case.play)


def play_trogdor_case(case: TrogdorCase) -> Ending:
    """Play one case on this project's Trogdor; exceptions become its ending."""
    return _ended(case, TROGDOR.lower(), case.play)


def _ended(
    case: Case | ClientCase | TrogdorCase, profile: str, play: Callable[[], tuple[str, ...]]
) -> Ending:
    verdict, reason, expectation, came, unlock = Verdict.PASSED, "", "", "", ""
    transcript: tuple[str, ...] = ()
    began_s = time.monotonic()
    try:
        transcript = play()
    except CaseFailed as failed:
        verdict = Verdict.UNKNOWN if isinstance(failed, CaseBroken) else Verdict.FAILED
        reason, transcript = failed.problem, failed.transcript
        expectation, came = failed.line, failed.came
    except Unsupported as lacking:
        verdict, reason, unlock = Verdict.SKIPPED, str(lacking), lacking.unlock
    except DataError:
        raise
    except (CoordinatorSimError, *BREAKS) as broken:
        verdict, reason = Verdict.UNKNOWN, f"{type(broken).__name__}: {broken}"
    return Ending(
        case_id=case.case_id,
        area=case.requirement.area,
        profile=profile,
        verdict=verdict,
        title=title_of(case),
        level=case.requirement.level,
        is_quirk=case.requirement.is_quirk,
        sources=case.requirement.sources,
        reason=reason,
        expectation=expectation,
        came=came,
        transcript=transcript,
        elapsed_s=round(time.monotonic() - began_s, 6),
        unlock=unlock,
    )


def title_of(case: Case | ClientCase | TrogdorCase) -> str:
    """The sentence that a case is told by: its own where variants share a requirement."""
    return case.title if isinstance(case, Case) else case.requirement.title


def play_cases(cases: Iterable[Case], target: Target, profiles: Iterable[str]) -> Iterator[Ending]:
    """Play every case that a profile has to pass, profile by profile."""
    everything = list(cases)
    for profile in profiles:
        for case in cases_for(everything, profile):
            yield play_case(case, target, profile)
