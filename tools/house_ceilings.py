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

from tools.house_measures import Places, dialect, equal_lines, protocols, riddles, small_modules

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


PLACES: Final[Mapping[str, Callable[[], Places]]] = {
    measure.__name__: measure
    for measure in (riddles, dialect, protocols, equal_lines, small_modules)
}
"""What is counted in the text of the packages, by the name of its table in the file."""
TABLES: Final = ("walks", *PLACES)


def counts(table: str) -> Counts:
    """The numbers of one table, as they are now."""
    if table == "walks":
        return walks()
    return {name: len(places) for name, places in PLACES[table]().items()}


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
    """Check the ceilings, lower them, or show places; 1 if a ceiling has to be looked at."""
    match arguments:
        case [] | ["--lower"]:
            lines = _checked(is_lowering=bool(arguments))
            sys.stdout.write("\n".join(lines or ["every number is at its ceiling"]) + "\n")
            return 1 if lines else 0
        case ["--show", table, name] if table in PLACES:
            sys.stdout.writelines(f"{place}\n" for place in PLACES[table]().get(name, ()))
            return 0
        case _:
            sys.stderr.write(f"{__doc__}\nTables with places: {', '.join(PLACES)}\n")
            return 2


def _checked(*, is_lowering: bool) -> list[str]:
    """Lower the ceilings first, if so ordered; complaints about all tables."""
    ceilings = read_ceilings()
    found = {table: counts(table) for table in TABLES}
    if is_lowering:
        ceilings = {table: lowered(found[table], ceilings.get(table)) for table in TABLES}
        FILE.write_text(written(ceilings), encoding="utf-8")
    return [
        f"[{table}] {line}"
        for table in TABLES
        for line in complaints(found[table], ceilings.get(table, {}))
    ]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
