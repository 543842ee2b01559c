"""Every `$ command ...` block of the documentation shows what the command prints today.

`--rewrite` puts today's output in place. Commands of one page run one after the other in one
folder, which is empty at first, so that a later one may read what an earlier one wrote.
`--installed DIR` takes the programs of that folder, as an installed wheel puts them there.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from coordinator_sim.cli.entry import main as coordinator_sim
from coordinator_sim_conformance.cli.main import main as conformance
from tests.command_line import run_here

COMMANDS = {"coordinator-sim": coordinator_sim, "conformance": conformance}
ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
WITH_SPARK = frozenset(["read-a-report.md"])
PROGRAMS = r"coordinator-sim|conformance|mkdir|python \w+\.py"
BLOCK = re.compile(rf"```\n(\$ (?:{PROGRAMS})\b.*?\n)```", re.DOTALL)
FILE = re.compile(r"```python\n# (\w+\.py)\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^\$ ([^\n]*)\n", re.MULTILINE)
COMMIT = re.compile(r"^(coordinator-sim \S+) \([^)]*\)", re.MULTILINE)
WIDTH = "110"
CUT = re.compile(r"^\.\.\.$", re.MULTILINE)
"""A line of dots on the page stands for any number of lines."""


def output_of(command: str, folder: Path, programs: Path | None = None) -> str:
    """What a command prints, with the commit it was run at left out.

    Args:
        command: The line behind `$`.
        folder: Where it is run.
        programs: Folder of the programs; None for those of the clone, in this process.
    """
    name, *words = shlex.split(command, comments=True)
    if programs is not None or name not in COMMANDS:
        path = os.pathsep.join([str(programs or Path(sys.executable).parent), os.environ["PATH"]])
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=folder,
            env={"PATH": path, "HOME": str(folder), "COLUMNS": WIDTH, "LANG": "C.UTF-8"},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
    else:
        wide = {"COLUMNS": WIDTH}
        done = run_here(*words, command=COMMANDS[name], folder=folder, environment=wide)
    assert not done.stderr, done.stderr
    lines = [line.rstrip() for line in done.stdout.strip("\n").splitlines()]
    return COMMIT.sub(r"\1", "\n".join(lines)).strip("\n")


def agrees(shown: str, printed: str) -> bool:
    """Whether the page shows the output; a line of dots may stand for a part of it."""
    parts = [part.strip("\n") for part in CUT.split(shown)]
    if not printed.startswith(parts[0]) or not printed.endswith(parts[-1]):
        return False
    at = 0
    for part in parts:
        at = printed.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return len(parts) > 1 or shown.strip("\n") == printed


def now_printed(block: str, folder: Path, programs: Path | None) -> str:
    """A block of commands with what they print today, as far as the page shows it no more."""
    now = ""
    _, *parts = COMMAND.split(block)
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        printed = output_of(command, folder, programs)
        today = shown if agrees(shown, printed) else printed.removesuffix("\n") + "\n"
        now += f"$ {command}\n{today}"
    return now


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page,
            id=page.relative_to(ROOT).as_posix(),
            marks=[pytest.mark.nightly] if page.name in WITH_SPARK else [],
        )
        for page in PAGES
    ],
)
def test_page_shows_what_its_commands_print(
    page: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """A reader who types the commands in an empty folder sees the page's lines."""
    text = page.read_text(encoding="utf-8")
    for name, source in FILE.findall(text):
        (tmp_path / name).write_text(source, encoding="utf-8")
    for block in BLOCK.findall(text):
        now = now_printed(block, tmp_path, pytestconfig.getoption("--installed"))
        assert now == block or pytestconfig.getoption("--rewrite"), f"today:\n{now}"
        text = text.replace(f"```\n{block}```", f"```\n{now}```")
    if pytestconfig.getoption("--rewrite"):
        page.write_text(text, encoding="utf-8")


SERVED = re.compile(r"(?:^|`|\n\$ )coordinator-sim (serve|ctl)((?:[^\n`]|\\\n)*)", re.MULTILINE)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
WORD = re.compile(r"\s+([a-z-]+)")


def help_of(words: list[str]) -> str:
    """What a command says of itself."""
    return run_here(*words, "--help", environment={"COLUMNS": WIDTH}).stdout


def test_documented_commands_of_serve_and_ctl_exist() -> None:
    """Every option of `serve`, and every command of `ctl`, that a page names is one."""
    options = set(OPTION.findall(help_of(["serve"])))
    commands = {line.split()[0] for line in help_of(["ctl"]).splitlines() if line.startswith("  ")}
    for page in PAGES:
        for name, rest in SERVED.findall(page.read_text(encoding="utf-8")):
            if name == "serve":
                used = set(OPTION.findall(rest))
                assert used <= options, f"{page.name}: serve has no {sorted(used - options)}"
            elif word := WORD.match(rest):
                assert word[1] in commands, f"{page.name}: ctl has no {word[1]}"
