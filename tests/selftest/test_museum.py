"""Every seeded fault is noticed by a case of the suite, which passes without a fault."""

from collections.abc import Callable

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.museum.breaking import broken_source, path_of, source_of
from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.exhibits import EXHIBITS, HEALTHY, exhibit_named
from coordinator_sim_conformance.museum.hunt import hunted
from coordinator_sim_conformance.museum.patching import differ_in_functions_alone
from coordinator_sim_conformance.museum.playing import HANG, turns


@pytest.fixture(scope="module")
def findings() -> dict[str, tuple[str, ...]]:
    """The detectors of every exhibit."""
    return {each.exhibit_id: each.detectors for each in hunted(EXHIBITS, jobs=1)}


@pytest.fixture(scope="module")
def suite() -> dict[str, Callable[[], bool]]:
    """Every case of the museum's suite by its name."""
    return dict(turns())


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.exhibit_id)
def test_a_fault_is_noticed_by_a_case_that_passes_without_it(
    exhibit: Exhibit, findings: dict[str, tuple[str, ...]], suite: dict[str, Callable[[], bool]]
) -> None:
    """The case that the exhibit names fails on a core with its fault, and not on ours."""
    assert findings[exhibit.exhibit_id] == (exhibit.noticed_by,)
    assert suite[exhibit.noticed_by]()


@pytest.mark.parametrize(
    ("exhibit_id", "is_in_functions"), [("KAFKA-12890", True), ("KAFKA-7196", False)]
)
def test_a_fault_of_what_runs_on_import_is_no_fault_of_functions(
    exhibit_id: str, is_in_functions: bool
) -> None:
    """A changed row of a table is not put into loaded functions, a changed body is."""
    exhibit = exhibit_named(exhibit_id)
    source = source_of(exhibit.module)
    whole, broken = (
        compile(text, str(path_of(exhibit.module)), "exec")
        for text in (source, broken_source(exhibit, source))
    )
    assert differ_in_functions_alone(whole, broken) == is_in_functions


def test_a_suite_that_uses_up_its_processor_time_hangs() -> None:
    """What is bounded is what the suite does, not how long a busy machine takes for it."""
    assert next(hunted([HEALTHY], processor_s=1)).detectors == (HANG,)


def test_a_suite_that_does_not_end_on_a_busy_machine_decides_nothing() -> None:
    """Nobody is blamed: neither the fault was noticed, nor was it overlooked."""
    with pytest.raises(
        DataError, match="none: not decided: the suite neither ended nor used 120 s"
    ):
        next(hunted([HEALTHY], patience_s=0.5))
