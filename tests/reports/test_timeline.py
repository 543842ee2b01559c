import re
from typing import Any

import pytest

pytest.importorskip("jinja2", reason="needs the spark extra")

from coordinator_sim_reports.charts.timeline import Block, lanes_of, placed_blocks, timeline_chart
from coordinator_sim_reports.render import fault_rows, shared_groups
from coordinator_sim_reports.run_labels import RunLabel

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


def shades(blocks: list[Block]) -> list[tuple[float, ...]]:
    """The windows over their whole run: from, to, and the first and the last row."""
    _, placed = placed_blocks(blocks)
    return [(bar.from_s, bar.to_s, row, each.end_row) for each in placed for bar, row in each.bars]


def names(blocks: list[Block]) -> dict[str, float]:
    """The row of each window's name."""
    _, placed = placed_blocks(blocks)
    return {bar.window["name"]: row for each in placed for bar, row in each.bars}


def rows(blocks: list[Block]) -> list[tuple[float, str]]:
    """The rows that have a name."""
    _, placed = placed_blocks(blocks)
    return [row for each in placed for row in each.row_names]


def percents(chart: str, kind: str, name: str = "x") -> list[float]:
    """An attribute of the elements of a class."""
    found = re.findall(rf'<\w+ class="{kind}"[^>]*?{name}="([0-9.]+)%"', chart)
    return [float(value) for value in found]


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
    # A lane and two groups, half a row, a lane and a group.
    assert shades(runs) == [(30, 50, 0, 3), (31, 52, 3.5, 5.5)]
    assert rows(runs) == [(0, "faults"), (1, "g"), (2, "h"), (3.5, "faults"), (4.5, "g")]
    axis, _ = placed_blocks(runs)
    chart = timeline_chart(runs)
    assert percents(chart, "shade") == pytest.approx(
        [axis.percent(30), axis.percent(31)], abs=0.001
    )
    marks = re.findall(r'<path class="mark stable" d="M(\d+) ([0-9.]+)h', chart)
    assert [int(at) for at, _ in marks] == [
        round(100 * axis.percent(45)),
        round(100 * axis.percent(46)),
    ]
    assert [float(top) // 26 for _, top in marks] == [1, 4]
    assert percents(chart, "life", "x2") == pytest.approx(
        [axis.percent(200), axis.percent(200), axis.percent(180)], abs=0.001
    )


def test_windows_that_overlap_are_on_lanes_of_their_own() -> None:
    """The groups stand below the last lane, and all windows reach down to them."""
    windows = [window("one", 10, 100), window("two", 50, 120), window("three", 130, 140)]
    blocks = [Block(label("sim"), ["g"], [], windows)]
    assert names(blocks) == {"one": 0, "two": 1, "three": 0}
    assert rows(blocks) == [(0, "faults"), (2, "g")]
    assert {bottom for *_, bottom in shades(blocks)} == {3}


def test_a_run_without_windows_has_no_lane() -> None:
    """Only the groups of the run are drawn."""
    blocks = [Block(label("sim"), ["g"], [rebalance(S)], [])]
    assert rows(blocks) == [(0, "g")]
    assert shades(blocks) == []


def test_a_name_that_does_not_fit_is_written_leftwards() -> None:
    """A short window shortly before the end of the axis keeps its name on the page."""
    windows = [window("early", 5, 6), window("a-long-name-at-the-end", 197, 198)]
    blocks = [Block(label("sim"), [], [], windows)]
    axis, _ = placed_blocks(blocks)
    chart = timeline_chart(blocks)
    assert percents(chart, "fault-name") == pytest.approx([axis.percent(5)], abs=0.001)
    assert percents(chart, "fault-name end") == pytest.approx([axis.percent(198)], abs=0.001)


def test_a_log_alone_is_drawn_by_the_calendar() -> None:
    """The ticks of the axis are times of day."""
    block = Block(
        label("log", WALL_US, calendar=True),
        ["g"],
        [rebalance(WALL_US)],
        [window("cut", 30, 50, start_us=WALL_US)],
    )
    ((begin, end, *_),) = shades([block])
    assert (begin, end) == (WALL_US / S + 30, WALL_US / S + 50)
    chart = timeline_chart([block])
    assert "18:28:00" in chart
    assert "time (UTC), 2026-11-21" in chart


def test_names_that_look_like_tags_are_escaped() -> None:
    """Names of tasks and groups that look like tags are shown as they are."""
    chart = timeline_chart([Block(label("sim"), ["<b>"], [], [window("<i>", 1, 2)])])
    assert "&lt;b&gt;" in chart
    assert "&lt;i&gt;" in chart
    assert "<b>" not in chart
    assert "<i>" not in chart


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
