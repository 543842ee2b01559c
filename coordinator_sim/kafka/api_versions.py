"""Which versions of each API a real broker of a profile offers, and which features it finalizes.

The answers were recorded from brokers in their default settings (`kafka.releases`). APIs that
are off or unstable there are absent.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

import msgspec
from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import GROUP_APIS, ApiKey
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.kafka.releases import RELEASES, recording

Versions = Mapping[ApiKey, tuple[int, int]]
"""Oldest and newest version of each API offered; an API that is not offered is absent."""


class LoweredVersions(Struct, frozen=True, kw_only=True):
    """Versions that a broker offers while features are finalized below its own levels.

    Args:
        features: The finalized levels, by feature.
        ranges: By API number, only of the APIs that differ; None for an API that is not offered.
    """

    features: dict[str, int]
    ranges: dict[int, tuple[int, int] | None]


class UnstableVersions(Struct, frozen=True, kw_only=True):
    """API versions and feature levels that a broker adds when unstable ones are enabled.

    Args:
        ranges: By API number, with `unstable.api.versions.enable=true`.
        supported_features: With `unstable.feature.versions.enable=true`.
        finalized_features: Of a cluster formatted so.
    """

    ranges: dict[int, tuple[int, int]]
    supported_features: dict[str, tuple[int, int]]
    finalized_features: dict[str, int]


class RecordedVersions(Struct, frozen=True, kw_only=True):
    """The ApiVersions answer of a real broker.

    Args:
        kafka_version: Its release.
        recorded_on: When it was asked, as an ISO date.
        command: What recorded it.
        ranges: Oldest and newest version by API number; also of APIs that nobody here speaks.
        supported_features: Lowest and highest level of each feature.
        finalized_features: The level in force of each feature, of a cluster formatted without
            any being named.
        lowered: What changes with lower levels.
        unstable: What changes with unstable versions; None of a release without these settings.
    """

    kafka_version: str
    recorded_on: str
    command: str
    ranges: dict[int, tuple[int, int]]
    supported_features: dict[str, tuple[int, int]] = {}
    finalized_features: dict[str, int] = {}
    lowered: tuple[LoweredVersions, ...] = ()
    unstable: UnstableVersions | None = None


def recorded_versions(profile: Profile) -> RecordedVersions:
    """What a real broker of this profile answered.

    Raises:
        ConfigError: a profile that is named after no Kafka.
    """
    if profile.name not in RELEASES:
        known = ", ".join(RELEASES)
        raise ConfigError(f"no API versions are known of profile {profile.name!r}: use {known}")
    return _recorded(profile.name)


@cache
def _recorded(name: str) -> RecordedVersions:
    return msgspec.json.decode(recording(name, "api_versions.json"), type=RecordedVersions)


@cache
def _group_versions(name: str) -> Versions:
    ranges = _recorded(name).ranges
    return MappingProxyType({api: ranges[api] for api in sorted(GROUP_APIS) if api in ranges})


def versions_of(profile: Profile) -> Versions:
    """The group APIs that a broker of this profile offers, each with oldest and newest version.

    Raises:
        ConfigError: a profile that is named after no Kafka.
    """
    recorded_versions(profile)
    return _group_versions(profile.name)
