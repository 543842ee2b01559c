"""Which versions and features a served cluster offers.

They are what a broker of the profile told, as far as it is implemented and answered. Ranges do not
move with finalized features: neither do those of Kafka's brokers, whose clients choose by the
finalized levels in the same answer. Every offered version is answered at every level.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from coordinator_sim.mini_broker.implemented import IMPLEMENTED, IMPLEMENTED_FEATURES
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.api_versions import recorded_versions
from coordinator_sim.protocol.profiles import Profile

Ranges = Mapping[ApiKey, tuple[int, int]]
"""Oldest and newest version of each API that is offered, by ascending API numbers."""


class OfferedFeatures(Struct, frozen=True):
    """Features of a cluster of a profile.

    Args:
        supported: Lowest and highest level of each, by name.
        finalized: The levels of a new cluster; those at level 0 are absent.
    """

    supported: dict[str, tuple[int, int]]
    finalized: dict[str, int]


def offered(profile: Profile, spoken: Iterable[ApiKey]) -> Ranges:
    """The versions of those APIs that a broker of the profile offers, as far as implemented."""
    recorded = recorded_versions(profile).ranges
    ranges = {}
    for api in sorted(spoken):
        if api not in recorded or api not in IMPLEMENTED:
            continue
        oldest, newest = recorded[api]
        newest = min(newest, IMPLEMENTED[api].newest)
        if oldest <= newest:
            ranges[api] = (oldest, newest)
    return ranges


def offered_features(profile: Profile) -> OfferedFeatures:
    """The implemented features, at the levels of a default cluster of the profile."""
    recorded = recorded_versions(profile)
    supported = recorded.supported_features
    finalized = recorded.finalized_features
    return OfferedFeatures(
        {name: supported[name] for name in IMPLEMENTED_FEATURES if name in supported},
        {name: finalized[name] for name in IMPLEMENTED_FEATURES if name in finalized},
    )
