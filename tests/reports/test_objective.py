"""What keeping a lag objective costs: the figures of a run, and the answer of a sweep."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.cli.console import PrintableConsole
from coordinator_sim.cli.sweep import print_answer
from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario import (
    ConsumerGroupSpec,
    ConsumerSpec,
    GroupSpec,
    Scenario,
    ShareGroupSpec,
    TopicSpec,
    scenario_to_json,
)
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent
from coordinator_sim_reports.objective import FIGURES, KEPT_PERCENT, Answer, answers_of, lag_costs
from coordinator_sim_reports.sweep_page import Scope, render_sweep
from coordinator_sim_reports.trials import LAG_NAME, Asked, simulate_trial, trials
from coordinator_sim_scenarios.catalog import scenario_named
from tests.command_line import run_here

THRASH = msgspec.structs.replace(scenario_named("keda-thrash"), name="mine", duration_ms=150_000)
SMALL = Scenario(
    name="mine",
    title="A topic of one partition",
    story="",
    duration_ms=40_000,
    topics=(TopicSpec(name="t", partitions=1),),
    groups=(
        ConsumerGroupSpec(group_id="g", topics=("t",), members=(ConsumerSpec(name="reader"),)),
    ),
)
LATE = ConsumerSpec(name="late", start_ms=None)
LATE_OF_ITS_OWN = msgspec.structs.replace(LATE, topics=("u",))
ASKED = Asked(
    names=("mine",),
    written={"mine": THRASH},
    assignors=("range",),
    memberships=("dynamic",),
    seeds=(0, 1),
    objective_lag_ms=20_000,
)


def test_a_sweep_has_the_figures_of_run(tmp_path: Path) -> None:
    """The trial of a seed costs what the summary of `run` says of the same world."""
    (tmp_path / "mine.json").write_bytes(scenario_to_json(THRASH))
    words = ("--varied", "--objective-lag-ms", "20000", "--assignor", "range", "--json")
    done = run_here("run", "mine.json", "--seed", "1", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    ((lag,), (work,)) = told["lag"], told["work"]
    trial = trials(ASKED)[1]
    finished = simulate_trial(trial, str(tmp_path), ASKED)
    assert finished.failure == ""
    found = json.loads((Path(finished.path) / LAG_NAME).read_bytes())
    assert lag["above_us"] > 0
    assert found["above_s"] * 1e6 == pytest.approx(lag["above_us"])
    assert found["above_percent"] == pytest.approx(100 * lag["above_us"] / lag["partition_us"])
    assert found["member_hours"] * 3.6e9 == pytest.approx(lag["member_us"])
    assert found["members_max"] == lag["max_members"] == 12
    assert found["members_mean"] == pytest.approx(12 * lag["member_us"] / lag["partition_us"])
    assert found["delay_p99_s"] * 1e6 == pytest.approx(lag["delay_p99_us"])
    assert work["duplicates"] == 0
    (tmp_path / trial.label / LAG_NAME).unlink()
    assert not simulate_trial(trial, str(tmp_path), ASKED).is_kept
    assert simulate_trial(trial, str(tmp_path), ASKED).is_kept


def test_what_an_autoscaler_changes_is_counted() -> None:
    """A decision that leaves the replicas as they are is none; no lag, no figures."""
    events = [
        TraceEvent(
            event=Event.RECORDS_PROCESSED,
            ts_us=40_000_000,
            group_id="g",
            latency_us=20_000_000,
            offsets=(OffsetEntry("t", 0, 0),),
            attrs={"lag_us": "0", "delays": "3:90", "objective_us": "1", "above_us": "4000000"},
        ),
        *(
            TraceEvent(
                event=Event.FAULT,
                ts_us=50_000_000,
                reason_text="ScaleDecision",
                attrs={"before": "2", "replicas": after},
            )
            for after in "2412"
        ),
    ]
    costs = lag_costs(events, SMALL)
    assert (costs["scale_changes"], costs["above_s"], costs["above_percent"]) == (2, 4.0, 8.0)
    assert lag_costs(events[1:], SMALL) == {}


@pytest.mark.parametrize(
    ("records_per_s", "other"),
    [
        (100, ConsumerGroupSpec(group_id="h", topics=("u",), members=(LATE,))),
        (100, ConsumerGroupSpec(group_id="h", topics=(), pattern="[u-z]", members=(LATE,))),
        (100, ConsumerGroupSpec(group_id="h", topics=("t",), members=(LATE_OF_ITS_OWN,))),
        (100, ShareGroupSpec(group_id="h", topics=("u",), members=())),
        (0, ConsumerGroupSpec(group_id="h", topics=("u",), members=(LATE,))),
    ],
    ids=["topics", "pattern", "own topics", "share", "no records"],
)
def test_a_group_that_never_reads_leaves_no_figures(
    tmp_path: Path, records_per_s: int, other: GroupSpec
) -> None:
    """Its lag is unknown, and the lag of the group that reads must not stand for both."""
    idle = TopicSpec(name="u", partitions=2, records_per_s=records_per_s)
    world = msgspec.structs.replace(
        SMALL, topics=(*SMALL.topics, idle), groups=(*SMALL.groups, other)
    )
    asked = msgspec.structs.replace(ASKED, written={"mine": world})
    finished = simulate_trial(trials(asked)[0], str(tmp_path), asked)
    found = json.loads((Path(finished.path) / LAG_NAME).read_bytes())
    assert bool(found) == (records_per_s == 0)
    assert not found or found["above_percent"] == 0


def test_nothing_can_lag_where_nothing_arrives() -> None:
    """The line names the scenario, and what it lacks."""
    empty = tuple(msgspec.structs.replace(topic, records_per_s=0) for topic in THRASH.topics)
    silent = msgspec.structs.replace(THRASH, topics=empty)
    asked = msgspec.structs.replace(ASKED, written={"mine": silent})
    with pytest.raises(ConfigError, match="'mine' cannot be compared: no topic of it has a load"):
        trials(asked)
    assert trials(msgspec.structs.replace(asked, objective_lag_ms=None))
    done = run_here("sweep", "keda-thrash", "--objective-lag-ms", "0")
    assert (done.returncode, done.stdout) == (2, "")
    assert "objective_lag_ms=0: must be from 1" in done.stderr


def costs_of(settings: str, *worlds: tuple[float, float | None]) -> list[dict[str, Any]]:
    """Costs of one point in worlds of so many member-hours and percent of the time above."""
    return [
        {
            **{figure.column: 1.0 for figure in FIGURES},
            "scenario": "mine",
            "choice": "range",
            "membership": "dynamic",
            "settings": settings,
            "processing_ms": None,
            "seed": seed,
            "member_hours": hours,
            "above_percent": above,
        }
        for seed, (hours, above) in enumerate(worlds)
    ]


def answer_of(*rows: list[dict[str, Any]]) -> Answer:
    """The answer for one scenario."""
    (answer,) = answers_of([row for own in rows for row in own], 20_000)
    return answer


def test_the_answer_names_the_cheapest_point_that_keeps_the_objective() -> None:
    """One bad world is enough not to keep it; a point of equal ranges is not told apart."""
    answer = answer_of(
        costs_of("lag=1", (2, 0.2), (3, 1.4)),
        costs_of("lag=2", (4, 0.1), (5, 0.3)),
        costs_of("lag=3", (4.5, 0.2), (5.5, 0.4)),
        costs_of("lag=4", (9, 0.0), (9, 0.0)),
    )
    best, alike, front, kept = answer.sentences
    assert best.startswith("mine: no. 2 (lag=2) keeps the lag objective at least cost: 4.50 (4.00-")
    assert "from no. 3: the ranges" in alike
    assert "no. 1, 2.50 h, above 0.8 %, 1 changes, 1 rebalances; no. 2, 4.50 h" in front
    assert "no. 3" not in front
    assert kept.endswith("4 points in 2 drawn worlds each, all with range dynamic.")
    assert [name.split()[-1] for name in answer.keeping] == ["lag=2", "lag=3", "lag=4"]


def test_the_answer_says_that_no_point_keeps_the_objective_and_what_is_unknown() -> None:
    """The closest is named; one world has no spread; a point without records has no figures."""
    answer = answer_of(
        costs_of("lag=1", (2, 30)), costs_of("lag=2", (4, 8)), costs_of("lag=3", (0, None))
    )
    closest, unknown, _, _, silent = answer.sentences
    assert "no. 2 (lag=2) comes closest to the lag objective, which no point keeps" in closest
    assert unknown == "One world does not show how far worlds differ: draw more seeds."
    assert silent.startswith("Without figures, as in some world nobody ever reads some partition")
    assert silent.endswith("subscribes to: range dynamic lag=3.")
    assert (answer.keeping, len(answer.points)) == ([], 2)


def test_where_no_point_has_figures_the_answer_says_so() -> None:
    """The page and the terminal have the sentence, and neither a chart nor a table."""
    answer = answer_of(costs_of("lag=1", (2, None)), costs_of("lag=2", (4, 8), (0, None)))
    (silent,) = answer.sentences
    assert silent.startswith("mine: Without figures, as")
    assert silent.endswith(": range dynamic lag=1; range dynamic lag=2.")
    page = render_sweep(
        Scope(runs=3, seeds=2, left_out={}),
        choices=[],
        by_scenario=[],
        candidates=[],
        answers=[answer],
    )
    assert "<h1>What keeping the lag costs</h1>" in page
    assert silent in page
    assert "circle a candidate" not in page
    assert 'class="sortable points"' not in page
    printed = StringIO()
    print_answer(answer, PrintableConsole(file=printed, width=80))
    assert printed.getvalue().strip() == silent


def test_a_processing_time_keeps_its_unit() -> None:
    """Points share whole parts of their names: a time with its unit, a setting with its value."""
    rows = [
        row | {"processing_ms": time_ms}
        for time_ms in (500, 1_000)
        for row in costs_of("a=x, ms lag=1", (time_ms, 0))
    ]
    (answer,) = answers_of(rows, 20_000)
    assert list(answer.names.values()) == ["500 ms", "1000 ms"]
    assert answer.sentences[-1].endswith(", all with range dynamic a=x, ms lag=1.")


_WORLDS = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 4)), min_size=2, max_size=2)


@given(points=st.lists(_WORLDS, min_size=1, max_size=6))
def test_no_point_that_keeps_the_objective_is_cheaper(points: list[list[tuple[int, int]]]) -> None:
    """Whatever the worlds: the named point keeps it if any does, and has the fewest hours."""
    halves = [[(hours, above / 2) for hours, above in worlds] for worlds in points]
    answer = answer_of(*(costs_of(f"lag={n}", *worlds) for n, worlds in enumerate(halves, 1)))
    number = int(answer.sentences[0].split("no. ")[1].split()[0])
    kept = {
        n: sum(hours for hours, _ in worlds)
        for n, worlds in enumerate(halves, 1)
        if all(above <= KEPT_PERCENT for _, above in worlds)
    }
    assert ("keeps the lag objective" in answer.sentences[0]) == bool(kept)
    assert not kept or kept[number] == min(kept.values())
