from typing import Any

import pytest

pytest.importorskip("jinja2", reason="needs the spark extra")

from coordinator_sim_reports.run_labels import are_beside, run_labels

S = 1_000_000
WALL_US = 1_795_285_663_376_000


def run(trace_id: str, source: str, first_us: int, last_us: int, **columns: str) -> dict[str, Any]:
    """A row of the table of runs."""
    row = {"scenario": None, "assignor": None, "cluster_id": "c", "path": f"traces/{trace_id}"}
    times = {"first_ts_us": first_us, "last_ts_us": last_us}
    return {**row, "trace_id": trace_id, "source": source, **times, **columns}


SIMULATED = run("sim", "sim", 5 * S, 240 * S, scenario="story", assignor="range")
REAL = run("real", "wire", WALL_US, WALL_US + 180 * S)


def test_a_log_alone_is_in_calendar_time() -> None:
    """A reader looks its times up in the log."""
    label = run_labels([REAL], is_compared=False)["real"]
    assert label.when(WALL_US) == label.date(WALL_US) == "2026-11-21 18:27:43.376"
    assert not are_beside([REAL], is_compared=True)


def test_a_simulation_counts_from_zero() -> None:
    """The first event of a simulation need not be at zero, and a simulation has no date."""
    label = run_labels([SIMULATED], is_compared=False)["sim"]
    assert (label.when(30_500_000), label.date(30 * S)) == ("30.500 s", "")
    assert label.begins == "0 s of virtual time"


@pytest.mark.parametrize("is_compared", [True, False])
def test_a_real_run_beside_a_simulation_counts_from_its_first_event(*, is_compared: bool) -> None:
    """Both runs have their zero at their own start; the real one keeps its date beside."""
    labels = run_labels([SIMULATED, REAL], is_compared=is_compared)
    assert labels["real"].when(WALL_US + 30_500_000) == labels["sim"].when(30_500_000)
    assert labels["real"].date(WALL_US) == "2026-11-21 18:27:43.376"
    assert labels["real"].begins == "2026-11-21 18:27:43.376 UTC"
    assert are_beside([SIMULATED, REAL], is_compared=is_compared)


def test_real_runs_keep_their_calendar_until_they_are_compared() -> None:
    """Two logs of one hour belong together by the clock; two runs that are compared do not."""
    other = run("later", "wire", WALL_US + 3_600 * S, WALL_US + 3_700 * S)
    apart = run_labels([REAL, other], is_compared=False)
    assert apart["later"].when(WALL_US + 3_610 * S) == "2026-11-21 19:27:53.376"
    beside = run_labels([REAL, other], is_compared=True)
    assert beside["later"].when(WALL_US + 3_610 * S) == "10.000 s"


def test_runs_of_one_name_are_told_apart_by_their_directories() -> None:
    """All served clusters have one id unless they are given another."""
    same = [run("1", "wire", 0, S, path="a/x"), run("2", "wire", 0, S, path="a/y"), SIMULATED]
    names = [label.name for label in run_labels(same, is_compared=True).values()]
    assert names == ["c, x", "c, y", "story, range"]
    same[1]["path"] = "b/x"
    names = [label.name for label in run_labels(same, is_compared=True).values()]
    assert names == ["c, a/x", "c, b/x", "story, range"]
