"""No module imports itself by way of others."""

from graphlib import CycleError, TopologicalSorter

import grimp
import pytest

PACKAGES = (
    "coordinator_sim",
    "coordinator_sim_pytest",
    "coordinator_sim_conformance",
    "coordinator_sim_reports",
    "coordinator_sim_scenarios",
)


@pytest.fixture(scope="module")
def imports() -> dict[str, set[str]]:
    """What every module imports, also inside functions and for type checkers alone."""
    graph = grimp.build_graph(*PACKAGES, cache_dir=None)
    return {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}


def circle_in(imports: dict[str, set[str]]) -> list[str]:
    """The modules of a circle, each imported by the next; empty without one."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others(imports: dict[str, set[str]]) -> None:
    """Circles hide in functions and behind TYPE_CHECKING as well; the graph has those too."""
    assert circle_in(imports) == []


def test_a_circle_is_found() -> None:
    """A circle of three among four modules is named without the fourth."""
    circle = circle_in({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})
    assert set(circle) == {"a", "b", "c"}
