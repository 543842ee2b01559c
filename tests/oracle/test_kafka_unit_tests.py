"""Kafka's own unit tests of its group coordinator, answered by ours over `lines`."""

from pathlib import Path

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.kafka_tests.door.running import CLASSES, class_path, run_class
from coordinator_sim_conformance.kafka_tests.results import Verdict

RELEASE = "4.3.1"
INVOCATIONS = dict(zip(CLASSES, (364, 83), strict=True))
"""Invocations of the tests that are not left out: none may stop being judged unseen."""


@pytest.mark.oracle
@pytest.mark.parametrize("name", CLASSES)
def test_the_coordinator_passes_kafkas_unit_tests(name: str, tmp_path: Path) -> None:
    """Replies, records and timers are those of Kafka's manager, which is asked the same."""
    try:
        class_path(RELEASE)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    ran = run_class(RELEASE, name, tmp_path)
    assert [each for each in ran if each.verdict is not Verdict.PASSED] == []
    assert len(ran) == INVOCATIONS[name]
