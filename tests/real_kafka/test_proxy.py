"""The proxy never flags Apache Kafka, whatever real clients do."""

import asyncio
from pathlib import Path

import pytest

from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION, OLD_BROKER_VERSION, Broker
from tests.proxied import proxied, with_aiokafka, with_librdkafka

pytestmark = pytest.mark.real_kafka


@pytest.mark.parametrize(
    "version", [BROKER_VERSION, pytest.param(OLD_BROKER_VERSION, marks=pytest.mark.nightly)]
)
def test_kafka_is_never_flagged(version: str, tmp_path: Path) -> None:
    """Members of two client libraries join, bounce and commit; all of them stay behind it."""
    with Broker(tmp_path / "broker", version=version) as broker, proxied(broker.bootstrap) as proxy:
        asyncio.run(with_aiokafka(proxy.address))
        with_librdkafka(proxy.address)
        code, flags, counts = proxy.ended()

    assert flags == [], flags
    assert code == 0
    assert counts["exchanges"] > 100
    assert counts["groups"] == 2
