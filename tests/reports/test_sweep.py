"""The sweep: which runs it makes, and what the choices cost in two stories whose ends are known."""

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.cli.main import app
from coordinator_sim.errors import ConfigError, DataError, ScenarioError
from coordinator_sim.sim.scenario import Choices, ConsumerGroupSpec
from coordinator_sim.sim.scenario.variants import realised
from coordinator_sim_reports.sweep import Outlook, simulate_all
from coordinator_sim_reports.sweep_page import MEASURES, Scope, answers_of, render_sweep
from coordinator_sim_reports.trials import COMPARED, Asked, Trial, left_out, trials
from coordinator_sim_scenarios.catalog import all_scenarios

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_scenario_is_run_under_every_choice_that_fits() -> None:
    """Consumers under assignors and memberships, workers under protocols."""
    grid = trials(Asked(names=("member-crash", "connect-worker-crash"), seeds=(0, 1)))

    assert len(grid) == (3 * 2 + 2) * 2
    assert len({trial.trace_id for trial in grid}) == len({trial.label for trial in grid}) == 16
    assert {trial.membership for trial in grid if trial.choice == "eager"} == {""}


def test_the_whole_catalogue_is_run_but_for_stories_about_protocols() -> None:
    """An upgrade from eager to cooperative has no variant under one of them alone."""
    names = {trial.scenario for trial in trials(Asked())}

    assert {"member-crash", "connect-rolling-deploy"} <= names
    assert "cooperative-upgrade" not in names


def test_impossible_sweeps_are_refused() -> None:
    """The message says what is wrong."""
    with pytest.raises(ScenarioError, match="unknown scenario 'nothing'"):
        trials(Asked(names=("nothing",)))
    with pytest.raises(ConfigError, match="it changes assignors"):
        trials(Asked(names=("cooperative-upgrade",)))
    with pytest.raises(ConfigError, match="without a seed"):
        trials(Asked(seeds=()))


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
    names = ["connect-worker-crash", "rolling-bounce"]
    arguments = ["sweep", *names, "--seeds", "1", "--out", str(out), "--json"]
    arguments += ["--objective-lag-ms", "2000"]
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert (result.exit_code, result.stderr) == (0, "")
    assert spark.range(1).count() == 1, "a session that was active before is left running"

    summary = json.loads(result.stdout)
    assert (summary["runs"], summary["scenarios"], summary["left_out"]) == (8, 2, {})
    rows = {(row["question"], row["choice"]): row for row in summary["choices"]}
    eager, incremental = rows["protocol", "eager"], rows["protocol", "sessioned"]
    assert eager["interrupted"] > incremental["interrupted"] > 0
    assert eager["unowned_s"] < incremental["unowned_s"]
    dynamic, static = rows["membership", "dynamic"], rows["membership", "static"]
    assert static["moved"] < dynamic["moved"]
    assert {row["gaps"] for row in rows.values()} == {0}
    ranged, cooperative = rows["assignor", "range"], rows["assignor", "cooperative-sticky"]
    assert ranged["interrupted"] > cooperative["interrupted"]
    assert ranged["unowned_s"] > cooperative["unowned_s"]
    for row in rows.values():
        assert row["stopped_s_low"] == row["stopped_s"] == row["stopped_s_high"]
    lags = {
        path.parent.name: json.loads(path.read_bytes()) for path in out.glob("traces/*/lag.json")
    }
    for kind in ("dynamic", "static"):
        above = [lags[f"rolling-bounce-{name}-{kind}-0"]["above_s"] for name in COMPARED]
        assert rows["membership", kind]["above_s"] == pytest.approx(sum(above))
    connect, consumers = sorted(summary["objective"], key=lambda each: len(each["points"]))
    assert [each["name"] for each in connect["points"]] == ["eager", "sessioned"]
    points = {each["name"]: each["spreads"] for each in consumers["points"]}
    values = points["sticky static"]["member_hours"]["values"]
    assert values == [lags["rolling-bounce-sticky-static-0"]["member_hours"]] != [0]

    page = (out / "sweep.html").read_text()
    assert "<p>Trade-off: " in page
    for row in rows.values():
        assert [world["moved"] for world in row["worlds"]] == [row["moved"]]
    assert page.index(consumers["sentences"][0]) < page.index("Trade-offs")
    assert not re.search(r"https?:", page)
    names = {path.name for path in (out / "tables").iterdir()}
    assert names >= {"run_costs", "choice_costs", "scenario_costs", "work"}


@pytest.mark.spark
def test_a_sweep_that_is_short_of_time_has_the_same_worlds_for_every_choice_and_goes_on(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    """Without any time there is one world; asked again, it is kept and the others are added."""
    asked = Asked(
        names=("rolling-bounce",),
        assignors=("range", "sticky"),
        memberships=("dynamic",),
        seeds=(0, 1, 2),
    )
    grid = trials(asked)
    told: list[str] = []
    said: list[str] = []
    outlook = Outlook(grid, tmp_path, 0.0, 1, said.append)
    some, finished = simulate_all(spark, grid, asked, tmp_path, outlook, told.append)
    assert [(trial.choice, trial.seed) for trial in some] == [("range", 0), ("sticky", 0)]
    assert [each.is_kept for each in finished] == [False, False]
    assert told[0] == "simulated 0 of 6 runs"
    assert said[0] == "6 runs: 2 in each of 3 drawn worlds"
    assert re.fullmatch(r"simulating them takes about \d+ .*; ends after 1 s, with .*", said[1])

    again = Outlook(grid, tmp_path, math.inf, 1, said.append)
    assert said[2] == "6 runs: 2 in each of 3 drawn worlds, 2 of them kept from before"
    every, finished = simulate_all(spark, grid, asked, tmp_path, again, told.append)
    assert every == grid
    assert [trial.seed for trial, each in zip(every, finished, strict=True) if each.is_kept] == [
        0,
        0,
    ]


@pytest.mark.spark
def test_a_sweep_without_a_time_ends_in_its_first_world_if_that_takes_too_long(
    tmp_path: Path, spark: "SparkSession"
) -> None:
    """Nothing is compared then: one choice would have more worlds than another."""
    asked = Asked(names=("consumer-rolling-deploy",), seeds=(0, 1))
    grid = trials(asked)
    outlook = Outlook(grid, tmp_path, None, 1, lambda _: None)
    outlook.ends_s = 0.1
    with pytest.raises(DataError, match=r"of the 6 runs of the first world are not done"):
        simulate_all(spark, grid, asked, tmp_path, outlook, lambda _: None)
    assert spark.range(1).count() == 1


def test_the_page_of_a_sweep_that_was_short_of_time_says_so() -> None:
    """How many worlds each choice met, and how many it was to meet."""
    scope = Scope(runs=2, seeds=1, left_out={}, seeds_left=2)
    page = render_sweep(scope, choices=[], by_scenario=[], candidates=[])
    assert "1 drawn world each of 3 asked for (the time given was over)" in page


def test_the_page_begins_with_the_winner_of_each_question() -> None:
    """Then comes the table that the terminal prints; trade-offs of all candidates come later."""
    rows = [
        costs_row("eager", moved=(9, 10, 12)),
        costs_row("sessioned", moved=(4, 4, 4), unowned_s=(2.5, 3, 200)),
    ]

    (answer,) = answers_of(rows)
    assert answer == (
        "Connect: Trade-off: incremental moved 4 tasks (eager 10), stopped nobody and processed no "
        "record again, but left tasks unowned for 3.00 s (eager 0 s). Differences hold in each of "
        "the 3 drawn worlds; figures are their medians."
    )
    unasked = {"slow-leader": "its story hangs on single responses"}
    scope = Scope(runs=2, seeds=1, left_out=unasked)
    page = render_sweep(scope, choices=rows, by_scenario=[], candidates=[])
    assert "Connect: eager or incremental cooperative" in page
    assert "10 (9-12)" in page
    assert page.index(answer.partition(": ")[2]) < page.index("10 (9-12)")
    assert "3.00 (2.50-200)" in page
    assert "its story hangs on single responses" in page


@pytest.mark.parametrize(("least", "is_marked"), [(386.1, False), (380.0, True)])
def test_a_lead_that_is_not_printed_is_not_marked(least: float, *, is_marked: bool) -> None:
    """Neither in a bar nor in a cell."""
    seconds = {"range": 386.4, "sticky": least}
    rows = [costs_row(name, unowned_s=(value,) * 3) for name, value in seconds.items()]
    scope = Scope(runs=2, seeds=3, left_out={})
    page = render_sweep(scope, choices=rows, by_scenario=[], candidates=[])
    assert ('class="n best"' in page) == is_marked
    assert (' best"' in page) == is_marked


def test_a_question_with_one_answer_is_not_asked() -> None:
    """A sweep of one membership compares assignors alone."""
    rows = [
        *(costs_row(name) | {"question": "assignor"} for name in ("range", "sticky")),
        costs_row("dynamic") | {"question": "membership"},
    ]
    scope = Scope(runs=2, seeds=1, left_out={})
    page = render_sweep(scope, choices=rows, by_scenario=[], candidates=[])
    assert "No difference in these 3 worlds between range and sticky" in page
    assert answers_of(rows[2:]) == []


def test_each_processing_time_has_a_winner_of_its_own() -> None:
    """Figures of different paces are not compared."""
    rows = [
        costs_row(choice, unowned_s=each) | {"question": "processing"}
        for choice, each in (
            ("50 ms, range", (1, 2, 3)),
            ("50 ms, sticky", (4, 5, 6)),
            ("5000 ms, range", (9, 9, 9)),
            ("5000 ms, sticky", (7, 7, 8)),
        )
    ]

    fast, slow = answers_of(rows)
    assert fast.startswith("50 ms: range left partitions unowned for 2.00 s (sticky 5.00 s)")
    assert slow.startswith("5000 ms: sticky left partitions unowned for 7.00 s (range 9.00 s)")


def costs_row(choice: str, **spreads: tuple[float, float, float]) -> dict[str, Any]:
    """A row of the costs by choice: the least, the median and the most of what is not 0."""
    row: dict[str, Any] = {"question": "protocol", "choice": choice, "scenarios": 1}
    for measure in MEASURES:
        low, median, high = spreads.get(measure.column, (0, 0, 0))
        row |= {f"{measure.column}_low": low, f"{measure.column}_high": high}
        row[measure.column] = median
    row["worlds"] = [
        {"seed": seed}
        | {each.column: spreads.get(each.column, (0, 0, 0))[seed] for each in MEASURES}
        for seed in range(3)
    ]
    return row


def test_every_choice_meets_the_same_worlds() -> None:
    """Starts and happenings are those of the seed, whatever the assignor and the membership."""
    grid = trials(Asked(names=("member-crash",)))
    worlds = [realised(trial.world(), Choices(trial.seed)) for trial in grid]
    assert len({tuple(one.start_ms for one in world.members()) for world in worlds}) == 1
    assert len({world.happenings for world in worlds}) == 1
    assert all(world.variety is not None for world in worlds)


def test_processing_times_are_compared_alone() -> None:
    """Dynamic consumers under every assignor at each time; the label tells the time."""
    grid = trials(
        Asked(names=("member-crash", "connect-worker-crash"), processing_times=(50, 5_000))
    )
    assert len(grid) == 3 * 2
    assert {trial.membership for trial in grid} == {"dynamic"}
    assert {trial.processing_ms for trial in grid} == {50, 5_000}
    assert "member-crash-range-dynamic-50ms-0" in {trial.label for trial in grid}
    with pytest.raises(ConfigError, match="name a scenario that has some"):
        trials(Asked(names=("connect-worker-crash",), processing_times=(50,)))


def test_what_a_sweep_leaves_out_is_named_with_the_reason() -> None:
    """A story that hangs on single responses means nothing in a drawn world."""
    assert "single responses" in left_out(Asked())["slow-leader"]
    assert "member-crash" not in left_out(Asked())
    assert "neither assignors" in left_out(Asked())["share-poison"]
    assert left_out(Asked()).keys() | {each.scenario for each in trials(Asked())} == {
        *all_scenarios()
    }
    asked = Asked(settings=({"keda.lagThreshold": "5"},), objective_lag_ms=1_000)
    compared, every = ({trial.scenario for trial in trials(each)} for each in (asked, Asked()))
    assert compared
    assert left_out(asked).keys() - left_out(Asked()).keys() == every - compared
    assert "objective_lag_ms=0" in left_out(Asked(objective_lag_ms=0))["member-crash"]
