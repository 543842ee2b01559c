"""Scenario files: a world with its happenings, or with tasks in their place."""

import re
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, get_args

import msgspec

from coordinator_sim.errors import UNREADABLE_JSON, ScenarioError
from coordinator_sim.sim.scenario.for_real import plan_of
from coordinator_sim.sim.scenario.happenings import Happening
from coordinator_sim.sim.scenario.ranges import expanded, folded
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.tasks import scenario_of_tasks
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim.sim.scenario.work import CommitPolicy, ConnectorWork, ProcessingLaw
from coordinator_sim.sim.scenario.world import (
    GroupSpec,
    LatencyLaw,
    MemberSpec,
    NetworkSpec,
    TopicSpec,
)
from coordinator_sim.trogdor.plan import Plan

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
        text: UTF-8 JSON as `scenario_to_json` or `tasks_to_json` writes it; fields with a default
            may be left out, and ranges may stand for many members and happenings (`ranges`).
        origin: Name of the text in errors, such as its file name.

    Raises:
        ScenarioError: the text is not JSON, lacks a field, or describes an impossible world.
        ConfigError: a setting is unknown or outside its bounds.
    """
    try:
        data = msgspec.json.decode(text)
        if isinstance(data, dict):
            data = expanded(data)
            if _has_tasks(data):
                return scenario_of_tasks(data, origin)
        return msgspec.convert(data, Scenario)
    except UNREADABLE_JSON as error:
        raise ScenarioError(f"{origin}: {error}{_nearest_names(str(error))}") from error


def _has_tasks(data: dict[str, Any]) -> bool:
    """Whether a file says what happens as tasks with specs."""
    tasks = data.get("tasks")
    has_specs = isinstance(tasks, list) and any(isinstance(t, dict) and "spec" in t for t in tasks)
    return has_specs or ("tasks" in data and "happenings" not in data)


def _nearest_names(problem: str) -> str:
    """Suggest names close to the unknown field or kind that a message quotes."""
    quoted = re.search(r"unknown field `(\w+)`|Invalid value '(\w+)'", problem)
    if quoted is None:
        return ""
    word = quoted[1] or quoted[2]
    near = get_close_matches(word, [known for known in _WORDS if known != word], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def scenario_to_json(scenario: Scenario) -> bytes:
    """Return the JSON form of a scenario, with ranges, indented, ending in a newline."""
    data = folded(msgspec.to_builtins(scenario))
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"


def load_scenario(path: Path) -> Scenario:
    """Read a scenario file.

    Raises:
        ScenarioError: the file does not hold a scenario.
        OSError: the file cannot be read.
    """
    return scenario_from_json(path.read_bytes(), str(path))


def load_plan(path: Path) -> Plan:
    """Read a task file that is to be run for real.

    Raises:
        ScenarioError: the file holds none, or asks for what only virtual time has.
        ConfigError: a setting is unknown or outside its bounds.
        OSError: the file cannot be read.
    """
    try:
        data = msgspec.json.decode(path.read_bytes())
    except UNREADABLE_JSON as error:
        raise ScenarioError(f"{path}: {error}") from error
    if not isinstance(data, dict) or not _has_tasks(data):
        raise ScenarioError(f"{path}: no task file: what happens has to be written as tasks")
    return plan_of(data, str(path))
