"""Real brokers of 0.10.2 still answer the requests of a controller as was recorded."""

import pytest

from tools.record_control_requests import FOLDER, STORIES, transcript

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


@pytest.mark.parametrize("story", STORIES)
def test_a_broker_answers_a_controller_as_it_was_recorded(story: str) -> None:
    """Every answer in its order."""
    recorded = (FOLDER / f"{story}.jsonl").read_text("utf-8")
    assert transcript(story).splitlines() == recorded.splitlines()
