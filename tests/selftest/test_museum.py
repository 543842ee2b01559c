"""Every seeded fault is noticed by a case of the suite, and without a fault every case passes."""

import pytest

from coordinator_sim_conformance.museum.exhibit import Exhibit
from coordinator_sim_conformance.museum.exhibits import EXHIBITS, HEALTHY
from coordinator_sim_conformance.museum.hunt import find


def test_the_suite_passes_on_the_core_as_it_is() -> None:
    """Every case passes on the core without a fault."""
    assert find(HEALTHY).detectors == ()


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.exhibit_id)
def test_a_fault_is_noticed(exhibit: Exhibit) -> None:
    """The case that the exhibit names fails on a core with its fault."""
    assert find(exhibit).detectors[:1] == (exhibit.noticed_by,)
