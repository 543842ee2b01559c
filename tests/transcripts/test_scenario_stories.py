"""The golden stories of the catalogue; `--rewrite` writes what is observed."""

import textwrap
from pathlib import Path

import pytest

from coordinator_sim_scenarios.catalog import scenario_named
from coordinator_sim_scenarios.stories import scenario_story
from tests.simulated import events_of

FOLDER = Path(__file__).resolve().parents[2] / "scenarios" / "transcripts" / "catalog"
NAMES = (
    "connect-config-lag",
    "connect-coordinator-outage",
    "connect-eager-to-sessioned-upgrade",
    "connect-join-storm",
    "connect-leader-lost",
    "connect-lost-sync",
    "connect-no-delay",
    "connect-outdated-worker",
    "connect-rest",
    "connect-sessioned-3-workers",
    "connect-voluntary-revocation",
    "connect-worker-crash",
    "connect-worker-cut-off",
    "connect-worker-lost",
    "connector-added",
    "coordinator-failover",
    "coordinator-lost-in-join",
    "coordinator-unreachable",
    "frozen-while-joining",
    "late-heartbeat-answer",
    "member-crash",
    "missed-cooperative-round",
    "new-coordinator-moved",
    "new-member-fenced",
    "new-rack-lost",
    "new-regex",
    "new-rolling-deploy",
    "new-slow-revocation",
    "online-upgrade",
    "partitions-added",
    "removed-while-joining",
    "replication-stalls",
    "scale-out",
    "slow-follower-sync",
    "slow-leader",
    "slow-processing",
    "static-leader-restart",
    "static-rolling-bounce",
    "stuck-commit",
    "subscription-reverted",
    "zombie-after-pause",
)


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
