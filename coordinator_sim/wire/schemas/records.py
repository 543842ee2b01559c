"""Schemas of the records of `__consumer_offsets` that classic groups write.

Source: kafka trunk, group-coordinator/src/main/resources/common/message/{OffsetCommit,
GroupMetadata}{Key,Value}.json.
"""

from functools import cache
from typing import Final

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.wire.schema import (
    Fields,
    Layout,
    data,
    int32,
    int64,
    optional,
    string,
    struct_layout,
    structs,
    uuid,
)

OFFSET_COMMIT_KEY: Final = 1
"""Key version of an offset; 0 is its older number, with the same fields."""
GROUP_METADATA_KEY: Final = 2
"""Key version of a group."""
_NEWEST_VALUE: Final = 4
_FLEXIBLE_SINCE: Final = 4

_OFFSET_KEY: Final = (string("group"), string("topic"), int32("partition"))
_OFFSET_VALUE: Final = (
    int64("offset"),
    int32("leaderEpoch", since=3, default=-1, ignorable=True),
    string("metadata"),
    int64("commitTimestamp"),
    int64("expireTimestamp", since=1, until=1, default=-1, ignorable=True),
    uuid("topicId", since=4, ignorable=True, tag=0),
)
_GROUP_KEY: Final = (string("group"),)
_GROUP_VALUE: Final = (
    string("protocolType"),
    int32("generation"),
    string("protocol", nullable_since=0),
    string("leader", nullable_since=0),
    int64("currentStateTimestamp", since=2, default=-1, ignorable=True),
    structs(
        "members",
        (
            string("memberId"),
            optional("groupInstanceId", 3, ignorable=True),
            string("clientId"),
            string("clientHost"),
            int32("rebalanceTimeout", since=1, ignorable=True),
            int32("sessionTimeout"),
            data("subscription"),
            data("assignment"),
        ),
    ),
)
_KEYS: Final[dict[int, tuple[str, Fields]]] = {
    0: ("OffsetCommitKey", _OFFSET_KEY),
    OFFSET_COMMIT_KEY: ("OffsetCommitKey", _OFFSET_KEY),
    GROUP_METADATA_KEY: ("GroupMetadataKey", _GROUP_KEY),
}


@cache
def key_layout(key_type: int) -> Layout:
    """The fields of a record's key; its type is also its version.

    Raises:
        UnsupportedVersion: not an offset or a classic group.
    """
    if key_type not in _KEYS:
        raise UnsupportedVersion(
            f"records of key type {key_type} are not known: use 0 or 1 for an offset, 2 for a group"
        )
    name, fields = _KEYS[key_type]
    return struct_layout(name, fields, key_type, flexible=False)


@cache
def value_layout(key_type: int, version: int) -> Layout:
    """The fields of the value of a record with that key type.

    Raises:
        UnsupportedVersion: no such key type, or no such version of the value.
    """
    group = key_layout(key_type).name == "GroupMetadataKey"
    name, fields = (
        ("GroupMetadataValue", _GROUP_VALUE) if group else ("OffsetCommitValue", _OFFSET_VALUE)
    )
    if not 0 <= version <= _NEWEST_VALUE:
        raise UnsupportedVersion(f"{name} has no version {version}: use 0 to {_NEWEST_VALUE}")
    return struct_layout(name, fields, version, flexible=version >= _FLEXIBLE_SINCE)
