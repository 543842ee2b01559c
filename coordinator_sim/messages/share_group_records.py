"""Keys and values of share group records.

Written by tools/write_messages.py from schemas/ShareGroupCurrentMemberAssignmentRecord.json,
schemas/ShareGroupMemberMetadataRecord.json, schemas/ShareGroupMetadataRecord.json,
schemas/ShareGroupStatePartitionMetadataRecord.json,
schemas/ShareGroupTargetAssignmentMemberRecord.json,
schemas/ShareGroupTargetAssignmentMetadataRecord.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.messages.schema import ZERO_UUID


class ShareGroupCurrentMemberAssignmentKey(Struct, frozen=True, gc=False):
    """ShareGroupCurrentMemberAssignmentKey of versions 0 to 0."""

    record_type: ClassVar[int] = 14
    group_id: str = ""
    member_id: str = ""


class TopicPartitions(Struct, frozen=True, gc=False):
    """An entry of `assignedPartitions`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


class ShareGroupCurrentMemberAssignmentValue(Struct, frozen=True, gc=False):
    """ShareGroupCurrentMemberAssignmentValue of versions 0 to 0."""

    record_type: ClassVar[int] = 14
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()


class ShareGroupMemberMetadataKey(Struct, frozen=True, gc=False):
    """ShareGroupMemberMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 10
    group_id: str = ""
    member_id: str = ""


class ShareGroupMemberMetadataValue(Struct, frozen=True, gc=False):
    """ShareGroupMemberMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 10
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()


class ShareGroupMetadataKey(Struct, frozen=True, gc=False):
    """ShareGroupMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 11
    group_id: str = ""


class ShareGroupMetadataValue(Struct, frozen=True, gc=False):
    """ShareGroupMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 11
    epoch: int = 0
    metadata_hash: int = 0


class ShareGroupStatePartitionMetadataKey(Struct, frozen=True, gc=False):
    """ShareGroupStatePartitionMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 15
    group_id: str = ""


class TopicPartitionsInfo(Struct, frozen=True, gc=False):
    """An entry of `initializingTopics`."""

    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    partitions: tuple[int, ...] = ()


class TopicInfo(Struct, frozen=True, gc=False):
    """An entry of `deletingTopics`."""

    topic_id: bytes = ZERO_UUID
    topic_name: str = ""


class ShareGroupStatePartitionMetadataValue(Struct, frozen=True, gc=False):
    """ShareGroupStatePartitionMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 15
    initializing_topics: tuple[TopicPartitionsInfo, ...] = ()
    initialized_topics: tuple[TopicPartitionsInfo, ...] = ()
    deleting_topics: tuple[TopicInfo, ...] = ()


class ShareGroupTargetAssignmentMemberKey(Struct, frozen=True, gc=False):
    """ShareGroupTargetAssignmentMemberKey of versions 0 to 0."""

    record_type: ClassVar[int] = 13
    group_id: str = ""
    member_id: str = ""


class TopicPartition(Struct, frozen=True, gc=False):
    """An entry of `topicPartitions`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


class ShareGroupTargetAssignmentMemberValue(Struct, frozen=True, gc=False):
    """ShareGroupTargetAssignmentMemberValue of versions 0 to 0."""

    record_type: ClassVar[int] = 13
    topic_partitions: tuple[TopicPartition, ...] = ()


class ShareGroupTargetAssignmentMetadataKey(Struct, frozen=True, gc=False):
    """ShareGroupTargetAssignmentMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 12
    group_id: str = ""


class ShareGroupTargetAssignmentMetadataValue(Struct, frozen=True, gc=False):
    """ShareGroupTargetAssignmentMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 12
    assignment_epoch: int = 0
    assignment_timestamp: int = 0


ShareGroupKey = (
    ShareGroupCurrentMemberAssignmentKey
    | ShareGroupMemberMetadataKey
    | ShareGroupMetadataKey
    | ShareGroupStatePartitionMetadataKey
    | ShareGroupTargetAssignmentMemberKey
    | ShareGroupTargetAssignmentMetadataKey
)
"""A key of these records."""


ShareGroupValue = (
    ShareGroupCurrentMemberAssignmentValue
    | ShareGroupMemberMetadataValue
    | ShareGroupMetadataValue
    | ShareGroupStatePartitionMetadataValue
    | ShareGroupTargetAssignmentMemberValue
    | ShareGroupTargetAssignmentMetadataValue
)
"""A value of these records."""
