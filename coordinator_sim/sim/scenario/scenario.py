"""`Scenario`: a world and its happenings, as one value that can be written to a file."""

from typing import Final, cast

import msgspec

from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
from coordinator_sim.clients.consumer_models import CLIENTS
from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario.happenings import Happening
from coordinator_sim.sim.scenario.kubernetes import KEDA, with_autoscaler_settings
from coordinator_sim.sim.scenario.settings import (
    CONNECT_PROTOCOL,
    CONNECT_PROTOCOLS,
    SETTINGS,
    STRATEGY,
    Scope,
    known_names,
    unknown_setting,
)
from coordinator_sim.sim.scenario.unchecked import UncheckedScenario
from coordinator_sim.sim.scenario.validation import check_scenario
from coordinator_sim.sim.scenario.world import (
    Client,
    ConnectGroupSpec,
    ConsumerGroupSpec,
    GroupSpec,
    members_of,
    names_read_by,
    with_member_settings,
)

_SHOWN: Final = 8
"""Happenings that the one-line form of a scenario names."""
_WHOM: Final = ("member", "broker", "connector", "group_id", "topic")


class Scenario(UncheckedScenario, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A possible world and its happenings: checked when built, a wrong one raises ScenarioError."""

    def __post_init__(self) -> None:
        """Check the whole scenario.

        Raises:
            ScenarioError: the world is impossible; names the value, the bound and the fix.
            ConfigError: a setting is unknown or outside its bounds.
        """
        check_scenario(self)

    def __repr__(self) -> str:
        """Return one line that tells who is in it and what happens; the whole is its JSON form."""
        groups = [f"{group.group_id} of {len(members_of(group))}" for group in self.groups]
        topics = [f"{topic.name} of {topic.partitions}" for topic in self.topics]
        told = [_told(happening) for happening in self.happenings[:_SHOWN]]
        more = len(self.happenings) - len(told)
        then = ", ".join([*told, f"{more} more"] if more else told) or "nothing happens"
        return f"<Scenario {self.name}: {', '.join([*groups, *topics])}; {then}>"


def _told(happening: Happening) -> str:
    whom = [str(getattr(happening, name, None) or "") for name in _WHOM]
    who = next((name for name in whom if name), "")
    return f"{type(happening).__name__} {who} at {happening.at_ms / 1_000:g} s"


def with_settings(scenario: Scenario, settings: dict[str, str]) -> Scenario:
    """Return the scenario with settings changed, each wherever it is read.

    A broker setting goes to the brokers; a client setting to every group whose clients know it,
    replacing members' own values. `partition.assignment.strategy` (names separated by
    commas) and `connect.protocol` change the groups' fields, `keda.lagThreshold` and such the
    autoscalers.

    Raises:
        ConfigError: a name is unknown, a value is outside its bounds, or no group reads it.
    """
    scaling = {name: text for name, text in settings.items() if name.startswith(KEDA)}
    settings = {name: text for name, text in settings.items() if name not in scaling}
    for name in settings:
        _check_read(scenario, name)
    broker_names = SETTINGS[Scope.BROKER]
    changed = {name: value for name, value in settings.items() if name in broker_names}
    return msgspec.structs.replace(
        scenario,
        broker_settings={**scenario.broker_settings, **changed},
        groups=tuple(with_member_settings(group, settings) for group in scenario.groups),
        kubernetes=with_autoscaler_settings(scenario.kubernetes, scaling),
    )


def with_assignor(scenario: Scenario, name: str) -> Scenario:
    """Return the scenario with one assignor for all consumer groups, or one Connect protocol.

    Args:
        scenario: Scenario with at least one group of the assignor's kind.
        name: A consumer assignor, or a value of `connect.protocol`.

    Raises:
        ConfigError: the name is unknown, or the scenario has no group of its kind.
    """
    kind: type[GroupSpec]
    if name in CONSUMER_ASSIGNORS:
        setting, kind = STRATEGY, ConsumerGroupSpec
    elif name in CONNECT_PROTOCOLS:
        setting, kind = CONNECT_PROTOCOL, ConnectGroupSpec
    else:
        known = ", ".join((*CONSUMER_ASSIGNORS, *CONNECT_PROTOCOLS))
        raise ConfigError(
            f"unknown assignor {name!r}: must be one of {known}; your own is made known by "
            "--assignor-from or --assignor-process"
        )
    if not any(isinstance(group, kind) for group in scenario.groups):
        wanted = "consumer group" if kind is ConsumerGroupSpec else "Connect cluster"
        raise ConfigError(
            f"assignor {name!r} is for a {wanted}, and scenario {scenario.name!r} has none"
        )
    return with_settings(scenario, {setting: name})


def with_client(scenario: Scenario, name: str) -> Scenario:
    """Return the scenario with one kind of client for all members of consumer groups.

    Raises:
        ConfigError: the client is unknown, or the scenario has no consumer group.
        ScenarioError: the client is not modelled with what the scenario asks of it.
    """
    if name not in CLIENTS:
        raise ConfigError(f"client {name!r} is unknown: must be one of {', '.join(CLIENTS)}")
    if not any(isinstance(group, ConsumerGroupSpec) for group in scenario.groups):
        raise ConfigError(f"client {name!r}: scenario {scenario.name!r} has no consumer group")
    return msgspec.structs.replace(
        scenario,
        groups=tuple(
            msgspec.structs.replace(
                group,
                members=tuple(
                    msgspec.structs.replace(member, client=cast("Client", name))
                    for member in group.members
                ),
            )
            if isinstance(group, ConsumerGroupSpec)
            else group
            for group in scenario.groups
        ),
    )


def _check_read(scenario: Scenario, name: str) -> None:
    if name in SETTINGS[Scope.BROKER]:
        return
    if name not in known_names():
        raise unknown_setting(name)
    if not any(name in names_read_by(group) for group in scenario.groups):
        raise ConfigError(f"{name}: no group of scenario {scenario.name!r} reads it; leave it out")
