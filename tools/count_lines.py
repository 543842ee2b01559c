"""Lines of the house by part and kind, the count that changes are measured by.

    python -m tools.count_lines [ROOT]

Parts: library (the simulator, its pytest plugin, the scenarios), conformance, reports, tests,
tools (with benchmarks and docs) and generated, which is every file that a program wrote. Kinds:
logic (with comments and what is no other kind), docstrings, blank lines, imports.
"""

import ast
import sys
from collections import Counter
from pathlib import Path
from typing import Final

PARTS: Final = {
    "library": ("coordinator_sim", "coordinator_sim_pytest", "scenarios"),
    "conformance": ("conformance",),
    "reports": ("reports",),
    "tests": ("tests",),
    "tools": ("tools", "benchmarks", "docs", "examples"),
}
KINDS: Final = ("files", "lines", "logic", "docstring", "blank", "import")
GENERATED: Final = "Written by tools/"


def is_generated(text: str) -> bool:
    """Whether a program wrote a module, by the words of its first lines."""
    return GENERATED in text[:400]


def kinds_of(text: str) -> Counter[str]:
    """Lines of a module by kind."""
    lines = text.splitlines()
    kinds = dict.fromkeys(range(1, len(lines) + 1), "logic")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kinds.update(dict.fromkeys(range(node.lineno, (node.end_lineno or 0) + 1), "import"))
        elif isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str):
            span = range(node.lineno, (node.end_lineno or 0) + 1)
            kinds.update(dict.fromkeys(span, "docstring"))
    kinds.update((number, "blank") for number, line in enumerate(lines, 1) if not line.strip())
    return Counter({"files": 1, "lines": len(lines)}) + Counter(kinds.values())


def counts(root: Path) -> dict[str, Counter[str]]:
    """Counts of each part of the tree below a folder."""
    found = {part: Counter[str]() for part in (*PARTS, "generated")}
    for part, tops in PARTS.items():
        for path in (path for top in tops for path in (root / top).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            found["generated" if is_generated(text) else part] += kinds_of(text)
    return found


def main(arguments: list[str]) -> None:
    """Print a row a part, and the sum."""
    rows = counts(Path(arguments[0]) if arguments else Path(__file__).parents[1])
    rows["all"] = sum(rows.values(), Counter[str]())
    out = ["".join(f"{title:>12}" for title in ("part", *KINDS))]
    out += [
        f"{part:>12}" + "".join(f"{row[kind]:>12,}" for kind in KINDS) for part, row in rows.items()
    ]
    sys.stdout.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
