"""Real brokers still answer the raw requests of share groups as was recorded."""

import pytest

from tools.record_share_answers import PLAYED, file_of, transcript

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


@pytest.mark.parametrize(("version", "api_version"), PLAYED)
def test_a_broker_answers_as_it_was_recorded(version: str, api_version: int) -> None:
    """Every answer, field by field."""
    recorded = file_of(version, api_version).read_text("utf-8")
    assert transcript(version, api_version).splitlines() == recorded.splitlines()
