"""Every requirement of the suite with its cases, in the order of the areas."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Final, Protocol, TypeVar

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.client_cases.case import ClientCase
from coordinator_sim_conformance.requirements import Requirement
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.trogdor_cases.case import TrogdorCase
from coordinator_sim_conformance.wire_cases.case import WireCase

MODULES: Final = (
    "partitions",
    "join",
    "member_id",
    "initial_delay",
    "rebalance",
    "sync",
    "pending_sync",
    "heartbeat",
    "leave",
    "static_members",
    "size",
    "protocol_choice",
    "states",
    "load",
    "replication",
    "offset_commit",
    "offset_fetch",
    "offset_load",
    "groups",
    "offset_delete",
    "expiry",
    "transactions",
    "find_coordinator",
    "consumer_members",
    "consumer_groups",
    "consumer_migration",
    "share_groups",
    "share_delivery",
    "share_acknowledgements",
    "streams_groups",
)
"""The modules of `conformance.cases`, in the order of a report."""
WIRE_MODULES: Final = ("versions", "broken_frames")
"""The modules of `conformance.wire_cases` that hold cases, in the order of a report."""
CLIENT_MODULES: Final = (
    "discovery",
    "join",
    "sync",
    "heartbeat",
    "leave",
    "consumer",
    "commit",
    "worker",
    "connect_assignor",
    "herder",
    "rest",
    "config_topic",
)
"""The modules of `conformance.client_cases` that hold cases, in the order of a report."""
TROGDOR_MODULES: Final = (
    "creation",
    "running",
    "stopping",
    "destroying",
    "heartbeats",
    "agents",
    "one_task_agents",
    "rest",
    "faults",
    "workloads",
    "workload_tables",
    "external_commands",
)
"""The modules of `conformance.trogdor_cases` that hold cases, in the order of a report."""

AnyCase = Case | ClientCase | TrogdorCase
"""A case of a coordinator, played on a target; of a client, on our own ports; or of Trogdor."""


class Identified(Protocol):
    """A case of any kind, as far as choosing it goes."""

    @property
    def case_id(self) -> str:
        """Id of the case."""
        ...

    @property
    def requirement(self) -> Requirement:
        """The requirement that it checks."""
        ...


_C = TypeVar("_C", bound=Identified)


@cache
def all_cases() -> tuple[Case, ...]:
    """Return every case of a coordinator, by area."""
    modules = [import_module(f"coordinator_sim_conformance.cases.{name}") for name in MODULES]
    return tuple(case for module in modules for case in module.CASES)


@cache
def all_wire_cases() -> tuple[WireCase, ...]:
    """Return every case about frames, by area; only what listens on sockets can be judged."""
    modules = [
        import_module(f"coordinator_sim_conformance.wire_cases.{name}") for name in WIRE_MODULES
    ]
    return tuple(case for module in modules for case in module.CASES)


@cache
def all_client_cases() -> tuple[ClientCase, ...]:
    """Return every case of a client, by area."""
    modules = [
        import_module(f"coordinator_sim_conformance.client_cases.{name}") for name in CLIENT_MODULES
    ]
    return tuple(case for module in modules for case in module.CASES)


@cache
def all_trogdor_cases() -> tuple[TrogdorCase, ...]:
    """Return every case of Trogdor, by area."""
    modules = [
        import_module(f"coordinator_sim_conformance.trogdor_cases.{name}")
        for name in TROGDOR_MODULES
    ]
    return tuple(case for module in modules for case in module.CASES)


def any_cases() -> tuple[AnyCase, ...]:
    """Return every case: of coordinators, of frames, of clients, then of Trogdor."""
    return (*all_cases(), *all_wire_cases(), *all_client_cases(), *all_trogdor_cases())


def all_requirements() -> tuple[Requirement, ...]:
    """Return every requirement once, by area, in the order of the cases."""
    found: dict[str, Requirement] = {}
    for case in any_cases():
        found.setdefault(case.requirement.requirement_id, case.requirement)
    return tuple(found.values())


def chosen(
    cases: Iterable[_C],
    *,
    areas: Iterable[str] = (),
    wanted: Iterable[str] = (),
    ids: Iterable[str] = (),
) -> list[_C]:
    """Return the cases of these areas that have one of the ids, or contain a wanted text in it.

    Args:
        cases: Cases to choose from; their order is kept.
        areas: Areas in any letter case; empty for every area.
        wanted: Parts of ids; empty for every id, unless there are `ids`.
        ids: Whole ids, in any letter case.

    Raises:
        ConfigError: an area or a whole id is unknown.
    """
    everything = list(cases)
    known = dict.fromkeys(case.requirement.area for case in everything)
    asked = [area.upper() for area in areas]
    for area in asked:
        if area not in known:
            raise ConfigError(f"no area {area!r}: use one of {', '.join(known)}")
    parts = [part.upper() for part in wanted]
    whole = {each.upper() for each in ids}
    unknown = sorted(whole - {case.case_id.upper() for case in everything})
    if unknown:
        raise ConfigError(f"no case {unknown[0]!r}: `conformance run -k TEXT` finds ids by a part")

    def is_chosen(case_id: str) -> bool:
        return case_id in whole or any(part in case_id for part in parts)

    return [
        case
        for case in everything
        if (not asked or case.requirement.area in asked)
        and (not (parts or whole) or is_chosen(case.case_id.upper()))
    ]
