"""Reading what several commands are given: settings, scenarios and the form of a trace."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from coordinator_sim.errors import ConfigError, ScenarioError

if TYPE_CHECKING:
    from coordinator_sim.scenario.scenario import Scenario


class TraceFormat(StrEnum):
    """The forms a run directory's events may have."""

    PARQUET = "parquet"
    JSONL = "jsonl"


def parse_settings(pairs: list[str]) -> dict[str, str]:
    """`key=value` pairs as a dict; the last of a key wins.

    Raises:
        ConfigError: A pair has no equals sign or an empty key.
    """
    settings: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--set {pair!r}: wants key=value, as session.timeout.ms=10000")
        settings[key.strip()] = value.strip()
    return settings


def find_scenario(name_or_file: str) -> "Scenario":
    """The catalogue's scenario of that name, or the one in a JSON file.

    Raises:
        ScenarioError: No such name (close ones are listed), or the file holds no scenario.
        OSError: The file cannot be read.
    """
    from coordinator_sim.scenario.scenario import load_scenario
    from scenarios.catalog import scenario_named

    path = Path(name_or_file)
    if path.suffix == ".json":
        return load_scenario(path)
    if path.is_file():
        raise ScenarioError(f"{path}: a scenario's file ends in .json; rename it")
    return scenario_named(name_or_file)
