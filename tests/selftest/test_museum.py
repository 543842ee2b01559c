"""Every seeded fault is noticed by a case of the suite, and without a fault every case passes."""

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.exhibits import EXHIBITS, HEALTHY
from coordinator_sim_conformance.museum.hunt import HANG, find


def test_the_suite_passes_on_the_core_as_it_is() -> None:
    """Every case passes on the core without a fault."""
    assert find(HEALTHY).detectors == ()


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.exhibit_id)
def test_a_fault_is_noticed(exhibit: Exhibit) -> None:
    """The case that the exhibit names fails on a core with its fault."""
    assert find(exhibit).detectors[:1] == (exhibit.noticed_by,)


def test_a_suite_that_uses_up_its_processor_time_hangs() -> None:
    """What is bounded is what the suite does, not how long a busy machine takes for it."""
    assert find(HEALTHY, processor_s=1).detectors == (HANG,)


def test_a_suite_that_does_not_end_on_a_busy_machine_decides_nothing() -> None:
    """Nobody is blamed: neither the fault was noticed, nor was it overlooked."""
    with pytest.raises(
        DataError, match="none: not decided: the suite neither ended nor used 120 s"
    ):
        find(HEALTHY, patience_s=0.5)
