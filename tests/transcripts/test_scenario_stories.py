"""The golden stories of the catalogue; `--rewrite` writes what is observed."""

import textwrap
from pathlib import Path

import pytest

from coordinator_sim_scenarios.catalog import scenario_named
from coordinator_sim_scenarios.stories import scenario_story
from tests.simulated import events_of

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "transcripts" / "catalog"
NAMES = sorted(path.stem.removeprefix("scenario-") for path in FOLDER.glob("scenario-*.txt"))
"""Scenarios with a file, which is empty before the first `--rewrite`."""


@pytest.mark.parametrize("name", NAMES)
def test_scenario_tells_the_same_story_again(name: str, pytestconfig: pytest.Config) -> None:
    """Running a scenario gives the lines that were reviewed."""
    scenario = scenario_named(name)
    heading = textwrap.wrap(f"{scenario.title} (seed 1). {scenario.story}", 96)
    lines = [*(f"# {line}" for line in heading), "", *scenario_story(events_of(scenario, seed=1))]
    observed = "\n".join(lines) + "\n"
    path = FOLDER / f"scenario-{name}.txt"
    if pytestconfig.getoption("--rewrite"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(observed, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == observed
