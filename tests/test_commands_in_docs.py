"""Every `$ command ...` block of the documentation shows what the command prints today.

`--rewrite` puts today's output in place. Commands of one page run one after the other in one
folder, so that a later one may read what an earlier one wrote.
"""

import re
import shlex
from pathlib import Path

import pytest

from coordinator_sim.cli.entry import main as coordinator_sim
from coordinator_sim_conformance.cli.main import main as conformance
from tests.command_line import run_here

COMMANDS = {"coordinator-sim": coordinator_sim, "conformance": conformance}
ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```\n\$ ((?:coordinator-sim|conformance) [^\n]*)\n(.*?)\n?```", re.DOTALL)
COMMIT = re.compile(r"^(coordinator-sim \S+) \([^)]*\)", re.MULTILINE)
WIDTH = "110"
CUT = re.compile(r"^\.\.\.$", re.MULTILINE)
"""A line of dots on the page stands for any number of lines."""


def output_of(command: str, folder: Path) -> str:
    """What a command prints, with the commit it was run at left out."""
    name, *words = shlex.split(command.partition("#")[0])
    done = run_here(*words, command=COMMANDS[name], folder=folder, environment={"COLUMNS": WIDTH})
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


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_page_shows_what_its_commands_print(
    page: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """A reader who types the command sees the page's lines."""
    text = page.read_text(encoding="utf-8")
    for name in ("examples", "tests"):
        (tmp_path / name).symlink_to(ROOT / name)
    for match in BLOCK.finditer(text):
        printed = output_of(match[1], tmp_path)
        if agrees(match[2], printed):
            continue
        assert pytestconfig.getoption("--rewrite"), f"$ {match[1]}\nprints now:\n{printed}"
        text = text.replace(match[0], f"```\n$ {match[1]}\n{printed}\n```")
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
