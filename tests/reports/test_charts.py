"""Charts as markup: where things stand, and that nothing of a trace becomes a tag."""

import re
from xml.etree import ElementTree as ET

import pytest

pytest.importorskip("jinja2", reason="needs the spark extra")

from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim_reports.charts.bars import Bar, bar_chart
from coordinator_sim_reports.charts.gantt import gantt_chart
from coordinator_sim_reports.charts.heatmap import density_chart, level_of
from coordinator_sim_reports.charts.lanes import lanes_chart
from coordinator_sim_reports.charts.scale import TimeAxis, round_values
from coordinator_sim_reports.charts.steps import step_chart
from coordinator_sim_reports.charts.svg import RowName, bars_path
from coordinator_sim_reports.charts.timeline import axis_of
from coordinator_sim_reports.run_labels import RunLabel

S = 1_000_000
RUN = RunLabel(
    name="run", origin_us=0, start_us=0, end_us=100 * S, is_simulated=True, path="out/run"
)


def parsed(chart: str) -> ET.Element:
    """A chart as a tree: markup that does not nest fails here."""
    return ET.fromstring(f"<div>{chart}</div>")  # noqa: S314 - our own markup


def widths(chart: str, kind: str) -> list[float]:
    """The widths of the bars of a part, in percent."""
    return [
        float(each.get("width", "").rstrip("%"))
        for each in parsed(chart).iter("rect")
        if each.get("class") == kind and each.get("width", "").endswith("%")
    ]


def test_parts_of_a_bar_are_as_long_as_their_values() -> None:
    """Lengths are in proportion over all rows, and each part tells its own number."""
    rows = [Bar("range", (10, 30)), Bar("<sticky>", (20, 0))]
    chart = bar_chart(rows, label="moves", parts=("orphaned", "avoidable"), title="moved")
    (first, second), (avoidable,) = widths(chart, "p0"), widths(chart, "p1")
    assert avoidable / first == pytest.approx(3, abs=0.01)
    assert second / first == pytest.approx(2, abs=0.01)
    titles = [each.text for each in parsed(chart).iter("title")]
    assert titles == ["range: orphaned, 10", "range: avoidable, 30", "<sticky>: orphaned, 20"]


def test_nothing_but_zeros_is_drawn_without_bars() -> None:
    """There is nothing to divide by."""
    chart = bar_chart([Bar("eager", (0,), text="0")], label="stopped")
    assert widths(chart, "p0") == []


@given(st.floats(-1e9, 1e9), st.floats(1e-3, 1e9), st.booleans())
def test_ticks_lie_on_the_axis_and_are_few(start: float, span: float, is_calendar: bool) -> None:
    """Whatever the span, ticks ascend within the axis and can be told apart."""
    if is_calendar:
        start, span = abs(start), max(span, 60.0)
    ticks = TimeAxis(start, start + span, is_calendar=is_calendar).ticks()
    places = [at for at, _ in ticks]
    assert places == sorted(places)
    assert all(0 <= at <= 100 for at in places)
    assert len(ticks) <= 9


def test_ticks_with_times_of_day_have_their_days_below_them() -> None:
    """One day, or the two that an axis begins and ends on; longer ones have dates at the ticks."""
    noon = 1_795_262_400.0
    hours = {2: "2026-11-21", 20: "2026-11-21 to 2026-11-22"}
    for length, days in hours.items():
        axis = TimeAxis(noon, noon + length * 3_600, is_calendar=True)
        assert axis.title == f"time (UTC), {days}"
    assert TimeAxis(noon, noon + 3 * 86_400, is_calendar=True).title == "time (UTC)"


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.integers(1, 20))
def test_round_values_stay_between_their_ends(low: float, span: float, count: int) -> None:
    """None lies outside by more than rounding, and there are no more than about so many."""
    high = low + span
    values = round_values(low, high, count)
    room = 1e-9 * max(abs(low), abs(high), 1)
    assert all(low - room <= value <= high + room for value in values)
    assert len(values) <= count + 2


def test_an_owner_is_drawn_from_when_to_when() -> None:
    """Each member is one path, whose title is its number and name; a gap stays empty."""
    held = [
        {"member_key": "a", "from_us": 0, "to_us": 50 * S},
        {"member_key": "b", "from_us": 60 * S, "to_us": 100 * S},
    ]
    axis = TimeAxis(0, 100, is_calendar=False)
    chart = gantt_chart([("orders-0", held)], {"a": 1, "b": 2}, RUN, axis, name="g")
    paths = list(parsed(chart).iter("path"))
    assert [each.get("d") for each in paths] == ["M0 1h5000v13h-5000z", "M6000 1h4000v13h-4000z"]
    assert [each.findtext("title") for each in paths] == ["1: a", "2: b"]


def test_lanes_tell_joining_leaving_failing_and_waits() -> None:
    """Signs and words tell what colours show."""
    session = {"first_seen_us": 10 * S, "end_us": 40 * S, "end_kind": "FAILED"}
    wait = {"from_us": 30 * S, "to_us": 40 * S, "kind": "FAILED"}
    open_end = {"first_seen_us": 20 * S, "end_us": None, "end_kind": "OPEN"}
    back = {"from_us": 30 * S, "to_us": 32 * S, "kind": "JOINED"}
    members = [("1: a", [session], [wait]), ("2: b", [open_end], [back])]
    chart = lanes_chart(members, RUN, axis_of([RUN]), name="g")
    titles = [each.text for each in parsed(chart).iter("title")]
    assert titles == [
        "1: a: from 10.000 s, failed at 40.000 s",
        "2: b: from 20.000 s, still there at the end of the trace",
        "1: a: waited for in 1 rebalances, in vain, 10 s",
        "2: b: waited for in 1 rebalances, 2 s",
    ]
    assert "\N{MULTIPLICATION SIGN} failed" in chart
    assert "waited for in vain" in chart


def test_steps_hold_until_the_next_value() -> None:
    """The line goes across before it goes up or down."""
    axis = TimeAxis(0, 100, is_calendar=False)
    chart = step_chart([(10, 0.0), (50, 4.0)], 100, axis, label="spread")
    (path,) = parsed(chart).iter("path")
    assert re.fullmatch(r"M1000 \S+H5000V\S+H10000", path.get("d", ""))


@given(st.integers(1, 5_000), st.data())
def test_levels_of_density_rise_with_the_count(most: int, data: st.DataObject) -> None:
    """More rebalances are never drawn lower, and the most are drawn highest of all."""
    one, other = sorted(data.draw(st.tuples(*[st.integers(1, most)] * 2)))
    assert 0 <= level_of(one, most) <= level_of(other, most) <= 4
    assert level_of(other, most) <= level_of(most, most)


def test_a_slice_stands_where_its_time_is() -> None:
    """Two groups, four slices: the busier slice is a higher bar."""
    rows = [(RowName("<g>"), {0: 1, 3: 5}), (RowName("1,998 others"), {2: 2})]
    chart = density_chart(rows, 4, TimeAxis(0, 100, is_calendar=False))
    drawn = {each.get("class"): each.get("d", "") for each in parsed(chart).iter("path")}
    assert drawn["d0"].startswith("M0 ")
    assert drawn["d4"].startswith("M7500 1h2500v12")
    assert drawn["d1"].startswith("M5000 ")
    assert "<g>" not in chart


def test_a_bar_of_no_length_is_still_seen() -> None:
    """An instant is as wide as the least unit of a path."""
    assert bars_path([(12.34, 0.0, 2, 10)]) == "M1234 2h1v10h-1z"
