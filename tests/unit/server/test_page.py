"""The live page in a real browser."""

import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

sync_api = pytest.importorskip("playwright.sync_api")
clients = pytest.importorskip("confluent_kafka")


@pytest.fixture
def server() -> Iterator[dict[str, Any]]:
    """A server in a process of its own."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "coordinator_sim", "serve", "--port", "0"),
            *("--topics", "orders:4", "--set", "group.initial.rebalance.delay.ms=200"),
        ],
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        yield msgspec.json.decode(process.stdout.readline())
    finally:
        process.terminate()
        process.communicate(timeout=20)


@pytest.fixture(params=[(1280, "light"), (1280, "dark"), (400, "light")])
def page(request: pytest.FixtureRequest) -> "Iterator[Page]":
    """A tab of Chromium, of a width and a colour scheme."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("Chromium is not installed")
    width, scheme = request.param
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        yield context.new_page()
        browser.close()


class Consumers:
    """Consumers of one group on a thread of their own."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._wanted = 0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def be(self, count: int) -> None:
        """Have that many members, from now on."""
        self._wanted = count

    def end(self) -> None:
        """None any more."""
        self._is_over.set()
        self._thread.join()

    def _run(self) -> None:
        running: list[Any] = []
        while not self._is_over.is_set():
            while len(running) < self._wanted:
                settings = {
                    "bootstrap.servers": self._bootstrap,
                    "group.id": "app",
                    "heartbeat.interval.ms": 200,
                }
                running.append(clients.Consumer(settings))
                running[-1].subscribe(["orders"])
            for each in running:
                each.poll(0.05)
            self._is_over.wait(0.02)
        for each in running:
            each.close()


@pytest.fixture
def consumers(server: dict[str, Any]) -> Iterator[Consumers]:
    """Consumers of a group, none yet."""
    made = Consumers(server["bootstrap"])
    yield made
    made.end()


def test_page_shows_a_new_generation_as_it_comes(
    server: dict[str, Any], page: "Page", consumers: Consumers, tmp_path: Path
) -> None:
    """A second member joins: generation, owners and timeline follow without a reload."""
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
    foreign: list[str] = []
    page.on(
        "request",
        lambda sent: None if sent.url.startswith(server["control"]) else foreign.append(sent.url),
    )
    page.goto(server["control"])
    page.get_by_text("No group yet").wait_for()

    consumers.be(1)
    page.wait_for_selector('#groups [data-group="app"][data-state="Stable"]')
    first = int(page.get_attribute("#group-panel", "data-generation") or 0)
    page.locator("#partitions .cell").nth(3).wait_for()
    assert page.locator("#partitions .cell").count() == 4

    consumers.be(2)
    page.wait_for_selector(
        f'#groups [data-group="app"][data-state="Stable"][data-generation="{first + 1}"]'
    )
    # The panel is drawn after the list. A locator waits, for the page's policy allows no script
    # that is a text.
    page.locator("#members tbody td:nth-child(4)").get_by_text("2", exact=True).nth(1).wait_for()
    assert page.locator("#members tbody tr").count() == 2
    owners = page.eval_on_selector_all(
        "#partitions .cell", "cells => cells.map(cell => cell.dataset.owner)"
    )
    assert len(owners) == 4
    assert len(dict.fromkeys(owners)) == 2
    page.wait_for_selector(f'[data-lane="app"] rect[data-generation="{first + 1}"]')
    states = page.eval_on_selector_all(
        '[data-lane="app"] rect', "all => all.map(each => each.dataset.state)"
    )
    assert states[-1] == "Stable"
    assert states.count("PreparingRebalance") >= 2

    page.screenshot(path=tmp_path / "page.png", full_page=True)
    fits = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    assert page.evaluate(fits)
    foreign = [url for url in foreign if not url.startswith("data:")]
    assert (problems, foreign) == ([], [])
