"""The recorded settings are still those of each release's own classes."""

import pytest

from coordinator_sim.kafka.releases import recording
from coordinator_sim_conformance.real_kafka.settings_table import settings_of
from coordinator_sim_conformance.requirements import RELEASES

pytestmark = [pytest.mark.real_kafka, pytest.mark.nightly]


@pytest.mark.parametrize("profile", RELEASES)
def test_release_has_the_settings_of_its_table(profile: str) -> None:
    """Names, types, defaults and bounds, in the order in which Kafka checks them."""
    kept = recording(profile, "settings.jsonl").decode().splitlines()

    assert settings_of(RELEASES[profile]) == kept
