"""A case about a real client: a requirement, and what must be seen of it on the wire.

The cases are in the modules of `cases`. One is registered where it is written:

    @on_the_wire("C-JOIN-05")
    async def a_full_group_is_final(stage: Stage) -> None: ...

The id is a requirement's of `conformance/client_cases`, whose sources it shares. The first line of
the docstring is what must be seen; a second case of one requirement has an id that ends in `.2`.
"""

import sys
from collections.abc import Awaitable, Callable
from functools import cache
from importlib import import_module
from typing import Final

from msgspec import Struct

from coordinator_sim_conformance.clients.stage import Stage
from coordinator_sim_conformance.registry import all_client_cases
from coordinator_sim_conformance.requirements import Level, Requirement

WireFunction = Callable[[Stage], Awaitable[None]]

MODULES: Final = (
    "discovery",
    "join",
    "sync",
    "heartbeat",
    "leave",
    "consumer",
    "commit",
    "further",
)
"""The modules of `clients.cases`, in the order of a report."""


class WireCase(Struct, frozen=True, kw_only=True):
    """One case.

    Args:
        case_id: Id of the requirement; further cases of it end in `.2` and so on.
        requirement: The requirement, told by what must be seen.
        play: Checks it on a stage.
    """

    case_id: str
    requirement: Requirement
    play: WireFunction


def on_the_wire(
    case_id: str, *sources: str, is_quirk: bool = False
) -> Callable[[WireFunction], WireFunction]:
    """Register a function as a case of the module it stands in.

    Args:
        case_id: Id of a requirement on clients, or that with a number behind a dot; or, with
            sources, of a requirement of its own.
        sources: Places in Kafka: class of trunk, and the method.
        is_quirk: Whether Java's client behaves oddly here, so that others may do otherwise.
    """

    def register(play: WireFunction) -> WireFunction:
        requirement_id = case_id.partition(".")[0]
        requirement = Requirement(
            requirement_id=requirement_id,
            title=(play.__doc__ or "").partition("\n")[0].removesuffix("."),
            area=requirement_id.rpartition("-")[0],
            families="",
            level=Level.MUST,
            sources=sources or _sources()[requirement_id],
            is_quirk=is_quirk,
        )
        cases: list[WireCase] = sys.modules[play.__module__].__dict__.setdefault("CASES", [])
        cases.append(WireCase(case_id=case_id, requirement=requirement, play=play))
        return play

    return register


@cache
def _sources() -> dict[str, tuple[str, ...]]:
    """Sources of every requirement on clients, by its id."""
    return {case.case_id: case.requirement.sources for case in all_client_cases()}


@cache
def all_wire_cases() -> tuple[WireCase, ...]:
    """Return every case, by area."""
    modules = [
        import_module(f"coordinator_sim_conformance.clients.cases.{name}") for name in MODULES
    ]
    return tuple(case for module in modules for case in module.CASES)
