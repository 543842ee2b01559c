"""Pages in Chromium, of several widths and colour schemes."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


class Screen(NamedTuple):
    """A width in pixels, and the colours that the reader's system prefers."""

    name: str
    width: int
    scheme: Literal["light", "dark"]


SCREENS: Final = (
    Screen("desk", 1200, "light"),
    Screen("dark", 1200, "dark"),
    Screen("phone", 390, "light"),
)


class Shown(NamedTuple):
    """A page in a tab, and what the browser complained of or asked for."""

    page: "Page"
    problems: list[str]
    requests: list[str]


@contextmanager
def browsing(browser: "Browser", file: Path, screen: Screen) -> Iterator[Shown]:
    """Open a file in a tab of its own."""
    context = browser.new_context(
        viewport={"width": screen.width, "height": 900}, color_scheme=screen.scheme
    )
    page = context.new_page()
    told = Shown(page, [], [])
    page.on("pageerror", lambda error: told.problems.append(str(error)))
    page.on("console", lambda said: told.problems.append(said.text))
    page.on("request", lambda sent: told.requests.append(sent.url))
    page.goto(file.as_uri())
    yield told
    context.close()


def levels_of(page: "Page") -> tuple[int, int]:
    """How light paper and ink are, 0 to 765."""
    told = page.evaluate(
        """["backgroundColor", "color"].map(
            (name) => getComputedStyle(document.body)[name].match(/\\d+/g).slice(0, 3)
              .reduce((sum, each) => sum + Number(each), 0))"""
    )
    return told[0], told[1]
