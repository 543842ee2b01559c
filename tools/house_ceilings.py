"""Numbers of the house that only fall: `tests/house_ceilings.toml` bounds each of them.

python -m tools.house_ceilings            # print what is above its ceiling, or far below it
python -m tools.house_ceilings --lower    # lower each ceiling to what is found; raise none
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
FILE: Final = ROOT / "tests" / "house_ceilings.toml"
LOWER: Final = "python -m tools.house_ceilings --lower"
SLACK: Final = 0.03
"""Share of a ceiling that may lie above the number found before it has to be lowered."""
_HEADER: Final = f"""\
# Ceilings of tests/test_walks.py and tests/test_house_ceilings.py; 0 for what is not listed.
# After an improvement: {LOWER}
# A room or a class that is renamed takes its line with it; no other line is raised or added.
"""
Counts = Mapping[str, int]


def walks() -> dict[str, int]:
    """Calls and modules of each walk, counted in a process of its own."""
    command = (sys.executable, "-m", "benchmarks.walk")
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {f"{row['walk']}: {unit}": row[unit] for row in rows for unit in ("calls", "modules")}


MEASURES: Final[Mapping[str, Callable[[], Counts]]] = {"walks": walks}
"""What is counted, by the name of its table in the file."""


def read_ceilings() -> dict[str, dict[str, int]]:
    """The tables of the file."""
    return tomllib.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def complaints(found: Counts, ceilings: Counts) -> list[str]:
    """A line for each number above its ceiling, and for each ceiling that has to be lowered.

    Args:
        found: The numbers of one table.
        ceilings: Its ceilings; 0 where a number has none.
    """
    lines = []
    for name in sorted({*found, *ceilings}):
        number, ceiling = found.get(name, 0), ceilings.get(name, 0)
        if number > ceiling:
            lines.append(f"{name}: found {number}, the ceiling is {ceiling}")
        elif ceiling - number > int(ceiling * SLACK):
            lines.append(f"{name}: found {number}, lower the ceiling of {ceiling}: {LOWER}")
    return lines


def lowered(found: Counts, ceilings: Counts | None) -> dict[str, int]:
    """The ceilings after an improvement; what is found, for a table that is new."""
    if ceilings is None:
        return {name: number for name, number in found.items() if number}
    least = {name: min(ceiling, found.get(name, 0)) for name, ceiling in ceilings.items()}
    return {name: number for name, number in least.items() if number}


def written(tables: Mapping[str, Counts]) -> str:
    """The text of the file."""
    parts = [_HEADER]
    for table, ceilings in tables.items():
        rows = [f'"{name}" = {number}\n' for name, number in sorted(ceilings.items())]
        parts.append(f"\n[{table}]\n{''.join(rows)}")
    return "".join(parts)


def main(arguments: list[str]) -> int:
    """Check the ceilings, or lower them; 1 if one has to be looked at."""
    if arguments not in ([], ["--lower"]):
        sys.stdout.write(f"{__doc__}\n")
        return 2
    ceilings = read_ceilings()
    found = {table: measure() for table, measure in MEASURES.items()}
    if arguments:
        ceilings = {table: lowered(found[table], ceilings.get(table)) for table in MEASURES}
        FILE.write_text(written(ceilings), encoding="utf-8")
    lines = [
        f"[{table}] {line}"
        for table in MEASURES
        for line in complaints(found[table], ceilings.get(table, {}))
    ]
    sys.stdout.write("\n".join(lines or ["every number is at its ceiling"]) + "\n")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
