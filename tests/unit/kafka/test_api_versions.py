"""Which versions of the group APIs each Kafka offers."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import recorded_versions, versions_of
from coordinator_sim.kafka.profiles import PROFILES, profile_named
from coordinator_sim.messages.catalogue import API_NAMES, newest_version


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_offers_the_classic_apis(name: str) -> None:
    """Each has a range that is not empty, in each profile."""
    offered = versions_of(PROFILES[name])
    assert {ApiKey.JOIN_GROUP, ApiKey.OFFSET_COMMIT, ApiKey.LIST_GROUPS} <= set(offered)
    assert all(0 <= oldest <= newest for oldest, newest in offered.values())


def test_newer_kafkas_never_offer_less_new_versions() -> None:
    """From one profile to the next no newest version goes down and no API goes away."""
    tables = [versions_of(profile) for profile in PROFILES.values()]
    for older, newer in pairwise(tables):
        assert all(newer[api][1] >= newest for api, (_, newest) in older.items())


def test_topic_ids_came_with_4_2() -> None:
    """Versions 10 of OffsetCommit and OffsetFetch, and 6 of TxnOffsetCommit with 4.4."""
    assert versions_of(profile_named("4.1"))[ApiKey.OFFSET_COMMIT] == (2, 9)
    assert versions_of(profile_named("4.2"))[ApiKey.OFFSET_FETCH] == (1, 10)
    assert versions_of(profile_named("java-4.x"))[ApiKey.TXN_OFFSET_COMMIT] == (0, 6)


def test_oldest_kafka_has_no_transactions() -> None:
    """0.10.2 knows neither transactions nor the deletion of groups."""
    offered = versions_of(profile_named("legacy-0.10.2"))
    assert ApiKey.TXN_OFFSET_COMMIT not in offered
    assert ApiKey.DELETE_GROUPS not in offered


def test_a_profile_of_another_name_has_no_versions() -> None:
    """A name that no Kafka has is refused, with the names that are known."""
    with pytest.raises(ConfigError, match=r"'5\.0': use 0\.10\.2, 2\.8"):
        versions_of(replace(profile_named("4.4"), name="5.0"))


def test_every_profile_has_a_recording_of_its_release() -> None:
    """The file says which broker was asked, when and how."""
    for name, profile in PROFILES.items():
        recorded = recorded_versions(profile)
        assert recorded.kafka_version.startswith(f"{name}.")
        assert recorded.command.endswith(f"record_release {name}={recorded.kafka_version}")


@pytest.mark.parametrize("name", PROFILES)
def test_the_codec_speaks_every_version_that_a_broker_offers(name: str) -> None:
    """Every version is spoken of each API that the codec speaks at all."""
    ranges = recorded_versions(PROFILES[name]).ranges
    for api in API_NAMES:
        if api in ranges:
            assert ranges[api][1] <= newest_version(api), api.name


def test_a_broker_offers_the_same_versions_whatever_features_it_has_finalized() -> None:
    """Clients choose by the finalized levels that the same answer tells, not by the ranges."""
    for profile in PROFILES.values():
        recorded = recorded_versions(profile)
        assert all(not lowered.ranges for lowered in recorded.lowered)
    asked = [each.features for each in recorded_versions(profile_named("4.4")).lowered]
    assert {"transaction.version": 0} in asked
    assert {"group.version": 0} in asked
