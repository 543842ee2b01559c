"""The sweep: which runs it makes, and what the choices cost in two stories whose ends are known."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.cli.main import app
from coordinator_sim.errors import ConfigError, ScenarioError
from coordinator_sim.scenario import ConsumerGroupSpec
from reports.sweep_page import in_short, render_sweep
from reports.trials import Trial, trials

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_scenario_is_run_under_every_choice_that_fits() -> None:
    """Consumers under assignors and memberships, workers under protocols."""
    grid = trials(["member-crash", "connect-worker-crash"], seeds=2)

    assert len(grid) == (3 * 2 + 2) * 2
    assert len({trial.trace_id for trial in grid}) == len({trial.label for trial in grid}) == 16
    assert {trial.membership for trial in grid if trial.choice == "eager"} == {""}


def test_the_whole_catalogue_is_run_but_for_stories_about_protocols() -> None:
    """An upgrade from eager to cooperative has no variant under one of them alone."""
    names = {trial.scenario for trial in trials([], seeds=1)}

    assert {"member-crash", "connect-rolling-deploy"} <= names
    assert "cooperative-upgrade" not in names


def test_impossible_sweeps_are_refused() -> None:
    """The message says what is wrong."""
    with pytest.raises(ScenarioError, match="unknown scenario 'nothing'"):
        trials(["nothing"], seeds=1)
    with pytest.raises(ConfigError, match="it changes assignors"):
        trials(["cooperative-upgrade"], seeds=1)
    with pytest.raises(ConfigError, match="seeds=0"):
        trials([], seeds=0)


def test_static_members_are_called_by_their_names() -> None:
    """Every consumer of a static trial has an instance id, of a dynamic one none."""
    for membership, is_static in (("static", True), ("dynamic", False)):
        (group,) = (
            Trial(scenario="rolling-bounce", choice="range", membership=membership).world().groups
        )
        assert isinstance(group, ConsumerGroupSpec)
        assert {member.instance_id is not None for member in group.members} == {is_static}


@pytest.mark.spark
def test_a_crash_costs_what_its_story_says(tmp_path: Path, spark: "SparkSession") -> None:
    """The scheduled delay keeps a dead worker's tasks unowned; static members wait for theirs."""
    out = tmp_path / "out"
    arguments = ["sweep", "connect-worker-crash", "rolling-bounce", "--out", str(out), "--json"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    assert spark.range(1).count() == 1, "a session that was active before is left running"

    summary = json.loads(result.stdout)
    assert (summary["runs"], summary["scenarios"]) == (8, 2)
    rows = {(row["question"], row["choice"]): row for row in summary["choices"]}
    eager, incremental = rows["protocol", "eager"], rows["protocol", "sessioned"]
    assert eager["interrupted"] > incremental["interrupted"] > 0
    assert eager["unowned_s"] < incremental["unowned_s"]
    assert eager["duplicates"] == incremental["duplicates"] == eager["reprocessed"] > 0
    dynamic, static = rows["membership", "dynamic"], rows["membership", "static"]
    assert (static["moved"], static["rebalances"]) == (0, 3)
    assert dynamic["moved"] > 0
    assert {row["gaps"] for row in rows.values()} == {0}
    ranged, cooperative = rows["assignor", "range"], rows["assignor", "cooperative-sticky"]
    assert ranged["duplicates"] == 0 < cooperative["duplicates"]

    page = (out / "sweep.html").read_text()
    assert "incremental instead of eager" in page
    assert not re.search(r"https?:", page)
    names = {path.name for path in (out / "tables").iterdir()}
    assert names >= {"run_costs", "choice_costs", "scenario_costs", "work"}


def test_the_line_on_top_says_what_the_newest_choice_changes() -> None:
    """In percent of the oldest; nothing is divided by zero."""
    costs = dict.fromkeys(("moved", "unowned_s", "duplicates", "reprocessed", "double_run_s"), 0)
    rows = [
        {"question": "protocol", "choice": "eager", "scenarios": 1, "interrupted": 10, **costs},
        {
            "question": "protocol",
            "choice": "sessioned",
            "scenarios": 1,
            "interrupted": 4,
            **costs,
            "unowned_s": 3.0,
        },
    ]

    assert in_short(rows) == (
        "incremental instead of eager: \N{MINUS SIGN}60 % interrupted, no moved, some unowned, "
        "no duplicates, no run twice"
    )
    page = render_sweep(choices=rows, by_scenario=[], runs=2, seeds=1)
    assert "Connect: eager or incremental cooperative" in page
