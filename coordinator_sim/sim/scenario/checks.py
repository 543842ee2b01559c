"""Bounds and checks that all parts of a scenario share.

Every message names the value, the bound and the fix.
"""

from collections.abc import Collection
from typing import Final

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.kafka.topic_names import check_topic_name
from coordinator_sim.sim.scenario.happenings import AddConnector
from coordinator_sim.sim.scenario.ranges import RANGE
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.world import ConnectGroupSpec

MAX_TIME_MS: Final = 10_000 * 366 * 24 * 3_600_000
"""Ten thousand years: as microseconds this still fits 64 bits."""
MAX_PARTITIONS: Final = 1_000_000
"""Partitions of one topic, beyond what a Kafka controller serves."""


def within(name: str, value: int, low: int, high: int) -> None:
    """Refuse a value out of its bounds."""
    if not low <= value <= high:
        raise ScenarioError(f"{name}={value}: must be from {low} to {high}")


def unique(what: str, names: list[str]) -> None:
    """Refuse names that are empty, used twice, or read as many in a scenario file."""
    seen: set[str] = set()
    for name in names:
        if not name:
            raise ScenarioError(f"a {what} has an empty name: give it one")
        if RANGE.search(name) is not None:
            raise ScenarioError(f"{what} {name!r}: only a file may name a range; name each one")
        if name in seen:
            raise ScenarioError(f"{what} {name!r} is defined twice: rename or remove one")
        seen.add(name)


def known(what: str, name: str, names: Collection[str]) -> None:
    """Refuse a name that the scenario does not have."""
    if name not in names:
        listed = ", ".join(sorted(names)[:20]) or "none"
        raise ScenarioError(f"unknown {what} {name!r}: the scenario has {listed}")


def check_name_of_topic(name: str) -> None:
    """Refuse a name that no topic can have."""
    try:
        check_topic_name(name)
    except ConfigError as error:
        raise ScenarioError(str(error)) from None


def added_connectors(scenario: UncheckedScenario, group: ConnectGroupSpec) -> list[str]:
    """Return the connectors that happenings add to a Connect cluster."""
    return [
        happening.connector
        for happening in scenario.happenings
        if isinstance(happening, AddConnector) and happening.group_id == group.group_id
    ]
