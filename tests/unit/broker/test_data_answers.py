"""The questions about records, as real brokers answered them, put to ours.

`tests/data/data_apis` is recorded by `tools.record_data_answers`.
"""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from coordinator_sim.broker.cluster import Cluster
from coordinator_sim.broker.settings import ClusterSettings, Endpoint
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim.messages.catalogue import API_NAMES, newest_version
from coordinator_sim_conformance.real_kafka.data_answers import ASKED, answered
from coordinator_sim_conformance.real_kafka.data_questions import Versions
from tests.unit.broker.fields_client import FieldsClient

DATA = Path(__file__).parents[2] / "data" / "data_apis"
RECORDED = {"4.3": "4.3.1", "3.9": "3.9.2", "0.10.2": "0.10.2.2"}
"""For each profile the broker that was recorded."""
OTHERS = {"4.3": (5, 13), "3.9": (5, 12), "0.10.2": (1, 2)}
"""Versions of CreateTopics and Metadata that prepare the questions."""


def _recorded(profile: str) -> list[list[Any]]:
    text = (DATA / f"kafka-{RECORDED[profile]}.jsonl").read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def _versions(profile: str, lines: list[list[Any]]) -> Versions:
    asked: dict[ApiKey, list[int]] = defaultdict(list)
    for api, version, *_ in lines:
        asked[ApiKey[api]].append(version)
    create, metadata = OTHERS[profile]
    return {
        **{api: (min(asked[api]), max(asked[api])) for api in ASKED if api in asked},
        ApiKey.CREATE_TOPICS: (create, create),
        ApiKey.METADATA: (metadata, metadata),
    }


@pytest.mark.parametrize("profile", RECORDED)
def test_records_are_written_and_read_as_at_a_real_broker(profile: str) -> None:
    """Every answer, field by field."""
    theirs = _recorded(profile)
    settings = ClusterSettings(profile=profile_named(profile))
    cluster = Cluster(settings, endpoint=lambda _broker, _name: Endpoint("localhost", 9092))
    cluster.versions.ranges = {api: (0, newest_version(api)) for api in API_NAMES}
    lines = answered(FieldsClient(cluster), _versions(profile, theirs))
    ours = [json.loads(line) for line in lines]
    assert [each[:3] for each in ours] == [each[:3] for each in theirs]
    different = [(mine, their) for mine, their in zip(ours, theirs, strict=True) if mine != their]
    assert different == []
