"""Records of share groups (KIP-932) in the `__consumer_offsets` log, as plain data.

Names, fields and defaults are those of Kafka's schema files, so that the recorded schemas
`messages/schemas/ShareGroup*Record.json` describe their bytes and their JSON. A record of a key is
the latest word on it; a tombstone takes it back.

Source: kafka 4.4, group-coordinator/src/main/resources/common/message/ShareGroup*.json.
"""

from typing import Final

from msgspec import Struct


class ShareGroupMemberMetadataKey(Struct, frozen=True, gc=False):
    """Key type 10: what a member said of itself."""

    group_id: str = ""
    member_id: str = ""


class ShareGroupMemberMetadataValue(Struct, frozen=True, gc=False):
    """What a member said of itself; topic names are in ascending order."""

    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()


class ShareGroupMetadataKey(Struct, frozen=True, gc=False):
    """Key type 11: the epoch of a group."""

    group_id: str = ""


class ShareGroupMetadataValue(Struct, frozen=True, gc=False):
    """A group's epoch.

    Args:
        epoch: Grows whenever a new assignment is needed.
        metadata_hash: Of the topics that the group subscribes to; 0 where there are none.
    """

    epoch: int = 0
    metadata_hash: int = 0


class ShareGroupTargetAssignmentMetadataKey(Struct, frozen=True, gc=False):
    """Key type 12: for which epoch of the group the target was computed."""

    group_id: str = ""


class ShareGroupTargetAssignmentMetadataValue(Struct, frozen=True, gc=False):
    """The epoch of a group's target.

    Args:
        assignment_epoch: The group's epoch when the target was computed.
        assignment_timestamp: When that was, in milliseconds; 0 when unknown.
    """

    assignment_epoch: int = 0
    assignment_timestamp: int = 0


class ShareGroupTargetAssignmentMemberKey(Struct, frozen=True, gc=False):
    """Key type 13: what a member shall have."""

    group_id: str = ""
    member_id: str = ""


class TopicPartition(Struct, frozen=True, gc=False):
    """Partitions of one topic in a target."""

    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()


class ShareGroupTargetAssignmentMemberValue(Struct, frozen=True, gc=False):
    """What a member shall have."""

    topic_partitions: tuple[TopicPartition, ...] = ()


class ShareGroupCurrentMemberAssignmentKey(Struct, frozen=True, gc=False):
    """Key type 14: what a member has."""

    group_id: str = ""
    member_id: str = ""


class TopicPartitions(Struct, frozen=True, gc=False):
    """Partitions of one topic that a member has."""

    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()


class ShareGroupCurrentMemberAssignmentValue(Struct, frozen=True, gc=False):
    """What a member has; `state` is the number of its member state."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()


class ShareGroupStatePartitionMetadataKey(Struct, frozen=True, gc=False):
    """Key type 15: of which partitions the share coordinator keeps the group's state."""

    group_id: str = ""


class TopicPartitionsInfo(Struct, frozen=True, gc=False):
    """Partitions of one topic."""

    topic_id: bytes = bytes(16)
    topic_name: str = ""
    partitions: tuple[int, ...] = ()


class TopicInfo(Struct, frozen=True, gc=False):
    """A topic."""

    topic_id: bytes = bytes(16)
    topic_name: str = ""


class ShareGroupStatePartitionMetadataValue(Struct, frozen=True, gc=False):
    """Of which partitions the share coordinator keeps the group's state.

    Args:
        initializing_topics: It was asked to begin with them.
        initialized_topics: It has begun; these may be assigned.
        deleting_topics: It was asked to forget them.
    """

    initializing_topics: tuple[TopicPartitionsInfo, ...] = ()
    initialized_topics: tuple[TopicPartitionsInfo, ...] = ()
    deleting_topics: tuple[TopicInfo, ...] = ()


ShareGroupKey = (
    ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupTargetAssignmentMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupCurrentMemberAssignmentKey
    | ShareGroupStatePartitionMetadataKey
)
"""A key of a record of a share group."""

ShareGroupValue = (
    ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupTargetAssignmentMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupCurrentMemberAssignmentValue
    | ShareGroupStatePartitionMetadataValue
)
"""A value of a record of a share group."""

SHARE_RECORD_TYPES: Final[dict[type[ShareGroupKey], int]] = {
    ShareGroupMemberMetadataKey: 10,
    ShareGroupMetadataKey: 11,
    ShareGroupTargetAssignmentMetadataKey: 12,
    ShareGroupTargetAssignmentMemberKey: 13,
    ShareGroupCurrentMemberAssignmentKey: 14,
    ShareGroupStatePartitionMetadataKey: 15,
}
"""The number that a key's bytes begin with. Source: CoordinatorRecordType."""
