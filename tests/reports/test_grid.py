"""Grid files, runs that are kept, and the candidates that no other is better than."""

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.cli.sweep import asked_for
from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.sim.scenario import Scenario, scenario_to_json
from coordinator_sim.sim.scenario.variety import Variety
from coordinator_sim_reports.grid import read_grid
from coordinator_sim_reports.sweep_page import Scope, render_sweep, scatter, strip
from coordinator_sim_reports.tradeoffs import OBJECTIVES, candidate_rows, candidates
from coordinator_sim_reports.trials import Asked, simulate_trial, trials
from coordinator_sim_scenarios.catalog import scenario_named
from tests.own_assignors import own_assignors_forgotten

OWN = """
def assign(topics, members):
    every = [(t, n) for t, racks in topics.items() for n in range(len(racks))]
    return {m.id: every[k :: len(members)] for k, m in enumerate(members)}

def twice(topics, members):
    return {m.id: [("orders", 0)] for m in members}
"""


@pytest.fixture(autouse=True)
def _forget_own() -> Iterator[None]:
    with own_assignors_forgotten():
        yield


def own_scenario(name: str = "mine", duration_ms: int = 30_000) -> Scenario:
    """The first seconds of a small deploy, by another name."""
    found = scenario_named("rolling-bounce")
    return msgspec.structs.replace(found, name=name, duration_ms=duration_ms, happenings=())


def test_a_grid_is_every_combination(tmp_path: Path) -> None:
    """Own scenarios and assignors, settings with one value and with several, seeds by number."""
    (tmp_path / "mine.json").write_bytes(scenario_to_json(own_scenario()))
    (tmp_path / "my.py").write_text(OWN)
    file = tmp_path / "grid.toml"
    file.write_text(
        'scenarios = ["mine.json", "member-crash"]\nassignors = ["range", "spread"]\n'
        'memberships = ["static"]\nseeds = [3, 5, 8]\n'
        '[settings]\n"session.timeout.ms" = [10000, 45000]\n"enable.auto.commit" = true\n'
        '[assignor]\nspread = { from = "my.py:assign" }\n'
    )
    asked = read_grid(file)
    grid = trials(asked)

    assert len(grid) == 2 * 2 * 2 * 3
    assert len({trial.label for trial in grid}) == len({trial.trace_id for trial in grid}) == 24
    assert {trial.seed for trial in grid} == {3, 5, 8}
    assert {trial.settings_text for trial in grid} == {
        f"enable.auto.commit=true session.timeout.ms={ms}" for ms in (10_000, 45_000)
    }
    assert {bool(trial.written) for trial in grid if trial.scenario == "mine"} == {True}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scenarios = [", "grid.toml: "),
        ("seeds = 3", "missing required field `scenarios`"),
        ('scenarios = []\nassignor = "x"', r"at `\$.assignor`"),
        ("scenarios = []\nassignores = []", "unknown field `assignores`"),
        ('scenarios = []\nmemberships = ["both"]', "'both': must be one of dynamic, static"),
        ("scenarios = []\n[assignor]\nmine = {}", "wants `from`, `process` or `java`"),
        ('scenarios = []\n[assignor]\nmine = { from = "x.py:f" }', "x.py: no such file"),
        ('scenarios = ["s3a://b/x.json"]', "by paths from its own folder on"),
        ("scenarios = []\nseeds = 2000000", "more than 1,000,000 runs"),
    ],
)
def test_a_file_that_is_no_grid_is_refused(text: str, message: str, tmp_path: Path) -> None:
    """With its name, and what is wrong in it."""
    file = tmp_path / "grid.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_grid(file)


def test_a_finished_run_is_kept(tmp_path: Path) -> None:
    """Unless its scenario changed, or its trace is not whole."""
    out = str(tmp_path / "traces")

    def run(scenario: Scenario) -> Any:  # noqa: ANN401 - a `Finished`
        asked = Asked(names=("mine",), written={"mine": scenario}, assignors=("range",))
        return simulate_trial(trials(asked)[0], out, asked)

    first, second = run(own_scenario()), run(own_scenario())
    assert (first.is_kept, second.is_kept) == (False, True)
    assert first.path == second.path
    assert not run(own_scenario(duration_ms=31_000)).is_kept
    (Path(first.path) / "run.json").unlink()
    assert not run(own_scenario(duration_ms=31_000)).is_kept


def test_a_run_that_fails_says_so_in_one_line(tmp_path: Path) -> None:
    """What a worker answers, instead of a traceback out of Spark."""
    (tmp_path / "my.py").write_text(OWN)
    (tmp_path / "mine.json").write_bytes(scenario_to_json(own_scenario()))
    file = tmp_path / "grid.toml"
    file.write_text(
        'scenarios = ["mine.json"]\nassignors = ["twice"]\n'
        '[assignor]\ntwice = { from = "my.py:twice" }\n'
    )
    asked = read_grid(file)
    finished = simulate_trial(trials(asked)[0], str(tmp_path / "traces"), asked)
    assert finished.failure.startswith("mine-twice-dynamic-0: assignor 'twice' gives orders-0 to ")
    assert "\n" not in finished.failure
    assert not (tmp_path / "traces" / "mine-twice-dynamic-0" / "run.json").exists()


def test_two_files_with_scenarios_of_one_name_are_refused(tmp_path: Path) -> None:
    """Their runs would have the same directories."""
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_bytes(scenario_to_json(own_scenario()))
    file = tmp_path / "grid.toml"
    file.write_text('scenarios = ["a.json", "b.json"]')
    with pytest.raises(CoordinatorSimError, match=r"b\.json: scenario 'mine' is in another file"):
        read_grid(file)


_POINTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=9
)


def rows_of(points: list[tuple[int, int, int]]) -> list[dict[str, Any]]:
    """Costs of one run for each candidate."""
    return [
        {
            "choice": f"a<{n}>",
            "membership": "dynamic",
            "settings": "",
            "seed": 0,
            "processing_ms": None,
            **dict(zip(OBJECTIVES, map(float, point), strict=True)),
        }
        for n, point in enumerate(points)
    ]


@given(points=_POINTS)
def test_the_front_is_what_nothing_dominates(points: list[tuple[int, int, int]]) -> None:
    """Every other candidate has one on the front that is as good in all and better in one."""
    found = candidates(rows_of(points))
    best = [point for each, point in zip(found, points, strict=True) if each.is_best]
    assert best
    for each, point in zip(found, points, strict=True):
        better = [
            one
            for one in best
            if one != point and all(a <= b for a, b in zip(one, point, strict=True))
        ]
        assert each.is_best == (not better)


@given(points=_POINTS)
def test_charts_are_well_formed(points: list[tuple[int, int, int]]) -> None:
    """Whatever the values: SVG that parses, a circle for each candidate, names escaped."""
    found = candidates(rows_of(points))
    drawn = ET.fromstring(scatter(found))  # noqa: S314 - our own text
    circles = list(drawn.iter("circle"))
    assert len(circles) == len(points)
    assert all(0 <= float(each.get("cx", "nan")) <= 760 for each in circles)
    assert [title.text or "" for title in drawn.iter("title")].count("") == 0
    for each in found:
        ET.fromstring(strip(each, "moved", 4.0))  # noqa: S314 - as above


def test_the_page_shows_each_candidate() -> None:
    """A row each, the word `front` for the best, and no request to anywhere."""
    found = candidates(rows_of([(1, 5, 1), (2, 2, 1), (3, 3, 3)]))
    scope = Scope(runs=3, seeds=1, left_out={}, is_own=True)
    page = render_sweep(scope, choices=[], by_scenario=[], candidates=found)
    assert page.count('<td class="best">front</td>') == 2
    assert "a&lt;2&gt; dynamic" in page
    assert "of the catalogue" not in page
    assert "http" not in page
    assert [row["is_best"] for row in candidate_rows(found)] == [True, True, False]
    assert all(a["number"] < b["number"] for a, b in pairwise(candidate_rows(found)))


def test_memberships_of_the_command_line() -> None:
    """One kind, both by default; an unknown one is named."""

    def kinds(words: str) -> tuple[str, ...]:
        asked = asked_for(
            ["rolling-bounce"],
            1,
            variety=Variety(),
            processing_times=(),
            assignors="range",
            memberships=words,
            own=(),
        )
        return tuple(trial.membership for trial in trials(asked))

    assert kinds("") == ("dynamic", "static")
    assert kinds("dynamic") == ("dynamic",)
    with pytest.raises(ConfigError, match="--memberships: 'both': must be one of dynamic, static"):
        kinds("both")
