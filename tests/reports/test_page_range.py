"""The range of a report's page: in the page, and in a browser."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.cli.window import WindowOptions, resolved, window_in
from coordinator_sim.errors import ConfigError
from coordinator_sim.trace.schema import RunManifest
from coordinator_sim.trace.window import Window
from coordinator_sim_reports.charts.svg import short
from coordinator_sim_reports.jobs import build_report
from coordinator_sim_reports.page_rows import ReportRows
from coordinator_sim_reports.render import render_page
from coordinator_sim_reports.run_labels import format_date
from tests.command_line import run_here
from tests.reports.browsing import SCREENS, browsing
from tests.reports.report_rows import (
    END_US,
    HOUR_US,
    KEY,
    START_US,
    cost,
    finding,
    group,
    rebalance,
    rows_of,
)

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


def rows_of_hours(**columns: Any) -> ReportRows:  # noqa: ANN401 - any of its fields
    """Rows of two groups with a rebalance in each of three hours, all of them in the page."""
    groups = [
        group(number, 3, rebalancing_ms=6_000.0, stopped_s=6.0, excess_moves=4) for number in (1, 2)
    ]
    drawn = [
        rebalance(of, number, reason)
        for number, reason in ((1, "MEMBER_LEFT"), (2, "MEMBER_JOINED"), (3, "MEMBER_LEFT"))
        for of in groups
    ]
    costs = {"unowned_us": None, "moved": None}
    reasons = [
        {**KEY, "group_id": of["group_id"], "reason": reason, "count": count, "open": 0}
        | {"followups": 0, "p50_ms": median_ms, "max_ms": most_ms}
        for of in groups
        for reason, count, median_ms, most_ms in (
            ("MEMBER_LEFT", 2, 1_500.0, 3_000.0),
            ("MEMBER_JOINED", 1, 2_000.0, 2_000.0),
        )
    ]
    phase = {"count": 6, "p50_ms": 2_000.0, "p90_ms": 3_000.0, "p99_ms": 3_000.0, "max_ms": 3_000.0}
    totals = {**rows_of(2).totals, "rebalances": 6, "logical_rebalances": 6}
    told: dict[str, Any] = {
        "groups": groups,
        "reasons": reasons,
        "reason_counts": {"MEMBER_LEFT": 4, "MEMBER_JOINED": 2},
        "drawn": drawn,
        "listed": drawn,
        "ranged": [{**row, "stopped_us": row["end_us"] - row["seen_us"], **costs} for row in drawn],
        "totals": totals,
        "told_totals": totals,
        "durations": [phase | {"phase": name} for name in ("join", "sync", "total")],
        "findings": [
            finding(1),
            finding(2, kind="flapping-member", last_us=END_US),
        ],
        "costs": [cost("deploy", 1), cost("deploy", 2)],
    }
    return rows_of(2, **(told | columns))


def at(hours: float) -> str:
    """An instant so many hours after the start, as it is typed."""
    return format_date(int(START_US + hours * HOUR_US)).replace(" ", "T")


def test_the_page_holds_its_rebalances_in_columns() -> None:
    """Times as differences, names once, and no column of which nothing is known."""
    page = render_page(rows_of_hours())
    script = page[page.index('id="range-data">') :].partition(">")[2].partition("</script>")[0]
    told = msgspec.json.decode(script)
    assert told["at"] == [START_US // 1000 + 3_600_000, 0, 3_600_000, 0, 3_600_000, 0]
    assert told["group"] == [0, 1] * 3
    assert [told["reasons"][number] for number in told["reason"]][::2] == [
        *("MEMBER_LEFT", "MEMBER_JOINED", "MEMBER_LEFT")
    ]
    assert told["stopped_ms"] == told["total_ms"] == [1_000, 1_000, 2_000, 2_000, 3_000, 3_000]
    assert "moved" not in told


def test_rows_and_rebalances_are_of_the_same_millisecond() -> None:
    """Ends of a range are whole milliseconds: a row is in it when its rebalance is counted."""
    later = [{**row, "seen_us": row["seen_us"] + 999} for row in rows_of_hours().ranged]
    page = render_page(rows_of_hours(drawn=later, listed=later, ranged=later))
    began_ms = (START_US + HOUR_US) // 1000
    assert f'"at":[{began_ms},' in page
    assert f'data-span="{short(began_ms / 1000)}"' in page
    assert f'data-span="{short((began_ms + 1) / 1000)}"' not in page


def test_one_rebalance_has_no_range() -> None:
    """Nothing is to be chosen from."""
    totals = {**rows_of_hours().totals, "rebalances": 1}
    assert 'class="range"' in render_page(rows_of_hours())
    assert 'class="range"' not in render_page(rows_of_hours(totals=totals, told_totals=totals))


@contextmanager
def with_range(chromium: "Browser", folder: Path, rows: ReportRows) -> "Iterator[Page]":
    """A page of these rows, without complaints of the browser."""
    file = folder / "report.html"
    file.write_text(render_page(rows), encoding="utf-8")
    with browsing(chromium, file, SCREENS[0]) as shown:
        yield shown.page
        assert shown.problems == []


def typed(page: "Page", **words: str) -> str:
    """What the page says of a range that was typed."""
    for name, text in words.items():
        page.locator(f"input[name={name}]").fill(text)
        page.locator(f"input[name={name}]").press("Enter")
    return page.locator(".range-bar output").inner_text()


def marks(page: "Page") -> list[str]:
    """The texts that are marked as of the whole trace."""
    told: list[str] = page.evaluate(
        """[...document.querySelectorAll("[data-whole]")].filter((each) =>
          getComputedStyle(each, "::after").content === '"whole trace"'
        ).map((each) => each.textContent)"""
    )
    return told


@pytest.mark.browser
def test_a_range_holds_for_all_of_the_page(chromium: "Browser", tmp_path: Path) -> None:
    """Figures are those of what began in it, lists have nothing else, charts show its time."""
    with with_range(chromium, tmp_path, rows_of_hours()) as page:
        assert marks(page) == []
        told = typed(page, since=at(1.5), until=at(2.5))
        assert told.endswith("UTC: 2 of 6")
        assert page.locator(".boxes b").all_inner_texts() == ["1", "2", "2.0 s", "2.0 s"]
        cells = page.locator("#group-table tbody tr").first.locator("td").all_inner_texts()
        assert cells == ["east", "MEMBER_JOINED 1", "1", "2.0 s", "2.0 s", "3", "≤ 2.00", "4"]
        assert page.locator("#reasons .total").all_text_contents() == ["\xa00", "\xa02"]
        assert page.locator("#g1 dl.facts").inner_text().startswith("rebalances\n1\nlongest\n2.0 s")
        rows = page.locator("table[data-search^=run] tbody tr:not(.out)")
        assert rows.count() == 2
        assert {row.split("\t")[0] for row in rows.all_inner_texts()} == {at(2).replace("T", " ")}
        assert page.locator(".findings li:not(.out) h3").all_inner_texts() == ["flapping member"]
        assert page.locator("tr.cut, li.cut").count() == 1
        assert page.locator("#g1 .axis text").first.text_content() == "20:00:00"
        assert {"excess moves", "lines", "Data quality"} < set(marks(page))


@pytest.mark.browser
def test_a_range_of_everything_has_the_figures_of_the_tables(
    chromium: "Browser", tmp_path: Path
) -> None:
    """The script formats and adds up as the tables do; what it cannot add up keeps its mark."""
    with with_range(chromium, tmp_path, rows_of_hours()) as page:
        before = page.locator("main").inner_text()
        assert typed(page, since="11h").endswith("6 of 6")
        assert "median" in marks(page), "of a reason: 1.5 s, which is not that of the rebalances"
        assert not {"rebalances", "longest", "in rebalances"} & set(marks(page))
        after = page.locator("main").inner_text().replace("11h", "")
        assert [line for line in before.split("\n") if line not in after] == []
        page.get_by_role("button", name="all", exact=True).click()
        assert page.locator("main").inner_text() == before


@pytest.mark.browser
def test_figures_of_rebalances_that_the_page_lacks_are_marked(
    chromium: "Browser", tmp_path: Path
) -> None:
    """Lists and charts follow a range all the same."""
    with with_range(chromium, tmp_path, rows_of_hours(ranged=[])) as page:
        before = page.locator("#group-table").inner_text()
        assert typed(page, since=at(1.5), until=at(2.5)).endswith("UTC")
        assert page.locator("#group-table").inner_text() == before
        assert {"6", "2.0 s", "rebalances", "longest", "Why groups rebalanced"} < set(marks(page))
        assert page.locator("table[data-search^=run] tbody tr:not(.out)").count() == 2


@pytest.mark.browser
def test_a_range_is_in_the_address(chromium: "Browser", tmp_path: Path) -> None:
    """Whoever opens the address sees the range; links within the page keep it."""
    with with_range(chromium, tmp_path, rows_of_hours()) as page:
        told = typed(page, since=at(1.5))
        page.locator("#group-table a[href='#g2']").click()
        page.wait_for_url("**#g2&since=*")
        assert page.locator("#g2 .plot").first.is_visible()
        page.reload()
        assert page.locator(".range-bar output").inner_text() == told
        assert page.locator("#g2").get_attribute("open") is not None
        assert typed(page, until="soon").startswith("until soon: wants")
        page.evaluate("location.hash = 'g1'")
        page.wait_for_url("**#g1&since=*")
        assert page.locator(".range-bar output").inner_text() == told, "the range that is shown"
        page.goto(page.url.partition("#")[0] + "#around=" + at(3) + "%2B-10m")
        assert page.locator(".range-bar output").inner_text().endswith("2 of 6")


@pytest.mark.browser
def test_a_link_shows_a_section_without_rebalances_of_the_range(
    chromium: "Browser", tmp_path: Path
) -> None:
    """A finding that reaches beyond the range leads to it."""
    first, second, *others = rows_of_hours().ranged
    later = {**second, "seen_us": second["seen_us"] + HOUR_US}
    with with_range(chromium, tmp_path, rows_of_hours(ranged=[first, later, *others])) as page:
        typed(page, since=at(0.5), until=at(1.5))
        assert not page.locator("#g2").is_visible()
        page.evaluate("location.hash = 'g2'")
        page.wait_for_url("**#g2&since=*")
        assert page.locator("#g2 .plot").first.is_visible()


@pytest.mark.browser
def test_the_strip_of_a_run_begins_before_its_start(chromium: "Browser", tmp_path: Path) -> None:
    """A range that reaches the left edge is from the start, and stays as long as it was."""
    trace = tmp_path / "trace"
    done = run_here("run", "rolling-bounce", "--out", str(trace))
    assert done.returncode == 0, done.stderr
    build_report([trace], tmp_path)
    with browsing(chromium, tmp_path / "report.html", SCREENS[0]) as shown:
        said, strip = shown.page.locator(".range-bar output"), shown.page.locator(".range .chart")
        for _ in range(2):
            strip.press("ArrowUp")
        ends = []
        for _ in range(6):
            strip.press("ArrowLeft")
            ends.append(said.inner_text())
        assert ends[-1].startswith("Shown are rebalances that began before ")
        assert ends[-1] == ends[-2]
        strip.press("Alt+ArrowRight")
        assert said.inner_text() == ends[-1]
        assert shown.problems == []


@pytest.mark.browser
def test_a_range_is_chosen_by_keys_and_by_dragging(chromium: "Browser", tmp_path: Path) -> None:
    """On the strip of all rebalances; Escape and the button end it."""
    with with_range(chromium, tmp_path, rows_of_hours()) as page:
        said, strip = page.locator(".range-bar output"), page.locator(".range .chart")
        strip.focus()
        strip.press("ArrowUp")
        assert said.inner_text().endswith("2 of 6"), "the middle half: from 2.5 to 7.5 hours"
        strip.press("ArrowUp")
        assert said.inner_text().endswith("0 of 6"), "from 3.75 to 6.25 hours"
        strip.press("ArrowLeft")
        assert said.inner_text().endswith("2 of 6")
        strip.press("Escape")
        assert said.inner_text() == ""
        box = page.locator(".range .plot").bounding_box()
        assert box is not None
        page.mouse.move(box["x"] + 0.15 * box["width"], box["y"] + 10)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 10)
        page.mouse.up()
        assert said.inner_text().endswith("2 of 6")
        page.get_by_role("button", name="last 1h").click()
        assert said.inner_text().endswith("0 of 6")
        page.emulate_media(media="print")
        assert said.is_visible()
        assert not page.locator("input[name=since]").is_visible()


WORDS = [
    *({"since": "22:00"}, {"since": "9:30:15.5"}, {"until": "2h"}, {"last": "1h30m"}),
    *({"since": at(1)[:16], "until": at(2)}, {"since": "2026-11-21"}, {"around": "22:00"}),
    *({"around": "21:40+-10m"}, {"since": "22:00", "until": "20:00"}, {"since": at(1) + "Z"}),
    *({"since": at(1)[:16] + "+01:00"}, {"since": "00:10"}, {"around": "01:40 ± 2h"}),
    *({"since": "22:00+01:00"}, {"since": "22:00-0500"}, {"since": "23:30Z"}),
]
REFUSED = [
    *({"since": "soon"}, {"last": "an hour"}, {"since": at(2), "until": at(1)}),
    *({"since": "2026-02-30"}, {"last": "0s"}, {"since": "22:00+99:00"}),
]


def chosen_by_command(words: dict[str, str]) -> list[float | None] | None:
    """The ends of what the command line's options choose, in seconds; None for words it refuses."""
    try:
        window = resolved(WindowOptions(**words), END_US)
    except ConfigError:
        return None
    ends_us = (window.from_us, window.until_us)
    return [None if abs(at_us) > 1 << 62 else at_us / 1e6 for at_us in ends_us]


@pytest.mark.browser
def test_times_are_read_as_on_the_command_line(chromium: "Browser", tmp_path: Path) -> None:
    """The same words choose the same range, to the millisecond, or are refused."""
    with with_range(chromium, tmp_path, rows_of_hours()) as page:
        told = page.evaluate(
            """([end, all]) => all.map((words) => {
              try { return makeClock(end, true).resolved(words); } catch (error) { return null; }
            })""",
            [END_US / 1e6, WORDS + REFUSED],
        )
    expected = [chosen_by_command(words) for words in WORDS]
    assert None not in expected
    assert [each and [at and round(at, 3) for at in each] for each in told] == [
        *expected,
        *(chosen_by_command(words) for words in REFUSED),
    ]
    assert told[len(WORDS) :] == [None] * len(REFUSED)


@pytest.mark.browser
def test_what_cannot_be_read_changes_nothing(chromium: "Browser", tmp_path: Path) -> None:
    """One line says what is wanted, or how long the trace lasts."""
    with with_range(chromium, tmp_path, rows_of_hours()) as page:
        assert typed(page, since="soon").startswith("since soon: wants an instant as 2026-11-28T22")
        assert page.locator(".boxes b").nth(1).inner_text() == "6"
        page.goto(page.url.partition("#")[0] + "#since=%2")
        assert page.locator(".range-bar output").inner_text().startswith("since %2: wants")
        assert typed(page, since="2030-01-01").startswith("nothing lies there: the trace lasts")
        assert "ranged" not in (page.locator("html").get_attribute("class") or "")
        assert typed(page, since="2020-01-01") == "Shown are all rebalances: 6 of 6"


# -- beside the command ---------------------------------------------------------------------------

RECOMPUTED = ("rebalances", "longest", "in rebalances", "unowned (partition·s)", "stopped (s)")


def figures_of(page: "Page") -> dict[str, str]:
    """The figures of the only group that a page has, and its totals, that a range computes."""
    table = page.locator("#group-table")
    titles = [text.rstrip("\xa0↕") for text in table.locator("thead th").all_text_contents()]
    told = dict(zip(titles, table.locator("tbody tr > *").all_text_contents(), strict=True))
    boxes = page.locator(".box").all_inner_texts()
    phases = page.locator("#phases tbody tr").last.inner_text()
    shown = {name: told[name] for name in (*RECOMPUTED, "reasons", "members", "moved")}
    return shown | {"boxes": "".join(boxes[1:5] + boxes[6:]), "phases": phases}


@pytest.mark.browser
@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_a_range_has_the_figures_of_a_report_of_that_time(
    chromium: "Browser", tmp_path: Path
) -> None:
    """What the page adds up is what the command computes from the trace with the same words."""
    trace = tmp_path / "trace"
    done = run_here(
        *("run", "rolling-bounce", "--varied", "--assignor", "cooperative-sticky"),
        *("--out", str(trace)),
    )
    assert done.returncode == 0, done.stderr
    words = {"since": "00:01:20", "until": "00:02:10"}

    def window_of(info: RunManifest) -> Window:
        return window_in(info, WindowOptions(**words))

    build_report([trace], tmp_path / "whole")
    build_report([trace], tmp_path / "part", window_of=window_of)
    with browsing(chromium, tmp_path / "part" / "report.html", SCREENS[0]) as shown:
        expected = figures_of(shown.page)
    with browsing(chromium, tmp_path / "whole" / "report.html", SCREENS[0]) as shown:
        whole = figures_of(shown.page)
        assert "3 of" in typed(shown.page, **words)
        assert figures_of(shown.page) == expected != whole
