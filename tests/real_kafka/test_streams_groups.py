"""Kafka Streams applications with the streams protocol: they print what they do at real Kafka."""

from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka import streams
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, TOOLS_VERSION, Broker
from tests.unit.cli.test_serve import serving

pytestmark = pytest.mark.real_kafka

QUICK = {
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "500",
}
OPTIONS = tuple(word for name in QUICK for word in ("--set", f"{name}={QUICK[name]}"))


@pytest.mark.parametrize(
    ("application", "broker_version", "profile"),
    [
        (streams.STREAMS_VERSION, BROKER_VERSION, "4.4"),
        pytest.param(streams.STREAMS_VERSION, TOOLS_VERSION, "4.3", marks=pytest.mark.nightly),
        pytest.param(streams.OLD_STREAMS_VERSION, BROKER_VERSION, "4.4", marks=pytest.mark.nightly),
    ],
)
def test_an_application_joins_counts_and_leaves_as_at_a_real_broker(
    tmp_path: Path, application: str, broker_version: str, profile: str
) -> None:
    """Tasks of one and two instances, copies, topics, counts, transactions, errors, settings.

    Kafka's classes assert nothing here: each line is their own account, and ours is Kafka's.
    """
    with Broker(tmp_path, dict(QUICK), broker_version) as broker:
        theirs = streams.streams_story(application, broker.bootstrap)
    assert any(line.startswith("counted exactly {five=84,") for line in theirs)
    with serving("--port", "0", "--profile", profile, *OPTIONS) as ready:
        ours = streams.streams_story(application, ready["bootstrap"])

    assert ours == theirs
