"""The pages of a sweep, a rehearsal and the assignor lab, in a browser: as that of a report."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from coordinator_sim.harness.assignor_lab import Size, examine
from coordinator_sim_reports.lab_page import render_lab
from tests.command_line import run_here
from tests.reports.browsing import SCREENS, Shown, browsing, levels_of

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim_reports.objective import FIGURES, answers_of
from coordinator_sim_reports.sweep_page import Scope, render_sweep
from coordinator_sim_reports.tradeoffs import candidates
from coordinator_sim_reports.transforms.choice_costs import COSTS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page

LOG = Path(__file__).resolve().parents[2] / "examples" / "broker-log" / "server.log"
NAMES = ("range", "roundrobin", "sticky", "cooperative-sticky")
MEMBERS = (5, 20, 100)


def run_cost(place: int, seed: int) -> dict[str, Any]:
    """What a run cost: each assignor is best in something, but the fourth."""
    moved, unowned_s, imbalance = ((9, 3, 2), (6, 6, 1), (2, 9, 1), (10, 9, 3))[place]
    return {
        "scenario": "deploy of a <b>bold</b> group with a name that is quite long",
        "choice": NAMES[place],
        "membership": "dynamic",
        "settings": "",
        "processing_ms": None,
        "seed": seed,
        "moved": moved + seed,
        "unowned_s": float(unowned_s + seed),
        "imbalance": imbalance / 2,
        **{figure.column: float(moved + seed) for figure in FIGURES},
    }


def choice_cost(place: int, **columns: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    """Costs of a choice, over all seeds."""
    told: dict[str, Any] = {"question": "assignor", "choice": NAMES[place], "scenarios": 2}
    for number, name in enumerate(COSTS, 2):
        told |= {
            name: number * (place + 1),
            f"{name}_low": number * place,
            f"{name}_high": number * (place + 2),
        }
    worlds = [{"seed": seed} | {name: told[name] + seed for name in COSTS} for seed in range(3)]
    return told | {"max_lag": 10, "worlds": worlds} | columns


def sweep_page() -> str:
    """A sweep of four assignors over two scenarios and three seeds."""
    costs = [run_cost(place, seed) for place in range(4) for seed in range(3)]
    found, answers = candidates(costs), answers_of(costs, 30_000)
    choices = [choice_cost(place) for place in range(4)]
    by_scenario = [choice_cost(place, scenario=name) for name in "ab" for place in range(4)]
    scope = Scope(runs=24, seeds=3, left_out={"cooperative-upgrade": "it changes assignors"})
    return render_sweep(
        scope, choices=choices, by_scenario=by_scenario, candidates=found, answers=answers
    )


def lab_page() -> str:
    """The lab of Kafka's assignors at three sizes, with a clock of its own."""
    ticks = iter(range(1, 1_000_000))
    sizes = [Size(members=n, topics=4, partitions=8 * n, racks=3) for n in MEMBERS]
    return render_lab(
        [examine(name, size, lambda: next(ticks) / 1000) for name in NAMES for size in sizes]
    )


def rehearsal_page(folder: Path) -> Path:
    """The rehearsal of the example's two classic groups."""
    assert run_here("ingest", LOG, "--out", folder / "trace").returncode == 0
    words = ("--partitions", "orders=8", "--seeds", "2", "--out", folder)
    done = run_here("rehearse", folder / "trace", *words)
    assert done.returncode == 0, done.stderr
    return folder / "rehearsal.html"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """All pages, on disk."""
    folder = tmp_path_factory.mktemp("pages")
    found = {"sweep": folder / "sweep.html", "lab": folder / "lab.html"}
    found["rehearsal"] = rehearsal_page(folder)
    for name, text in (("sweep", sweep_page()), ("lab", lab_page())):
        found[name].write_text(text, encoding="utf-8")
    return found


@pytest.fixture(
    scope="module",
    params=[(name, screen) for name in ("sweep", "lab", "rehearsal") for screen in SCREENS],
    ids=lambda each: f"{each[0]}-{each[1].name}",
)
def shown(
    request: pytest.FixtureRequest, chromium: "Browser", files: dict[str, Path]
) -> Iterator[Shown]:
    """One of the pages in Chromium, of a width and a colour scheme."""
    name, screen = request.param
    with browsing(chromium, files[name], screen) as shown:
        yield shown


@pytest.fixture(scope="module", params=SCREENS, ids=[each.name for each in SCREENS])
def sweep(
    request: pytest.FixtureRequest, chromium: "Browser", files: dict[str, Path]
) -> Iterator[Shown]:
    """The page of the sweep."""
    with browsing(chromium, files["sweep"], request.param) as shown:
        yield shown


@pytest.fixture(scope="module")
def lab(chromium: "Browser", files: dict[str, Path]) -> Iterator[Shown]:
    """The page of the lab."""
    with browsing(chromium, files["lab"], SCREENS[0]) as shown:
        yield shown


def opened(page: "Page") -> None:
    """Open everything that is folded."""
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


def names_in(table: "Locator") -> list[str]:
    """The rows of a table that are shown, from top to bottom."""
    return [text.strip() for text in table.locator("tbody tr:visible th").all_inner_texts()]


@pytest.mark.browser
def test_charts_are_drawn_and_nothing_is_asked_for(shown: Shown) -> None:
    """Every chart has an extent and marks, no error is told, and only the file itself is read."""
    charts = shown.page.locator("main svg[role=img]:visible, main .plot:visible")
    boxes = [chart.bounding_box() or {} for chart in charts.all()]
    assert boxes
    assert all(box["width"] > 60 and box["height"] > 10 for box in boxes)
    assert shown.page.locator("main svg circle, main svg rect, main svg path").count() > 3
    assert shown.problems == []
    files = {url for url in shown.requests if not url.startswith("data:")}
    assert files == {shown.page.url}


@pytest.mark.browser
def test_the_page_is_never_wider_than_the_window(shown: Shown) -> None:
    """Wide tables scroll within themselves, with everything open."""
    opened(shown.page)
    assert shown.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


@pytest.mark.browser
def test_numbers_behind_bars_are_whole(shown: Shown) -> None:
    """The longest bar leaves room for the longest number."""
    ends = shown.page.evaluate(
        """Array.from(document.querySelectorAll("main .plot .total")).map((text) =>
            text.getBoundingClientRect().right
              - text.closest("svg").getBoundingClientRect().right)"""
    )
    assert all(end < 1 for end in ends)


@pytest.mark.browser
def test_a_dark_scheme_is_followed(shown: Shown) -> None:
    """Ink and paper trade places where the reader's system is dark."""
    is_dark = shown.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    paper, ink = levels_of(shown.page)
    assert (paper < ink) == is_dark


@pytest.mark.browser
def test_every_table_has_a_caption_and_named_columns(shown: Shown) -> None:
    """Readers who do not see the page hear what a table is, and which row they are in."""
    tables = shown.page.locator("main table")
    assert tables.count() >= 2
    for table in tables.all():
        assert table.locator("caption").count() == 1
        assert table.locator("thead th:not([scope=col])").count() == 0
        assert table.locator("tbody tr:not(:has(th))").count() == 0


@pytest.mark.browser
def test_candidates_are_sorted_and_filtered(sweep: Shown) -> None:
    """By what they move; those on the front alone; those whose name is typed."""
    page = sweep.page
    page.reload()
    table, tools = page.locator("table.candidates"), page.locator(".tools").first
    assert len(names_in(table)) == 4
    heading = table.get_by_role("columnheader", name="partitions moved")
    heading.get_by_role("button").click()
    assert [name.split()[0] for name in names_in(table)][:2] == ["cooperative-sticky", "range"]
    heading.get_by_role("button").click()
    assert (names_in(table)[0].split()[0], heading.get_attribute("aria-sort")) == (
        "sticky",
        "ascending",
    )
    tools.get_by_label("front").select_option("front")
    assert "3 of 4" in tools.inner_text()
    assert "cooperative-sticky" not in " ".join(names_in(table))
    tools.get_by_label("front").select_option("beaten")
    assert [name.split()[0] for name in names_in(table)] == ["cooperative-sticky"]
    tools.get_by_label("front").select_option("")
    tools.get_by_role("searchbox").fill("roundrobin")
    assert [name.split()[0] for name in names_in(table)] == ["roundrobin"]


@pytest.mark.browser
def test_assignors_are_sorted(lab: Shown) -> None:
    """By what they move in a deploy: those that stick to what was have least."""
    table = lab.page.locator("table.sizes").last
    heading = table.get_by_role("columnheader", name="deploy: moved")
    heading.get_by_role("button").click()
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    cells = table.locator("tbody tr td:nth-child(8)").all_inner_texts()
    counts = [int(text.replace(",", "")) for text in cells]
    assert counts == sorted(counts)
    assert len(set(counts)) > 1
    assert len(names_in(table)) == len(NAMES)


@pytest.mark.browser
def test_a_curve_for_each_assignor_is_named(lab: Shown) -> None:
    """Four lines, each with its name beside its end."""
    chart = lab.page.locator("svg.curves")
    assert chart.locator("path.line").count() == len(NAMES)
    texts = chart.locator("text").all_text_contents()
    assert set(NAMES) <= set(texts)
