"""The recorded answers of brokers are still what they answer."""

import pytest
from msgspec.structs import replace

from coordinator_sim.kafka.api_versions import recorded_versions
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim_conformance.real_kafka.kafka import BROKER_VERSION
from coordinator_sim_conformance.requirements import RELEASES
from tools.record_release import recorded

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


def test_the_newest_broker_offers_what_was_recorded() -> None:
    """With its own features and with lower ones; only the day differs."""
    name = next(profile for profile, release in RELEASES.items() if release == BROKER_VERSION)
    kept = recorded_versions(PROFILES[name])

    assert replace(recorded(name, BROKER_VERSION), recorded_on=kept.recorded_on) == kept
