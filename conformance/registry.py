"""Every requirement of the suite with its cases, in the order of the areas."""

from collections.abc import Callable, Iterable
from functools import cache

from msgspec import Struct

from conformance.requirements import Requirement
from coordinator_sim.errors import ConfigError


class Case(Struct, frozen=True):
    """One way to check a requirement.

    Args:
        case_id: The requirement's id; behind a dot the name of a variant.
        play: Plays it; raises when the target does not behave so.
    """

    case_id: str
    requirement: Requirement
    play: Callable[..., None]


@cache
def all_cases() -> tuple[Case, ...]:
    """Every case, by area."""
    return ()


def all_requirements() -> tuple[Requirement, ...]:
    """Every requirement once, by area."""
    return tuple(
        {case.requirement.requirement_id: case.requirement for case in all_cases()}.values()
    )


def chosen(
    cases: Iterable[Case], *, areas: Iterable[str] = (), wanted: Iterable[str] = ()
) -> list[Case]:
    """The cases of these areas whose id contains one of the wanted texts.

    Args:
        cases: What to choose from; their order is kept.
        areas: In any letter case; none for every area.
        wanted: Parts of ids; none for every id.

    Raises:
        ConfigError: no requirement has such an area.
    """
    everything = list(cases)
    known = dict.fromkeys(case.requirement.area for case in everything)
    asked = [area.upper() for area in areas]
    for area in asked:
        if area not in known:
            raise ConfigError(f"no area {area!r}: use one of {', '.join(known)}")
    parts = [part.upper() for part in wanted]
    return [
        case
        for case in everything
        if (not asked or case.requirement.area in asked)
        and (not parts or any(part in case.case_id.upper() for part in parts))
    ]
