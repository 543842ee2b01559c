"""The comparison tables of the documentation are what their commands print today.

They come from drawn worlds and Spark, and take minutes, so the nightly suite makes them again.
`--rewrite` puts today's tables in place.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
GUIDE = "docs/guides/compare-assignors.md"
SWEPT = "consumer-rolling-deploy member-crash connect-rolling-deploy connect-worker-crash"
PACED = "consumer-rolling-deploy --processing-times 50,200,1000,5000"
TABLES = [
    ("docs/tour.md", "demo", "Churn per run:"),
    (GUIDE, f"sweep {SWEPT}", "Connect: eager or incremental"),
    (GUIDE, f"sweep {PACED}", "Assignor by typical processing time"),
]
"""Page, command as the page names it, and how the block with its table begins."""
OWN_LINES = ("simulated ", "Spark computes", "report: ", "no other candidate ")
"""Lines of the terminal that a page leaves out."""


def table_of(command: str, first: str, folder: Path) -> str:
    """What the command prints from its first table on."""
    done = subprocess.run(
        [sys.executable, "-m", "coordinator_sim", *command.split(), "--out", str(folder)],
        env={**os.environ, "COLUMNS": "80"},
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    shown = [line.partition("; report:")[0] for line in lines if not line.startswith(OWN_LINES)]
    text = "\n".join(shown)
    return text[text.index(first) :].strip("\n")


@pytest.mark.parametrize(("page", "command", "first"), TABLES)
def test_page_names_the_command_of_its_table(page: str, command: str, first: str) -> None:
    """A reader can type what made the table."""
    text = (ROOT / page).read_text(encoding="utf-8")
    assert command in text
    assert f"```\n{first}" in text


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.parametrize(("page", "command", "first"), TABLES)
def test_page_shows_the_table_that_its_command_prints(
    page: str, command: str, first: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """The figures on the page are those of the command."""
    path = ROOT / page
    text = path.read_text(encoding="utf-8")
    begin = text.index(f"```\n{first}") + len("```\n")
    end = text.index("\n```", begin)
    printed = table_of(command, first, tmp_path / "out")
    if text[begin:end] != printed:
        assert pytestconfig.getoption("--rewrite"), f"{command} prints now:\n{printed}"
        path.write_text(text[:begin] + printed + text[end:], encoding="utf-8")
