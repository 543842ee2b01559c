"""Real brokers still answer the questions about records as was recorded."""

import pytest

from tools.record_data_answers import FOLDER, VERSIONS, transcript

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broker_answers_as_it_was_recorded(version: str) -> None:
    """Every answer, field by field."""
    recorded = (FOLDER / f"kafka-{version}.jsonl").read_text("utf-8")
    assert transcript(version).splitlines() == recorded.splitlines()
