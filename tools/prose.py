"""Summaries of docstrings that may read as riddles, and the words that make one of a subject.

    python -m tools.prose [PATH ...]    # the packages, or files and folders; then counts by room

Seven rules; a summary that two of them find is a candidate to be written anew with its subject
first: candidates, not verdicts.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = (
    "coordinator_sim",
    "coordinator_sim_pytest",
    "conformance",
    "reports",
    "scenarios",
)
RULES: Final = {
    "begins with a pronoun": re.compile(
        r"^((It|Its|Of|As|That|This|These|Those|They|Whose|Nobody|Likewise|Such|Else|So|Here"
        r"|There)\b|One (that|who|whose|which|of|is|in|on|more)\b)"
    ),
    "begins with a question word": re.compile(r"^(What|Who|Whoever|Where|How)\b"),
    "is speech without a speaker": re.compile(
        r"\b(told|tells?|telling|said|says|hears?|heard|(goes|go|gone) on)\b"
    ),
    "refers to no noun": re.compile(
        r"\b((that|those) of|of (that|it|them|those|these)|the same|others|ones? that|such an?)\b"
    ),
    "is inverted": re.compile(
        r"\bas (is|are|was|does|do|did|has) |\bbe it\b|\bSo (it|they) (is|are|do|does)"
        r"|, as far as|\bwhere it is\b"
    ),
    "is archaic": re.compile(
        r"\b(anew|whoever|whatever|somebody|nobody|beside|by (itself|themselves)|at once"
        r"|(any|no) more|dear|in vain|of its own|therein|from then on|until then)\b"
    ),
    "denies that something exists": re.compile(
        r"\b(that there is|there (is|are) none|(is|are) none|if there (is|are) (one|any)"
        r"|that is none)\b"
    ),
}


class Summary(NamedTuple):
    """The first paragraph of a docstring, on one line."""

    line: int
    name: str
    text: str

    def rules(self) -> list[str]:
        """Names of the rules that find it."""
        return [name for name, pattern in RULES.items() if pattern.search(self.text)]


def summary_of(node: ast.AST) -> Summary | None:
    """The summary of a module, class or function; None for other nodes and without a docstring."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    text = ast.get_docstring(node, clean=False)
    if text is None:
        return None
    line, name = getattr(node, "lineno", 1), getattr(node, "name", "module")
    return Summary(line, name, " ".join(text.strip().partition("\n\n")[0].split()))


def candidates(nodes: Iterable[ast.AST]) -> Iterator[tuple[Summary, list[str]]]:
    """Summaries that at least two rules find, with those rules."""
    for summary in filter(None, map(summary_of, nodes)):
        rules = summary.rules()
        if len(rules) > 1:
            yield summary, rules


def room_of(path: Path) -> str:
    """The room of a file: the first two folders of its path below the root, or the first."""
    return "/".join(path.relative_to(ROOT).parts[:-1][:2])


def main(arguments: list[str]) -> None:
    """Print candidates, and their number by room."""
    rooms: Counter[str] = Counter()
    for top in arguments or PACKAGES:
        given = (ROOT / top).resolve()
        for path in sorted(given.rglob("*.py")) if given.is_dir() else [given]:
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            for summary, rules in candidates(nodes):
                rooms[room_of(path)] += 1
                place = f"{path.relative_to(ROOT)}:{summary.line} {summary.name}"
                sys.stdout.write(f"{place} | {', '.join(rules)} | {summary.text}\n")
    for room, count in rooms.most_common():
        sys.stdout.write(f"{count:5} {room}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
