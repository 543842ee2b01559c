"""Real brokers still answer the raw requests of share groups as was recorded."""

import pytest

from tools.record_share_answers import RECORDINGS, Recording

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda each: each.name)
def test_a_broker_answers_as_it_was_recorded(recording: Recording) -> None:
    """Every answer, and every record of a queue, field by field."""
    assert recording.played() == recording.file.read_text("utf-8").splitlines()
