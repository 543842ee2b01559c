"""The API versions and features that a served cluster offers.

They are those recorded from a broker of the profile, as far as implemented. As in Kafka, ranges
do not depend on finalized features: clients choose by the finalized levels in the same answer.
Every offered version is answered at every level. Unstable versions are offered where the settings
enable them, of the APIs and features that the release also offers without.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.implemented import IMPLEMENTED, IMPLEMENTED_FEATURES
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import UnstableVersions, recorded_versions
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.messages.catalogue import CONTROL_APIS, SHARE_GROUP_APIS

_SHARE_VERSION: Final = "share.version"
_UNSTABLE_APIS: Final = "unstable.api.versions.enable"
_UNSTABLE_FEATURES: Final = "unstable.feature.versions.enable"

Ranges = Mapping[ApiKey, tuple[int, int]]
"""Oldest and newest offered version of each API, by ascending API numbers."""


class OfferedFeatures(Struct, frozen=True):
    """Features of a profile's cluster.

    Args:
        supported: Lowest and highest level of each feature, by name.
        finalized: Levels in a new cluster, by name; features at level 0 are absent.
    """

    supported: dict[str, tuple[int, int]]
    finalized: dict[str, int]


def _unstable(profile: Profile, configs: Configs | None, name: str) -> UnstableVersions | None:
    """The unstable versions of a release; None unless that setting enables them."""
    if configs is None or name not in configs.broker or configs.broker_value(name) is not True:
        return None
    return recorded_versions(profile).unstable


def offered(profile: Profile, spoken: Iterable[ApiKey], configs: Configs | None = None) -> Ranges:
    """The versions of the given APIs that a broker of the profile offers, as far as implemented.

    DEVIATION: 4.1 offers the APIs of share groups as a preview, which is off in a new cluster.

    Args:
        profile: Of the brokers.
        spoken: The APIs with a handler.
        configs: Of the brokers; None for the defaults.
    """
    recorded = recorded_versions(profile)
    unstable = _unstable(profile, configs, _UNSTABLE_APIS)
    more = {} if unstable is None else unstable.ranges
    ranges = {}
    for api in sorted(spoken):
        if api not in recorded.ranges or api not in IMPLEMENTED:
            continue
        if api in SHARE_GROUP_APIS and not profile.share_groups:
            continue
        oldest, newest_recorded = more.get(api, recorded.ranges[api])
        newest = min(newest_recorded, IMPLEMENTED[api].newest)
        if api in CONTROL_APIS and newest < newest_recorded:
            continue  # a controller sends the newest version alone
        if oldest <= newest:
            ranges[api] = (oldest, newest)
    return ranges


def offered_features(profile: Profile, configs: Configs | None = None) -> OfferedFeatures:
    """The implemented features, at the levels of a default cluster of the profile.

    Args:
        profile: Of the brokers.
        configs: Of the brokers; None for the defaults.
    """
    recorded = recorded_versions(profile)
    supported, finalized = recorded.supported_features, recorded.finalized_features
    names = [
        name
        for name in IMPLEMENTED_FEATURES
        if name in supported and (name != _SHARE_VERSION or profile.share_groups)
    ]
    unstable = _unstable(profile, configs, _UNSTABLE_FEATURES)
    if unstable is not None:
        supported = supported | unstable.supported_features
        finalized = finalized | unstable.finalized_features
    return OfferedFeatures(
        {name: supported[name] for name in names},
        {name: finalized[name] for name in names if name in finalized},
    )


def first_levels(features: OfferedFeatures, wanted: Mapping[str, int]) -> dict[str, int]:
    """The level of each feature in a new cluster.

    Args:
        features: Of the profile.
        wanted: Levels that are wanted otherwise, as by `kafka-storage format --feature`.

    Raises:
        ConfigError: there is no such feature, or no such level of it.
    """
    for name, level in wanted.items():
        if name not in features.supported:
            known = ", ".join(features.supported) or "this Kafka has none"
            raise ConfigError(f"feature {name!r}: unknown here, use one of: {known}")
        low, high = features.supported[name]
        if not low <= level <= high:
            raise ConfigError(f"feature {name}={level}: must be from {low} to {high}")
    return features.finalized | dict(wanted)
