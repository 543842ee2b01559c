"""Kafka's own unit tests of its group coordinator, answered by ours over `lines`."""

from pathlib import Path

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.kafka_tests.results import Verdict, left_out
from coordinator_sim_conformance.kafka_tests.running import run_class, stage_for
from coordinator_sim_conformance.kafka_tests.suites import suites_named

(DOOR,) = suites_named("door-4.3.1")
INVOCATIONS = {"GroupMetadataManagerTest": 364, "OffsetMetadataManagerTest": 83}
"""Invocations of the tests that are not left out: none may stop being judged unseen."""


@pytest.mark.oracle
@pytest.mark.parametrize("name", INVOCATIONS)
def test_the_coordinator_passes_kafkas_unit_tests(name: str, tmp_path: Path) -> None:
    """Replies, records and timers are those of Kafka's manager, which is asked the same."""
    try:
        stage = stage_for(DOOR, DOOR.profile, tmp_path)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    (full_name,) = (each.name for each in DOOR.classes if each.name.endswith(name))
    ran = run_class(stage, full_name, without=tuple(left_out()))
    assert [each for each in ran if each.verdict is not Verdict.PASSED] == []
    assert len(ran) == INVOCATIONS[name]
