"""Real Connect workers still answer what surrounds their REST resources as was recorded."""

import json
from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, Broker
from coordinator_sim_conformance.real_kafka.rest_story import STORIES
from tools.record_connect_rest import FOLDER, transcript

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


def test_workers_answer_as_they_were_recorded(tmp_path: Path) -> None:
    """Every answer of every story, by a new worker each."""
    with Broker(tmp_path / "broker", version=TOOLS_VERSION) as broker:
        for name in STORIES:
            recorded = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
            assert transcript(name, tmp_path / name, broker.bootstrap) == recorded, name
