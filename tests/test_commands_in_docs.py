"""Every block of output in the documentation is what its command prints today.

A fenced block whose first line begins with `$ ` is a session: its commands run, and print what the
page shows. Commands of one page run one after the other in one folder, which is empty at first, so
that a later one may read what an earlier one wrote. Two comments of Markdown steer them:
`<!-- $ command -->` runs unseen; `<!-- needs MARKER -->` above a block leaves it to the tests with
that marker. `--rewrite` puts today's output in place. `--installed DIR` takes the programs of that
folder, as an installed wheel puts them there.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.command_line import run_here
from tests.terminal_sessions import COMMANDS, WIDTH, Terminal, masked

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = frozenset(["client-matrix.md", "state-machine.md"])
"""Pages that `docs/generate.py` writes, and a test of their own holds to it."""
PIECE = re.compile(
    r"<!-- \$ (?P<unseen>.*?) -->"
    r"|(?:^<!-- needs (?P<need>\w+) -->\n)?^```(?P<info>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# ([\w.-]+\.(?:py|toml|properties|yaml))\n")
COMMAND = re.compile(r"^\$ ((?:[^\n]*\\\n)*[^\n]*)\n", re.MULTILINE)
CUT = re.compile(r"^\.\.\.$", re.MULTILINE)
"""A line of dots on the page stands for any number of lines."""
SHOWN_BY = re.compile(r"<!-- shown by (tests/[\w/]+\.py)::(\w+) -->\n```text\n")
NO_OUTPUT = frozenset(["python", "sh", "toml", "yaml", "properties", "json", "java", "diagram"])
"""What a reader writes, types or looks at; everything else is output."""


def needs_of(page: Path) -> list[str]:
    """The markers of a page's blocks; the empty one for those that need none."""
    text = page.read_text(encoding="utf-8")
    found = {m["need"] or "" for m in PIECE.finditer(text) if (m["text"] or "").startswith("$ ")}
    return sorted(found)


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


def now_printed(block: str, terminal: Terminal) -> str:
    """A session with what its commands print today, as far as the page shows it no more."""
    now = ""
    _, *parts = COMMAND.split(block)
    for command, shown in zip(parts[::2], parts[1::2], strict=True):
        printed = terminal.run(command.replace("\\\n", " "))
        both = (masked(text, is_live=terminal.is_live) for text in (shown, printed))
        blank = "\n" if shown.endswith("\n\n") else ""
        today = shown if agrees(*both) else f"{printed}\n{blank}" if printed else blank
        now += f"$ {command}\n{today}"
    return now


def pages_and_needs() -> Iterator[object]:
    """Each page once for each marker that blocks of it need."""
    for page in PAGES:
        for need in needs_of(page):
            name = page.relative_to(ROOT).as_posix() + (f"-{need}" if need else "")
            marks = [getattr(pytest.mark, need)] if need else []
            yield pytest.param(page, need, id=name, marks=marks)


@pytest.mark.parametrize(("page", "need"), list(pages_and_needs()))
def test_page_shows_what_its_commands_print(
    page: Path, need: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """A reader who types the commands in an empty folder sees the page's lines."""
    text = page.read_text(encoding="utf-8")
    terminal = Terminal(tmp_path, pytestconfig.getoption("--installed"))
    terminal.is_live = bool(need)
    try:
        for piece in PIECE.finditer(text):
            block = piece["text"] or ""
            if unseen := piece["unseen"]:
                terminal.run(unseen)
            elif name := FILE.match(block):
                (tmp_path / name[1]).write_text(block, encoding="utf-8")
            elif block.startswith("$ ") and (piece["need"] or "") in {"", need}:
                now = now_printed(block, terminal)
                assert now == block or pytestconfig.getoption("--rewrite"), f"today:\n{now}"
                text = text.replace(f"\n{block}```", f"\n{now}```")
    finally:
        terminal.stop()
    if pytestconfig.getoption("--rewrite"):
        page.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_block_of_a_page_shows_output_that_no_test_produces(page: Path) -> None:
    """Output is a session, or names the test that shows it; a generated page has a test itself."""
    text = page.read_text(encoding="utf-8")
    shown_by = {found.end() - len("```text\n"): found for found in SHOWN_BY.finditer(text)}
    for piece in PIECE.finditer(text):
        block = piece["text"]
        if block is None or piece["info"] in NO_OUTPUT or block.startswith("$ "):
            continue
        line = text[: piece.start()].count("\n") + 1
        assert page.name in GENERATED or piece.start() in shown_by, f"{page.name}:{line}"
    for found in shown_by.values():
        assert f"def {found[2]}(" in (ROOT / found[1]).read_text(encoding="utf-8"), found[0]


USED = re.compile(
    r"(?:^|`|\$ )(coordinator-sim|conformance)((?: [a-z][a-zA-Z-]*)+)((?:[^\n`]|\\\n)*)",
    re.MULTILINE,
)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
DEFAULT = re.compile(r"^  ([a-z]+) .*; the default\.$", re.MULTILINE)
"""A command that is meant where none is named."""


def command_of(program: str, words: list[str]) -> tuple[list[str], set[str]]:
    """The longest command that begins a line, and its options."""
    for end in range(min(len(words), 3), 0, -1):
        environment = {"COLUMNS": WIDTH}
        done = run_here(*words[:end], "--help", command=COMMANDS[program], environment=environment)
        if done.returncode == 0:
            options = set(OPTION.findall(done.stdout))
            if default := DEFAULT.search(done.stdout):
                options |= command_of(program, [*words[:end], default[1]])[1]
            return words[:end], options
    return [], set()


def test_documented_commands_and_options_exist() -> None:
    """Every command of ours that a page names is one, and has the options that it is given."""
    commands: dict[tuple[str, ...], tuple[list[str], set[str]]] = {}
    for page in PAGES:
        for program, names, rest in USED.findall(page.read_text(encoding="utf-8")):
            words = tuple([program, *names.split()][:4])
            if words not in commands:
                commands[words] = command_of(program, list(words[1:]))
            command, options = commands[words]
            assert command, f"{page.name}: no command {' '.join(words)}"
            used = set(OPTION.findall(rest))
            assert used <= options, f"{page.name}: {command} has no {sorted(used - options)}"
