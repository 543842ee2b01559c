"""What all tests share: the profiles of the property tests, and who shares a process.

`--hypothesis-profile NAME` chooses one: `dev` (the default), `ci` (the same draws every time) or
`nightly`.
"""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from playwright.sync_api import Browser

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # What a shell starts in the background ignores Ctrl-C, and so would the processes of tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A scenario takes as long as its virtual time is eventful, so no example has a deadline.
settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), max_examples=100, derandomize=True, print_blob=True
)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=20_000)
settings.load_profile("dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what rewrites observed lines, and what tries the documentation from a wheel."""
    parser.addoption(
        "--rewrite", action="store_true", help="rewrite the observed lines of transcripts"
    )
    parser.addoption(
        "--installed", type=Path, metavar="DIR", help="programs for the commands of pages"
    )


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:
    """Chromium; tests of pages are skipped where there is none.

    Its loop runs for as long as it is open, so that no other test of a module may have one.
    """
    sync_api = pytest.importorskip("playwright.sync_api")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("Chromium is not installed")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


class ByFile(LoadFileScheduling):  # type: ignore[misc] # xdist has no types
    """Gives each process whole files, and one of them all reports: they share a Spark session."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return "reports" if file.startswith("tests/reports/") else file


SLOW = frozenset(Path(__file__).with_name("slow_files.txt").read_text("utf-8").split())
"""Files that `./dev quick` leaves out: the costliest of tests/unit by `pytest --durations=0`."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow tests; begin with the reports: one process has them all, as long as the rest."""
    for item in items:
        if item.nodeid.partition("::")[0] in SLOW:
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: not item.nodeid.startswith("tests/reports/"))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than processors: tests of clients and sockets wait for a fifth of a run."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile | None:
    """Take the scheduler above for `--dist loadfile`."""
    return ByFile(config, log) if config.getoption("dist") == "loadfile" else None
