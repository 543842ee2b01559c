"""Real brokers still answer the raw requests of share groups as was recorded."""

import pytest

from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION
from tools.record_share_answers import (
    PLAYED,
    file_of,
    queue_file_of,
    queue_transcript,
    transcript,
)

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


@pytest.mark.parametrize(("version", "api_version"), PLAYED)
def test_a_broker_answers_as_it_was_recorded(version: str, api_version: int) -> None:
    """Every answer, field by field."""
    recorded = file_of(version, api_version).read_text("utf-8")
    assert transcript(version, api_version).splitlines() == recorded.splitlines()


def test_a_broker_writes_dead_letters_as_it_was_recorded() -> None:
    """Every answer, and every record of the queues."""
    recorded = queue_file_of(BROKER_VERSION).read_text("utf-8")
    assert queue_transcript(BROKER_VERSION).splitlines() == recorded.splitlines()
