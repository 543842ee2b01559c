"""Bounds and checks that all parts of a scenario share.

Every message names the value, the bound and the fix.
"""

from collections.abc import Collection
from typing import Final

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.kafka.topic_names import check_topic_name
from coordinator_sim.sim.scenario.happenings import AddConnector
from coordinator_sim.sim.scenario.ranges import RANGE
from coordinator_sim.sim.scenario.settings import Scope, check_settings
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.work import check_processing
from coordinator_sim.sim.scenario.world import ConnectGroupSpec, RecordFates, ShareGroupSpec

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


def check_share_group(scenario: UncheckedScenario, group: ShareGroupSpec) -> None:
    """Refuse a share group that the scenario's world cannot have."""
    if not profile_named(scenario.profile).share_groups:
        raise ScenarioError(
            f"share group {group.group_id!r}: brokers of profile {scenario.profile!r} have none; "
            "use profile 4.2 or a later one"
        )
    check_settings(Scope.SHARE_GROUP, group.group_settings)
    for topic in group.topics:
        known("topic", topic, scenario.partitions_by_topic)
    for member in group.members:
        check_settings(Scope.SHARE, {**group.settings, **member.settings})
        within(f"processing_ms of {member.name!r}", member.processing_ms, 0, MAX_TIME_MS)
        if member.processing is not None:
            check_processing(member.name, member.processing)
        for name in member.fates.__struct_fields__:
            every = getattr(member.fates, name)
            within(f"{name} of {member.name!r}", every, 0, MAX_TIME_MS)
        if member.acknowledges == "implicit" and member.fates != RecordFates():
            raise ScenarioError(
                f"fates of {member.name!r}: implicit acknowledgement accepts every record; use "
                'acknowledges="explicit", or leave them out'
            )
