"""Which versions of each group API a broker of a profile offers.

Source: the ApiVersions answers of brokers 3.9.2 and 4.0.2 to 4.4.0; `ApiKeys.oldestVersion` and
`latestVersion` of kafka-clients 2.8.2, 3.9.2, 4.3.1 and 4.4.0; `ProtoUtils` of 0.10.2.2.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.profiles import Profile

Versions = Mapping[ApiKey, tuple[int, int]]
"""Oldest and newest version of each API offered; an API that is not offered is absent."""

_V0_10_2: Final = {
    ApiKey.METADATA: (0, 2),
    ApiKey.OFFSET_COMMIT: (0, 2),
    ApiKey.OFFSET_FETCH: (0, 2),
    ApiKey.FIND_COORDINATOR: (0, 0),
    ApiKey.JOIN_GROUP: (0, 1),
    ApiKey.HEARTBEAT: (0, 0),
    ApiKey.LEAVE_GROUP: (0, 0),
    ApiKey.SYNC_GROUP: (0, 0),
    ApiKey.DESCRIBE_GROUPS: (0, 0),
    ApiKey.LIST_GROUPS: (0, 0),
}
_V2_8: Final = {
    ApiKey.METADATA: (0, 11),
    ApiKey.OFFSET_COMMIT: (0, 8),
    ApiKey.OFFSET_FETCH: (0, 7),
    ApiKey.FIND_COORDINATOR: (0, 3),
    ApiKey.JOIN_GROUP: (0, 7),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 4),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 5),
    ApiKey.LIST_GROUPS: (0, 4),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 3),
    ApiKey.WRITE_TXN_MARKERS: (0, 1),
    ApiKey.TXN_OFFSET_COMMIT: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.OFFSET_DELETE: (0, 0),
}
_V3_9: Final = {
    **_V2_8,
    ApiKey.METADATA: (0, 12),
    ApiKey.OFFSET_COMMIT: (0, 9),
    ApiKey.OFFSET_FETCH: (0, 9),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.TXN_OFFSET_COMMIT: (0, 4),
}
# JoinGroup 0 and 1 were gone in 4.0.0 and came back with KAFKA-19444, in 4.0.2 too.
_V4_0: Final = {
    **_V3_9,
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (2, 9),
    ApiKey.OFFSET_FETCH: (1, 9),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.WRITE_TXN_MARKERS: (1, 1),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
}
_V4_2: Final = {
    **_V4_0,
    ApiKey.OFFSET_COMMIT: (2, 10),
    ApiKey.OFFSET_FETCH: (1, 10),
    ApiKey.WRITE_TXN_MARKERS: (1, 2),
}
_V4_4: Final = {
    **_V4_2,
    ApiKey.TXN_OFFSET_COMMIT: (0, 6),
    ApiKey.DELETE_GROUPS: (0, 3),
}

_OFFERED: Final[dict[str, Versions]] = {
    "0.10.2": MappingProxyType(_V0_10_2),
    "2.8": MappingProxyType(_V2_8),
    "3.9": MappingProxyType(_V3_9),
    "4.0": MappingProxyType(_V4_0),
    "4.1": MappingProxyType(_V4_0),
    "4.2": MappingProxyType(_V4_2),
    "4.3": MappingProxyType(_V4_2),
    "4.4": MappingProxyType(_V4_4),
}


def versions_of(profile: Profile) -> Versions:
    """The APIs that a broker of this profile offers, each with its oldest and newest version.

    Raises:
        ConfigError: a profile that is named after no Kafka.
    """
    offered = _OFFERED.get(profile.name)
    if offered is None:
        known = ", ".join(_OFFERED)
        raise ConfigError(f"no API versions are known of profile {profile.name!r}: use {known}")
    return offered
