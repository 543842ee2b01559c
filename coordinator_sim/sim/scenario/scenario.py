"""`Scenario`: a world and its happenings, as one value that can be written to a file."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Final, get_args

import msgspec

from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.sim.scenario.happenings import Happening
from coordinator_sim.sim.scenario.settings import (
    ASSIGNORS,
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
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.work import CommitPolicy, ConnectorWork, ProcessingLaw
from coordinator_sim.sim.scenario.world import (
    ConnectGroupSpec,
    ConsumerGroupSpec,
    GroupSpec,
    LatencyLaw,
    MemberSpec,
    NetworkSpec,
    TopicSpec,
    names_read_by,
    with_member_settings,
)


class Scenario(UncheckedScenario, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A possible world and its happenings: checked when built, a wrong one raises ScenarioError."""

    def __post_init__(self) -> None:
        """Check the whole scenario.

        Raises:
            ScenarioError: the world is impossible; names the value, the bound and the fix.
            ConfigError: a setting is unknown or outside its bounds.
        """
        check_scenario(self)


_PARTS: Final = (
    *(Scenario, Variety, TopicSpec, NetworkSpec, *get_args(GroupSpec), *get_args(MemberSpec)),
    *(
        *get_args(LatencyLaw),
        *get_args(ProcessingLaw),
        *get_args(ConnectorWork),
        CommitPolicy,
        *get_args(Happening),
    ),
)
_WORDS: Final = tuple(
    dict.fromkeys(
        word
        for part in _PARTS
        for word in (*part.__struct_fields__, part.__struct_config__.tag)
        if isinstance(word, str)
    )
)
"""Every field and kind that a scenario's file may name."""


def scenario_from_json(text: bytes | str, origin: str = "scenario") -> Scenario:
    """Read a scenario from its JSON form.

    Args:
        text: UTF-8 JSON as `scenario_to_json` writes it; fields with defaults may be left out.
        origin: Name of the text in errors, such as its file name.

    Raises:
        ScenarioError: the text is not JSON, lacks a field, or describes an impossible world.
        ConfigError: a setting is unknown or outside its bounds.
    """
    try:
        return msgspec.json.decode(text, type=Scenario)
    except msgspec.DecodeError as error:
        raise ScenarioError(f"{origin}: {error}{_nearest_names(str(error))}") from error


def _nearest_names(problem: str) -> str:
    """Suggest names close to the unknown field or kind that a message quotes."""
    quoted = re.search(r"unknown field `(\w+)`|Invalid value '(\w+)'", problem)
    if quoted is None:
        return ""
    word = quoted[1] or quoted[2]
    near = get_close_matches(word, [known for known in _WORDS if known != word], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def scenario_to_json(scenario: Scenario) -> bytes:
    """Return the JSON form of a scenario, indented, ending in a newline."""
    return msgspec.json.format(msgspec.json.encode(scenario), indent=2) + b"\n"


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: the file does not hold a scenario.
        OSError: the file cannot be read.
    """
    return scenario_from_json(path.read_bytes(), str(path))


def with_settings(scenario: Scenario, settings: dict[str, str]) -> Scenario:
    """Return the scenario with settings changed, each wherever it is read.

    A broker setting goes to the brokers; a client setting to every group whose clients know it,
    replacing members' own values. `partition.assignment.strategy` (names separated by
    commas) and `connect.protocol` change the groups' fields.

    Raises:
        ConfigError: a name is unknown, a value is outside its bounds, or no group reads it.
    """
    for name in settings:
        _check_read(scenario, name)
    broker_names = SETTINGS[Scope.BROKER]
    changed = {name: value for name, value in settings.items() if name in broker_names}
    return msgspec.structs.replace(
        scenario,
        broker_settings={**scenario.broker_settings, **changed},
        groups=tuple(with_member_settings(group, settings) for group in scenario.groups),
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
    if name in ASSIGNORS:
        setting, kind = STRATEGY, ConsumerGroupSpec
    elif name in CONNECT_PROTOCOLS:
        setting, kind = CONNECT_PROTOCOL, ConnectGroupSpec
    else:
        known = ", ".join((*ASSIGNORS, *CONNECT_PROTOCOLS))
        raise ConfigError(f"unknown assignor {name!r}: must be one of {known}")
    if not any(isinstance(group, kind) for group in scenario.groups):
        wanted = "consumer group" if kind is ConsumerGroupSpec else "Connect cluster"
        raise ConfigError(
            f"assignor {name!r} is for a {wanted}, and scenario {scenario.name!r} has none"
        )
    return with_settings(scenario, {setting: name})


def _check_read(scenario: Scenario, name: str) -> None:
    if name in SETTINGS[Scope.BROKER]:
        return
    if name not in known_names():
        raise unknown_setting(name)
    if not any(name in names_read_by(group) for group in scenario.groups):
        raise ConfigError(f"{name}: no group of scenario {scenario.name!r} reads it; leave it out")
