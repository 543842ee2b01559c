"""The page of a report: what it says of groups and findings, and how it behaves in a browser."""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim.replay.findings import DEPARTURES, MEMBER_SECONDS
from coordinator_sim_reports.comparison import answers_of
from coordinator_sim_reports.page_options import PageLimits, PageOptions
from coordinator_sim_reports.render import render_page
from coordinator_sim_reports.transforms.summary import SPREAD
from coordinator_sim_reports.workers.group_tables import schema_of
from tests.reports.browsing import SCREENS, Shown, browsing, levels_of
from tests.reports.report_rows import KEY, RUN, cost, finding, rows_of, storm

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


def text_of(page: str) -> str:
    """The page as words."""
    return " ".join(re.sub(r"<script.*?</script>|<[^>]*>", " ", page, flags=re.DOTALL).split())


# -- what it says ---------------------------------------------------------------------------------


def test_findings_come_first_and_say_what_to_change() -> None:
    """A saving says how it is known; where it is not computed, the command that does it stands."""
    findings = [
        finding(1),
        finding(
            2,
            kind="flapping-member",
            saves_s=None,
            saving=None,
            setting=None,
            assumes=[],
            source_refs=[],
        ),
        finding(3, kind="eager-stops-everything", saves_s=None, saving=None, setting="a.b=c d"),
    ]
    page = render_page(rows_of(2, findings=findings))
    assert page.index('id="findings"') < page.index('id="headline"') < page.index('id="groups"')
    titles = re.findall(r'<li id="f\d"[^>]*><h3[^>]*>(.*?)</h3>', page)
    assert titles == ["dead members waited for", "flapping member", "eager stops everything"]
    text = text_of(page)
    assert "replayed with group.instance.id=stable replayed more: coordinator-sim replay" in text
    assert "not computed: no replay can try the change" in text
    assert page.count("<dt>assumes</dt><dd>a process keeps its group.instance.id</dd>") == 2
    group = "--group &#39;group-01 &lt;app&gt;&#39;"
    command = f"coordinator-sim replay traces/east {group} --set &#39;a.b=c d&#39;"
    assert f"<code>{command}</code> computes it" in page
    assert '<code title="/var/log/server.log:1200">server.log:1200</code>' in page
    assert 'href="#g1">group-01 &lt;app&gt;</a>' in page
    assert page.count("<dt>when</dt><dd>") == 3


def test_a_part_of_the_time_is_named_above_everything() -> None:
    """Nothing on the page can be taken for the whole trace, and commands take the same part."""
    options = PageOptions(shown=("02:00 UTC to 03:00 UTC",), words=("--last", "1h"))
    rows = rows_of(2, findings=[finding(1, saves_s=None, saving=None)])
    page = render_page(replace(rows, options=options))
    assert 0 < page.index("began from 02:00 UTC to 03:00 UTC, and what") < page.index("<nav")
    assert "--last 1h --set group.instance.id=stable</code> computes it" in page
    assert "Shown are rebalances that began" not in text_of(render_page(rows))


def compared(assignor: str, moved: tuple[int, ...]) -> dict[str, Any]:
    """A row of the comparison: what an assignor moved in each drawn world, and nothing else."""
    worlds = [
        {"seed": seed} | dict.fromkeys(SPREAD, 0) | {"moved": each}
        for seed, each in enumerate(moved)
    ]
    spreads = {
        f"{name}_{part}": of([world[name] for world in worlds])
        for name in SPREAD
        for part, of in (("median", median), ("low", min), ("high", max))
    }
    qualities = ("timing_quality", "assignment_quality", "ownership_quality", "stopped_quality")
    return {
        **dict.fromkeys(SPREAD, 0),
        **spreads,
        **dict.fromkeys(qualities, "exact"),
        **dict.fromkeys(("stickiness", "spread", "cv", "availability"), 1.0),
        "protocol_type": "consumer",
        "scenario": "deploy",
        "assignor": assignor,
        "runs": len(moved),
        "moved": fmean(moved),
        "worlds": worlds,
    }


def test_a_page_that_compares_begins_with_the_winner_and_ends_with_findings() -> None:
    """Findings stand apart for each run: what one assignor cost is no fault of another's."""
    runs = [RUN, {**RUN, "trace_id": "u" * 32, "path": "traces/west", "cluster_id": "west"}]
    findings = [
        finding(1, cost_s=30.0),
        finding(2, trace_id=runs[1]["trace_id"], cost_s=99.0),
        finding(3, cost_s=20.0, cost_unit=MEMBER_SECONDS),
    ]
    comparison = [compared("range", (9, 30, 12)), compared("sticky", (3, 4, 11))]
    rows = rows_of(2, findings=findings, comparison=comparison, told=runs, runs=runs)
    page = render_page(rows)
    (answer,) = answers_of(comparison)
    assert answer.startswith("deploy: sticky moved 4 partitions (range 12)")
    assert "12 (9-30)" in page, "the table has the medians of the sentence"
    order = [
        page.index(mark)
        for mark in (answer, 'id="churn"', "12 (9-30)", 'id="groups"', 'id="findings"')
    ]
    assert order == sorted(order)
    costs = re.findall(r"<dt>cost</dt><dd>.*?(\d+\.0) ", page)
    assert costs == ["20.0", "30.0", "99.0"], "of each run; time that stood still first"

    chart = page[page.index("<h4>Moves</h4>") : page.index("<h4>Interruptions</h4>")]
    assert ">12</text>" in chart, "a bar is the median, too"


def test_from_the_sixth_finding_on_they_are_folded() -> None:
    """The page begins with the costliest five; the others are numbered on."""
    page = render_page(rows_of(2, findings=[finding(number) for number in range(1, 8)]))
    shown, _, folded = page.partition("2 more findings</summary>")
    assert re.findall(r'<li id="f(\d)"', shown) == ["1", "2", "3", "4", "5"]
    assert re.findall(r'<li id="f(\d)"', folded) == ["6", "7"]


def test_a_count_of_one_is_singular() -> None:
    """A cost that is a count is a whole number, and one of them is not several."""
    costs = [finding(1, cost_unit=DEPARTURES, cost_s=1.0, rebalances=1, source_refs=[])]
    costs += [finding(2, cost_unit=DEPARTURES, cost_s=2.0, source_refs=[])]
    text = text_of(render_page(rows_of(2, findings=costs)))
    assert "cost 1 departure in 1 rebalance change" in text
    assert "cost 2 departures in 12 rebalances" in text


def test_without_findings_there_is_no_section_of_them() -> None:
    """Neither a heading nor a link that leads nowhere."""
    page = render_page(rows_of(2))
    assert "Findings" not in text_of(page)
    anchors = set(re.findall(r'href="#([^"]+)"', page))
    assert anchors <= set(re.findall(r'id="([^"]+)"', page))


def test_columns_that_nobody_knows_are_left_out_and_named() -> None:
    """A broker log tells no assignments: the table of groups says so once, not in each row."""
    page = render_page(rows_of(2))
    table = page[page.index('id="group-table"') :].partition("</table>")[0]
    assert "n/a" not in text_of(table)
    assert "no group of these traces tells them: unowned (partition·s), interruptions" in table
    assert "≤ 6.00" in table


COSTS = [*(cost("day", number) for number in (1, 2, 3)), cost("deploy", 1), cost("deploy", 2)]


def test_costs_that_no_trace_tells_are_folded_and_named() -> None:
    """Of a broker's log: lengths, and the bound of the standstill that follows from them."""
    page = render_page(rows_of(2, costs=COSTS, storms=[storm(1)]))
    section = page[page.index('<h2 id="costs">') : page.index('<h2 id="groups">')]
    assert section.count("<details") == section.count('<details class="group">') == 3
    text = text_of(section)
    assert "n/a" not in text
    assert "≤ 60.0 ≤ 20.0" in text
    assert "The 3 costliest of 40" in text
    assert "do not tell them: unowned (partition·s), moved, owner stayed, needless" in text
    assert "#7, poll timeout by app &lt;2&gt;" in text
    assert '<a href="#g1">group-01 &lt;app&gt;</a>' in section


def test_costs_that_are_told_are_shown() -> None:
    """The tables are open, and exact figures have no mark."""
    told = {"unowned_s": 12.5, "moved": 8, "voluntary": 4, "needless": 0, "assigned": 5}
    page = render_page(rows_of(2, costs=[cost("deploy", 1, **told)]))
    section = page[page.index('<h2 id="costs">') : page.index('<h2 id="groups">')]
    assert '<details class="group" open>' in section
    cells = re.findall(r'<td class="n"[^>]*>(.*?)</td>', section)
    assert cells == ["5", "10.0", "30.0", "10.0", "12.5", "8", "4", "0"]


def test_without_rebalances_there_is_no_section_of_costs() -> None:
    """Neither a heading nor a link."""
    assert "Costs" not in text_of(render_page(rows_of(2)))


def test_records_of_share_groups_have_a_section_where_they_are_told() -> None:
    """A row for each group and topic, which leads to the group's section; none without rows."""
    told = dict.fromkeys(schema_of("share_records").names, 0) | KEY | {"group_id": "group-01 <app>"}
    row = told | {"topic": "orders", "used_up": 12, "held_us": 1_804_500, "lost_locks": 7}
    page = render_page(rows_of(2, share_records=[row]))
    section = page[page.index('<h2 id="share-records"') : page.index('<h2 id="groups">')]
    cells = re.findall(r'<td class="n"[^>]*>(.*?)</td>', section)

    assert cells == ["0", "0", "0", "0", "12", "1.80", "7", "0", "0", "0", "0"]
    assert '<a href="#g1">group-01 &lt;app&gt;</a>' in section
    assert "share groups" not in text_of(render_page(rows_of(2)))


def test_every_table_has_a_caption_and_names_its_columns() -> None:
    """Readers who do not see the page hear what a table is and which column they are in."""
    page = render_page(rows_of(2, findings=[finding(1)], costs=COSTS, storms=[storm(1)]))
    tables = re.findall(r"<table.*?</table>", page, flags=re.DOTALL)
    assert len(tables) >= 6
    for table in tables:
        assert "<caption>" in table
        head = table.partition("<thead>")[2].partition("</thead>")[0]
        assert head.count("<th ") == head.count('scope="col"') > 0


def test_above_forty_groups_density_is_drawn() -> None:
    """All groups are on the map: those beyond the limit in one row."""
    limits = PageLimits(mapped_groups=45)
    page = render_page(rows_of(50, options=PageOptions(limits=limits)))
    assert "Where rebalances are dense" in page
    assert "5 others" in page
    assert "Where rebalances are dense" not in render_page(rows_of(40))


def test_the_number_of_a_reason_leads_to_its_lines() -> None:
    """From the table of groups to the files and line numbers behind it."""
    page = render_page(rows_of(2))
    assert 'MEMBER_LEFT <a href="#g1-MEMBER_LEFT">4</a>' in page
    row = page[page.index('<tr id="g1-MEMBER_LEFT">') :].partition("</tr>")[0]
    assert re.findall(r"<code [^>]*>(.*?)</code>", row) == ["server.log:300", "server.log:100"]


# -- in a browser ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a log with fifty groups."""
    file = tmp_path_factory.mktemp("page") / "report.html"
    findings = [finding(1), finding(2, saves_s=None, saving=None)]
    rows = rows_of(50, findings=findings, costs=COSTS, storms=[storm(1), storm(2)])
    file.write_text(render_page(rows), encoding="utf-8")
    return file


@pytest.fixture(scope="module", params=SCREENS, ids=[each.name for each in SCREENS])
def shown(
    request: pytest.FixtureRequest, chromium: "Browser", report_file: Path
) -> Iterator[Shown]:
    """The page in Chromium, of a width and a colour scheme."""
    with browsing(chromium, report_file, request.param) as shown:
        yield shown


@pytest.fixture
def page(shown: Shown) -> "Page":
    """The page as it is when it is opened."""
    shown.page.reload()
    return shown.page


def names_in(table: "Locator") -> list[str]:
    """The groups that a table shows, from top to bottom."""
    return [text[:8] for text in table.locator("tbody tr:visible th").all_inner_texts()]


@pytest.mark.browser
def test_charts_are_drawn_and_nothing_is_asked_for(shown: Shown, report_file: Path) -> None:
    """Every chart has an extent, no error is told, and only the file itself is read."""
    page = shown.page
    page.locator("#g1 > summary").click()
    plots = page.locator(".plot:visible")
    boxes = [plot.bounding_box() or {} for plot in plots.all()]
    assert len(boxes) >= 5
    assert all(box["width"] > 100 and box["height"] > 30 for box in boxes)
    bars = page.locator("#g1 rect.mark.stable").all()
    assert [(bar.bounding_box() or {})["height"] > 10 for bar in bars] == [True] * 3
    assert shown.problems == []
    files = [url for url in shown.requests if not url.startswith("data:")]
    assert set(files) == {report_file.as_uri()}


@pytest.mark.browser
def test_the_page_is_never_wider_than_the_window(page: "Page") -> None:
    """Wide tables scroll within themselves, with every section open."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.browser
def test_a_heading_sorts_its_table(page: "Page") -> None:
    """Numbers by their value, the highest first; again, the lowest; the state is announced."""
    table = page.locator("#group-table")
    heading = table.get_by_role("columnheader", name="rebalances").first
    assert names_in(table)[:2] == ["group-01", "group-02"]
    heading.get_by_role("button").click()
    assert (names_in(table)[0], heading.get_attribute("aria-sort")) == ("group-01", "descending")
    heading.get_by_role("button").press("Enter")
    assert (names_in(table)[0], heading.get_attribute("aria-sort")) == ("group-50", "ascending")
    assert len(names_in(table)) == 50


@pytest.mark.browser
def test_search_and_filter_leave_what_fits(page: "Page") -> None:
    """What is typed narrows the table, and the number of rows left is told."""
    table = page.locator("#group-table")
    tools = page.locator(".tools:not(.range-bar)").first
    tools.get_by_role("searchbox").fill("group-1")
    assert names_in(table) == [f"group-1{digit}" for digit in range(10)]
    assert "10 of 50" in tools.inner_text()
    tools.get_by_role("searchbox").fill("no such group")
    assert names_in(table) == []
    tools.get_by_role("searchbox").fill("")
    tools.get_by_label("reason").select_option("MEMBER_JOINED")
    assert "50 of 50" in tools.inner_text()


@pytest.mark.browser
def test_a_link_opens_the_section_that_it_leads_to(page: "Page") -> None:
    """The name of a group, and the number of a reason."""
    assert not page.locator("#g2 .plot").first.is_visible()
    page.locator("#group-table a[href='#g2-MEMBER_LEFT']").click()
    page.locator("#g2 .plot").first.wait_for()
    assert page.locator("#g2-MEMBER_LEFT").is_visible()


@pytest.mark.browser
def test_zooming_widens_all_charts_of_a_group_alike(page: "Page") -> None:
    """Twice as large: the bars move apart, the axis has other ticks, and all of it comes back."""
    page.locator("#g1 > summary").click()
    bars = page.locator("#g1 rect.mark.stable")
    ticks = page.locator("#g1 .axis").first

    def gap() -> float:
        first, second = ((bars.nth(n).bounding_box() or {})["x"] for n in (0, 1))
        return float(second - first)

    before, told = gap(), ticks.inner_html()
    page.locator("#g1").get_by_role("button", name="zoom in").press("Enter")
    assert gap() == pytest.approx(2 * before, rel=0.05)
    assert ticks.inner_html() != told
    places = page.locator("#g1 .moved").evaluate_all("all => all.map(e => e.getAttribute('width'))")
    assert places == ["200%"] * 2
    page.locator("#g1").get_by_role("button", name="the whole time").click()
    assert gap() == pytest.approx(before, rel=0.01)


@pytest.mark.browser
def test_a_dark_scheme_is_followed(page: "Page") -> None:
    """Ink and paper trade places where the reader's system is dark."""
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    paper, ink = levels_of(page)
    assert (paper < ink) == is_dark
