"""Real brokers still answer about offsets of version 0, and keep them, as was recorded."""

import pytest

from tools.record_old_offsets import FOLDER, VERSIONS, transcript

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_keeps_old_offsets_as_it_was_recorded(version: str) -> None:
    """Every answer in its order, and every node of its ZooKeeper."""
    recorded = (FOLDER / f"kafka-{version}.jsonl").read_text("utf-8")
    assert transcript(version).splitlines() == recorded.splitlines()
