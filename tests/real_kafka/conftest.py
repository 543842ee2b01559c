"""Real Kafka, or a clear reason why not."""

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.real_kafka.kafka import (
    BROKER_VERSION,
    OLD_BROKER_VERSION,
    TOOLS_VERSION,
    jars_of,
)


@pytest.fixture(scope="session", autouse=True)
def kafka_jars() -> None:
    """Java, Maven and the jars of broker and tools; without them these tests are skipped."""
    try:
        for version in (BROKER_VERSION, OLD_BROKER_VERSION, TOOLS_VERSION):
            jars_of(version)
    except MissingDependencyError as error:
        pytest.skip(str(error))
