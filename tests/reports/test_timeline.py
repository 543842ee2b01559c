from typing import Any

import pytest

pytest.importorskip("plotly", reason="needs the spark extra")

from coordinator_sim_reports.fault_rows import fault_rows
from coordinator_sim_reports.run_labels import RunLabel
from coordinator_sim_reports.side_by_side import shared_groups
from coordinator_sim_reports.timeline import Block, lanes_of, timeline_figure

S = 1_000_000
WALL_US = 1_795_285_663_376_000


def label(name: str, start_us: int = 0, length_s: int = 200, *, calendar: bool = False) -> RunLabel:
    """A run of so many seconds."""
    return RunLabel(
        name=name,
        origin_us=None if calendar else start_us,
        start_us=start_us,
        end_us=start_us + length_s * S,
        is_simulated=start_us == 0,
        path=name,
    )


def window(name: str, from_s: float, to_s: float, number: int = 1, **columns: Any) -> Any:  # noqa: ANN401
    """A row of the table of fault windows."""
    start_us = columns.pop("start_us", 0)
    row = {
        "trace_id": "sim",
        "cluster_id": "c",
        "window_no": number,
        "name": name,
        "task": name,
        "kind": "a.b.NoOpTaskSpec",
        "from_us": start_us + int(from_s * S),
        "to_us": start_us + int(to_s * S),
        "is_ended": True,
    }
    return row | columns


def rebalance(at_us: int) -> dict[str, Any]:
    """A row of the table of rebalances."""
    told = {"group_id": "g", "outcome": "STABLE", "reason": "MEMBER_JOINED"}
    return {**told, "seen_us": at_us, "total_ms": 3.0}


def shades(figure: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - a Plotly figure
    """The windows over their whole run: from, to, and the first and the last row."""
    boxes = [each for each in figure.layout.shapes if "rgba" in (each.fillcolor or "")]
    return [(each.x0, each.x1, each.y0, each.y1) for each in boxes]


def names(figure: Any) -> dict[str, float]:  # noqa: ANN401 - a Plotly figure
    """The row of each window's name."""
    texts = [trace for trace in figure.data if trace.mode == "text"]
    return {
        name.strip("\N{NO-BREAK SPACE}"): row
        for trace in texts
        for name, row in zip(trace.text, trace.y, strict=True)
    }


def test_a_window_shades_its_own_run_alone() -> None:
    """Two runs of 200 s and 180 s, one of them by the wall's clock: both begin at 0."""
    runs = [
        Block(label("sim"), ["g", "h"], [rebalance(45 * S)], [window("cut", 30, 50)]),
        Block(
            label("real", WALL_US, 180),
            ["g"],
            [rebalance(WALL_US + 46 * S)],
            [window("cut", 31, 52, start_us=WALL_US)],
        ),
    ]
    figure = timeline_figure(runs)
    # A lane and two groups, half a row, a lane and a group.
    assert shades(figure) == [(30, 50, 0, 2.5), (31, 52, 3.5, 5.0)]
    assert list(figure.layout.yaxis.tickvals) == [0, 1, 2, 3.5, 4.5]
    assert figure.layout.yaxis.ticktext[4] == "g (real)"
    (marks,) = (trace for trace in figure.data if trace.mode == "markers")
    assert (list(marks.x), list(marks.y)) == ([45, 46], [1, 4.5])
    lives = [(each.x0, each.x1) for each in figure.layout.shapes if each.type == "line"]
    assert lives == [(0, 200), (0, 200), (0, 180)]


def test_windows_that_overlap_are_on_lanes_of_their_own() -> None:
    """The groups stand below the last lane, and all windows reach down to them."""
    windows = [window("one", 10, 100), window("two", 50, 120), window("three", 130, 140)]
    figure = timeline_figure([Block(label("sim"), ["g"], [], windows)])
    assert names(figure) == {"one": 0, "two": 1, "three": 0}
    assert list(figure.layout.yaxis.tickvals) == [0, 2]
    assert {bottom for *_, bottom in shades(figure)} == {2.5}


def test_a_run_without_windows_has_no_lane() -> None:
    """Only the groups of the run are drawn."""
    figure = timeline_figure([Block(label("sim"), ["g"], [rebalance(S)], [])])
    assert list(figure.layout.yaxis.ticktext) == ["g (sim)"]
    assert shades(figure) == []


def test_a_name_that_does_not_fit_is_written_leftwards() -> None:
    """A short window shortly before the end of the axis keeps its name on the page."""
    windows = [window("early", 5, 6), window("a-long-name-at-the-end", 197, 198)]
    (texts,) = timeline_figure([Block(label("sim"), [], [], windows)]).data
    assert list(texts.textposition) == ["middle right", "middle left"]
    assert list(texts.x) == [5, 198]


def test_a_log_alone_is_drawn_by_the_calendar() -> None:
    """Windows are drawn from date to date, as rebalances are."""
    block = Block(
        label("log", WALL_US, calendar=True),
        ["g"],
        [rebalance(WALL_US)],
        [window("cut", 30, 50, start_us=WALL_US)],
    )
    figure = timeline_figure([block])
    ((begin, end, *_),) = shades(figure)
    assert f"{begin:%H:%M:%S} {end:%H:%M:%S}" == "18:28:13 18:28:33"
    assert figure.layout.xaxis.title.text == "time (UTC)"


def test_names_that_look_like_tags_are_escaped() -> None:
    """Names of tasks and groups that look like tags are shown as they are."""
    block = Block(label("sim"), ["<b>"], [], [window("<i>", 1, 2)])
    figure = timeline_figure([block])
    assert figure.layout.yaxis.ticktext[1] == "&lt;b&gt; (sim)"
    assert list(names(figure)) == ["&lt;i&gt;"]


def test_lanes_are_taken_from_the_top() -> None:
    """An interval that begins where another ends may follow it; order does not matter."""
    assert lanes_of([]) == []
    assert lanes_of([(5, 9), (0, 5), (1, 2), (2, 6), (1, 9)]) == [0, 0, 1, 1, 2]


# -- the tables beside it ------------------------------------------------------------------------


def test_the_same_window_of_two_runs_stands_together() -> None:
    """The second run of a task is beside that of the other run, and times count from each start."""
    labels = {"sim": label("A"), "real": label("B", WALL_US)}
    real = {"trace_id": "real", "start_us": WALL_US}
    windows = [
        window("cut", 31, 52, 1, **real),
        window("pause", 20, 25, 2, **real, is_ended=False),
        window("cut", 90, 91, 3, **real),
        window("cut", 30, 50, 1),
        window("cut", 95, 97, 2),
    ]
    effect = {"trace_id": "real", "cluster_id": "c", "window_no": 1, "group_id": "g"}
    rows = fault_rows(windows, [effect], labels)
    shown = [(row["name"], row["run_name"], row["when"], row["is_first"]) for row in rows]
    assert shown == [
        ("pause", "B", "20.000 s", True),
        ("cut", "A", "30.000 s", True),
        ("cut", "B", "31.000 s", False),
        ("cut", "A", "95.000 s", True),
        ("cut", "B", "90.000 s", False),
    ]
    assert [row["effects"] for row in rows] == [[], [], [effect], [], []]
    assert [row["length_ms"] for row in rows] == [5_000, 20_000, 21_000, 2_000, 1_000]
    assert rows[0]["date"] == "2026-11-21 18:28:03.376"
    assert not rows[0]["is_ended"]


def test_groups_that_several_runs_have_are_set_beside_each_other() -> None:
    """Rows are in the order of the runs; a group that only one run has is left out."""
    labels = {"sim": label("A"), "real": label("B", WALL_US)}
    keys = {
        (trace_id, group_id): {"trace_id": trace_id, "cluster_id": "c", "group_id": group_id}
        for trace_id in ("real", "sim")
        for group_id in ("g", "h")
    }
    del keys["real", "h"]
    told = [("JOINED", 1, None), ("FAILED", 4, 70.0), ("LEFT", 1, 90.0)]
    reasons = [
        {**keys["real", "g"], "reason": reason, "count": count, "max_ms": longest}
        for reason, count, longest in told
    ]
    (shared,) = shared_groups(list(keys.values()), reasons, labels)
    assert shared["group_id"] == "g"
    assert [row["run_name"] for row in shared["runs"]] == ["A", "B"]
    assert [row["longest_ms"] for row in shared["runs"]] == [None, 90.0]
    assert list(shared["runs"][1]["reason_counts"].items()) == [
        ("FAILED", 4),
        ("JOINED", 1),
        ("LEFT", 1),
    ]
