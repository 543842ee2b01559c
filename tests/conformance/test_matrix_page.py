"""The matrix: its columns and size, and the page in a browser as its reader uses it."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.cli.main import app
from coordinator_sim_conformance.frames import Frame
from coordinator_sim_conformance.requirements import Level
from coordinator_sim_conformance.running import Ending, Verdict
from coordinator_sim_conformance.verdicts.matrix import Row, columns_of, matrix_page
from coordinator_sim_conformance.verdicts.results import RunResult, TargetFacts, encoded
from tests.reports.browsing import SCREENS, Shown, browsing, levels_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = '</script><b onclick="alert(1)">& ]]>'
"""Text that a target may well answer, and that must stay text."""


def ending(case_id: str, verdict: Verdict = Verdict.PASSED, **fields: Any) -> Ending:  # noqa: ANN401 - any field
    """How a case ended, with a transcript of its own."""
    told: dict[str, Any] = {
        "case_id": case_id,
        "area": case_id.partition("-")[0],
        "profile": "4.4",
        "verdict": verdict,
        "title": f"the title of {case_id}",
        "level": Level.MUST,
        "sources": ("Kafka.method", f"Kafka.{case_id}"),
        "transcript": ("stable A", f"heartbeat A | A {case_id}"),
        "again": f"conformance run --target x --case {case_id}",
    }
    return Ending(**told | fields)


def result_of(name: str, *endings: Ending) -> RunResult:
    """A run on a target of that name."""
    facts = TargetFacts(name=name, version="1.0", facts={"offers": "exact time"})
    return RunResult(
        target=facts, suite_version="0.1.0", at="2026-11-23T11:30:00Z", endings=endings
    )


BROKEN = ending(
    "HB-002",
    Verdict.FAILED,
    expectation="heartbeat A | A NONE",
    came=HOSTILE,
    reason="wanted: A NONE",
    frames=(Frame(direction="received", api="Heartbeat", version=4, at_ms=7, hex="00ff"),),
)
RESULTS = (
    result_of(
        "ours",
        *map(ending, ("JOIN-001", "HB-001", "HB-002", "HB-003")),
        ending("HB-004", is_quirk=True),
    ),
    result_of(
        "<theirs>",
        ending("HB-001"),
        BROKEN,
        ending("HB-003", Verdict.SKIPPED, reason="theirs does not offer exact time"),
        ending("HB-004", Verdict.FAILED, is_quirk=True, reason="odd"),
        ending("OWN-001", Verdict.UNKNOWN, level=Level.MODEL, reason="KeyError: 'x'"),
        ending("OWN-002", Verdict.CRASHED, reason="the broker process ended with SIGABRT"),
        ending("OWN-003", Verdict.HUNG, reason="the broker process hangs", known_gap="their #1"),
    ),
)


KNOWN = [
    Row(
        case_id=case_id,
        area=case_id.partition("-")[0],
        title=f"the title of {case_id}",
        level=Level.MUST,
        is_quirk=False,
        sources=(source,),
    )
    for case_id, source in (
        ("HB-001", "Kafka.method"),
        ("HB-002", "Kafka.HB-002"),
        ("JOIN-001", "Kafka.method"),
    )
]
"""Cases that the suite knows, in its order."""


def page_of(*results: RunResult) -> str:
    """The page of these results, rows in the order of ids as they come."""
    columns = columns_of([(f"file-{number}", each) for number, each in enumerate(results)])
    return matrix_page(columns, KNOWN, "A & B")


def test_columns_are_runs_and_profiles_of_one_subject() -> None:
    """A profile is a column; clients have a matrix of their own; doubles are told apart."""
    run = result_of(
        "ours", ending("A-1"), ending("A-1", profile="3.9"), ending("C-1", profile="clients")
    )
    assert [each.name for each in columns_of([("a", run)])] == [
        "ours 1.0 as 4.4",
        "ours 1.0 as 3.9",
    ]
    assert [each.name for each in columns_of([("a", run)], "clients")] == ["ours 1.0"]
    twice = columns_of([("before", RESULTS[0]), ("after", replace(RESULTS[0], at=""))])
    assert [each.name for each in twice] == ["ours 1.0 as 4.4 (before)", "ours 1.0 as 4.4 (after)"]
    with pytest.raises(ConfigError, match="no result has cases about trogdor"):
        columns_of([("a", run)], "trogdor")


def test_command_writes_the_page_of_files(tmp_path: Path) -> None:
    """Vendors add a column with a file of theirs; the same files give the same bytes."""
    files = []
    for result in RESULTS:
        files.append(str(tmp_path / f"{len(files)}.json"))
        Path(files[-1]).write_bytes(encoded(result))
    pages = [tmp_path / "one.html", tmp_path / "two.html"]
    for page in pages:
        done = CliRunner().invoke(app, ["matrix", *files, "--output", str(page)])
        assert done.exit_code == 0, done.output
        assert f"{page}: cases: 8, implementations: 2" in done.stdout
    assert pages[0].read_bytes() == pages[1].read_bytes()
    with pytest.raises(ConfigError, match="--about brokers: use one of coordinators"):
        CliRunner().invoke(app, ["matrix", *files, "--about", "brokers"], catch_exceptions=False)


def test_cases_that_the_suite_knows_are_told_in_its_words() -> None:
    """A file from before the requirement became a sentence does not bring its old title back."""
    old = result_of("old", ending("HB-002", title="hb two"), ending("OWN-001", title="their own"))
    page = page_of(old)
    assert "the title of HB-002" in page
    assert "hb two" not in page
    assert "their own" in page


def test_ten_implementations_of_four_hundred_cases_stay_below_a_megabyte() -> None:
    """Each with ids and times of its own in its transcripts, and frames of what failed."""
    dice = random.Random(7)  # noqa: S311 - bytes that no compression knows, not secrets

    def played(number: int) -> Ending:
        lines = (f"heartbeat A | A at={dice.randrange(10**6)} error=NONE gen=2" for _ in range(12))
        frame = Frame(
            direction="sent", api="JoinGroup", version=9, at_ms=1, hex=dice.randbytes(120).hex()
        )
        has_failed = number % 20 == 0
        return ending(
            f"AREA{number // 20}-{number:03}",
            Verdict.FAILED if has_failed else Verdict.PASSED,
            transcript=tuple(lines),
            frames=(frame,) * 3,
        )

    results = [result_of(f"broker-{each}", *map(played, range(400))) for each in range(10)]
    assert len(page_of(*results).encode()) < 1_000_000


@pytest.fixture(scope="module", params=SCREENS, ids=[each.name for each in SCREENS])
def shown(
    request: pytest.FixtureRequest, chromium: "Browser", tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shown]:
    """The matrix of a run of ours and one of somebody else's."""
    file = tmp_path_factory.mktemp("matrix") / "matrix.html"
    file.write_text(page_of(*RESULTS), encoding="utf-8")
    with browsing(chromium, file, request.param) as shown:
        yield shown


def ids_in(shown: Shown) -> list[str]:
    """The cases that are shown, from top to bottom."""
    return shown.page.locator("tr[data-row]:visible th code").all_inner_texts()


@pytest.mark.browser
def test_cells_say_how_each_case_ended_in_words(shown: Shown) -> None:
    """No colour is needed to read a verdict; heads count; areas are groups of rows."""
    page = shown.page
    page.reload()
    cells = {
        row.get_attribute("data-id"): row.locator("td").all_inner_texts()
        for row in page.locator("tr[data-row]").all()
    }
    assert cells == {
        "HB-001": ["✓ pass", "✓ pass"],
        "HB-002": ["✓ pass", "✗ FAIL"],
        "HB-003": ["✓ pass", "○ skip"],
        "HB-004": ["✓ pass", "~ quirk"],
        "JOIN-001": ["✓ pass", ""],
        "OWN-001": ["", "? unknown"],
        "OWN-002": ["", "✗ CRASHED"],
        "OWN-003": ["", "≈ known hang"],
    }
    heads = page.locator("thead th[scope=col]").all_inner_texts()
    assert "5 of 5 passed" in heads[1]
    assert "100 %" in heads[1]
    assert "<theirs> 1.0 as 4.4" in heads[2]
    assert "1 of 6 passed" in heads[2]
    assert page.locator("tbody th[scope=rowgroup]").all_inner_texts() == ["HB", "JOIN", "OWN"]
    assert page.locator("tr[data-row]:not(:has(th[scope=row]))").count() == 0
    assert page.locator("table caption").count() == 1
    assert shown.problems == []
    assert {url for url in shown.requests if not url.startswith("data:")} == {page.url}


@pytest.mark.browser
def test_rows_are_filtered_by_text_verdict_and_level(shown: Shown) -> None:
    """What does not pass somewhere, what is not the same everywhere, and what is typed."""
    page = shown.page
    page.reload()
    text, verdict = page.get_by_label("Text"), page.get_by_label("Verdict")
    verdict.select_option("!")
    assert ids_in(shown) == ["HB-002", "HB-004", "OWN-001", "OWN-002", "OWN-003"]
    assert "5 of 8" in page.locator("#shown").inner_text()
    assert page.locator("tbody:visible").count() == 2
    verdict.select_option("~")
    assert ids_in(shown) == ["HB-002", "HB-004"]
    verdict.select_option(label="skipped")
    assert ids_in(shown) == ["HB-003"]
    verdict.select_option("")
    page.get_by_label("Level").select_option("quirk")
    assert ids_in(shown) == ["HB-004"]
    page.get_by_label("Level").select_option("")
    text.fill("join title")
    assert ids_in(shown) == ["JOIN-001"]
    text.fill("")
    assert len(ids_in(shown)) == 8


@pytest.mark.browser
def test_cell_opens_the_evidence_in_place(shown: Shown) -> None:
    """Expectation, what came, transcript, frames, sources and the command; text stays text."""
    page = shown.page
    page.reload()
    page.locator("tr[data-id=HB-002] button.f").click()
    proof = page.locator("tr[data-id=HB-002] + tr.evidence")
    proof.wait_for()
    told = proof.inner_text()
    for wanted in (
        "HB-002 on <theirs> 1.0 as 4.4: failed",
        "heartbeat A | A NONE",
        HOSTILE,
        "heartbeat A | A HB-002",
        "7 ms received Heartbeat 4 00ff",
        "Kafka.HB-002",
        "conformance run --target x --case HB-002",
    ):
        assert wanted in told
    assert proof.locator("b").count() == 0
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    page.locator("tr[data-id=HB-003] button.s").click()
    page.get_by_text("theirs does not offer exact time").wait_for()
    assert page.locator("tr.evidence").count() == 1
    assert shown.problems == []


@pytest.mark.browser
def test_keyboard_walks_the_cells_and_opens_them(shown: Shown) -> None:
    """One stop of the tab key; arrows move past empty cells; Escape closes and stays there."""
    page = shown.page
    page.reload()
    assert page.locator('td button[tabindex="0"]').count() == 1
    page.locator('td button[tabindex="0"]').focus()

    def focused() -> str:
        told: str = page.evaluate(
            "document.activeElement.closest('tr').dataset.id + document.activeElement.className"
        )
        return told

    for key, wanted in (
        ("ArrowRight", "HB-001p"),
        ("ArrowDown", "HB-002f"),
        ("ArrowDown", "HB-003s"),
        ("ArrowDown", "HB-004q"),
        ("ArrowDown", "OWN-001u"),
        ("ArrowLeft", "OWN-001u"),
    ):
        page.keyboard.press(key)
        assert focused() == wanted
    page.keyboard.press("Enter")
    page.locator("tr.evidence").wait_for()
    assert page.locator("button.u").get_attribute("aria-expanded") == "true"
    page.keyboard.press("Escape")
    assert page.locator("tr.evidence").count() == 0
    assert focused() == "OWN-001u"


@pytest.mark.browser
def test_dark_scheme_is_followed(shown: Shown) -> None:
    """Ink and paper trade places where the reader's system is dark."""
    is_dark = shown.page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    paper, ink = levels_of(shown.page)
    assert (paper < ink) == is_dark


def test_page_is_complete_without_a_script() -> None:
    """The table itself is in the file, so that a search in it finds every case."""
    page = page_of(*RESULTS)
    assert HOSTILE not in page
    assert page.count("<tr data-row=") == 8
