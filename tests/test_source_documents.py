"""What `docs/source-documents.md` names is there: rows, modules, tests, scenarios, cases."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from conformance.registry import all_requirements
from scenarios.catalog import all_scenarios

ROOT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = (ROOT / "docs" / "source-documents.md").read_text("utf-8")
ROWS: Final = {"000": 7, "002": 7, "003": 9, "004": 6}
"""Rows of each document that is built."""


def table_rows() -> Iterator[tuple[str, list[str], list[str]]]:
    """Every row's id, the modules that do it and what shows it."""
    for line in PAGE.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"\d{3}-\d+", cells[0]):
            _, _, modules, evidence = cells
            yield cells[0], re.findall(r"`([^`]+)`", modules), re.findall(r"`([^`]+)`", evidence)


def is_shown(name: str) -> bool:
    """Whether a test, transcript, scenario or case of that name exists."""
    path, _, function = name.partition("::")
    if "/" in path:
        file = ROOT / path
        if not file.is_file():
            return False
        return not function or f"def {function}(" in file.read_text("utf-8")
    requirements = {each.requirement_id for each in all_requirements()}
    return name in requirements or name in all_scenarios()


def test_every_row_is_there() -> None:
    """Each once, in order, with at least one module and one thing that shows it."""
    wanted = [f"{name}-{row}" for name, rows in ROWS.items() for row in range(1, rows + 1)]
    rows = list(table_rows())

    assert [row_id for row_id, _, _ in rows] == wanted
    assert all(modules and evidence for _, modules, evidence in rows)


@pytest.mark.parametrize("row", [pytest.param(row, id=row[0]) for row in table_rows()])
def test_what_a_row_names_exists(row: tuple[str, list[str], list[str]]) -> None:
    """Modules can be found, and so can everything that is said to show the row."""
    _, modules, evidence = row

    assert [name for name in modules if find_spec(f"coordinator_sim.{name}") is None] == []
    assert [name for name in evidence if not is_shown(name)] == []


def test_a_name_that_is_nothing_is_found_out() -> None:
    """Neither a file, a function in it, a case nor a scenario."""
    assert not is_shown("tests/unit/nowhere.py")
    assert not is_shown("tests/test_source_documents.py::test_of_dreams")
    assert not is_shown("C-DREAM-01")
    assert is_shown("tests/test_source_documents.py")
