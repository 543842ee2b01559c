"""Plays cases, on a target or on our own ports, and reports how each one ended."""

from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum, unique

from msgspec import Struct

from coordinator_sim.errors import CoordinatorSimError, DataError
from coordinator_sim_conformance.client_cases.case import CLIENTS, ClientCase
from coordinator_sim_conformance.requirements import TROGDOR
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.script.stage import CaseFailed
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


class Ending(Struct, frozen=True, kw_only=True):
    """Outcome of one case for one profile.

    Args:
        profile: Profile of the coordinator; `clients` for a case of a client, `trogdor` for one
            of Trogdor.
        reason: Why it did not pass; empty when it did.
        transcript: Requests and effects, up to the end.
    """

    case_id: str
    area: str
    profile: str
    verdict: Verdict
    reason: str = ""
    transcript: tuple[str, ...] = ()


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


def play_client_case(case: ClientCase) -> Ending:
    """Play one case on fresh ports; exceptions become its ending."""
    return _ended(case, CLIENTS, case.play)


def play_trogdor_case(case: TrogdorCase) -> Ending:
    """Play one case on this project's Trogdor; exceptions become its ending."""
    return _ended(case, TROGDOR.lower(), case.play)


def _ended(
    case: Case | ClientCase | TrogdorCase, profile: str, play: Callable[[], tuple[str, ...]]
) -> Ending:
    verdict, reason = Verdict.PASSED, ""
    transcript: tuple[str, ...] = ()
    try:
        transcript = play()
    except CaseFailed as failed:
        verdict, reason, transcript = Verdict.FAILED, str(failed), failed.transcript
    except Unsupported as lacking:
        verdict, reason = Verdict.SKIPPED, str(lacking)
    except DataError:
        raise
    except (CoordinatorSimError, AttributeError, LookupError, TypeError, ValueError) as broken:
        verdict, reason = Verdict.UNKNOWN, f"{type(broken).__name__}: {broken}"
    return Ending(
        case_id=case.case_id,
        area=case.requirement.area,
        profile=profile,
        verdict=verdict,
        reason=reason,
        transcript=transcript,
    )


def play_cases(cases: Iterable[Case], target: Target, profiles: Iterable[str]) -> Iterator[Ending]:
    """Play every case that a profile has to pass, profile by profile."""
    everything = list(cases)
    for profile in profiles:
        for case in cases_for(everything, profile):
            yield play_case(case, target, profile)
