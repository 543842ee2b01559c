"""Keys and values of consumer group records.

Written by tools/write_messages.py from schemas/ConsumerGroupCurrentMemberAssignmentRecord.json,
schemas/ConsumerGroupMemberMetadataRecord.json, schemas/ConsumerGroupMetadataRecord.json,
schemas/ConsumerGroupPartitionMetadataRecord.json,
schemas/ConsumerGroupRegularExpressionRecord.json,
schemas/ConsumerGroupTargetAssignmentMemberRecord.json,
schemas/ConsumerGroupTargetAssignmentMetadataRecord.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.messages.schema import ZERO_UUID


class ConsumerGroupCurrentMemberAssignmentKey(Struct, frozen=True, gc=False):
    """ConsumerGroupCurrentMemberAssignmentKey of versions 0 to 0."""

    record_type: ClassVar[int] = 8
    group_id: str = ""
    member_id: str = ""


class TopicPartitions(Struct, frozen=True, gc=False):
    """An entry of `assignedPartitions`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = None


class ConsumerGroupCurrentMemberAssignmentValue(Struct, frozen=True, gc=False):
    """ConsumerGroupCurrentMemberAssignmentValue of versions 0 to 0."""

    record_type: ClassVar[int] = 8
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()
    partitions_pending_revocation: tuple[TopicPartitions, ...] = ()


class ConsumerGroupMemberMetadataKey(Struct, frozen=True, gc=False):
    """ConsumerGroupMemberMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 5
    group_id: str = ""
    member_id: str = ""


class ClassicProtocol(Struct, frozen=True, gc=False):
    """An entry of `supportedProtocols`."""

    name: str = ""
    metadata: bytes = b""


class ClassicMemberMetadata(Struct, frozen=True, gc=False):
    """The value of `classicMemberMetadata`."""

    session_timeout_ms: int = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


class ConsumerGroupMemberMetadataValue(Struct, frozen=True, gc=False):
    """ConsumerGroupMemberMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 5
    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = ClassicMemberMetadata()


class ConsumerGroupMetadataKey(Struct, frozen=True, gc=False):
    """ConsumerGroupMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 3
    group_id: str = ""


class ConsumerGroupMetadataValue(Struct, frozen=True, gc=False):
    """ConsumerGroupMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 3
    epoch: int = 0
    metadata_hash: int = 0


class ConsumerGroupPartitionMetadataKey(Struct, frozen=True, gc=False):
    """ConsumerGroupPartitionMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 4
    group_id: str = ""


class PartitionMetadata(Struct, frozen=True, gc=False):
    """An entry of `partitionMetadata`."""

    partition: int = 0
    racks: tuple[str, ...] = ()


class TopicMetadata(Struct, frozen=True, gc=False):
    """An entry of `topics`."""

    topic_id: bytes = ZERO_UUID
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: tuple[PartitionMetadata, ...] = ()


class ConsumerGroupPartitionMetadataValue(Struct, frozen=True, gc=False):
    """ConsumerGroupPartitionMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 4
    topics: tuple[TopicMetadata, ...] = ()


class ConsumerGroupRegularExpressionKey(Struct, frozen=True, gc=False):
    """ConsumerGroupRegularExpressionKey of versions 0 to 0."""

    record_type: ClassVar[int] = 16
    group_id: str = ""
    regular_expression: str = ""


class ConsumerGroupRegularExpressionValue(Struct, frozen=True, gc=False):
    """ConsumerGroupRegularExpressionValue of versions 0 to 0."""

    record_type: ClassVar[int] = 16
    topics: tuple[str, ...] = ()
    version: int = 0
    timestamp: int = 0


class ConsumerGroupTargetAssignmentMemberKey(Struct, frozen=True, gc=False):
    """ConsumerGroupTargetAssignmentMemberKey of versions 0 to 0."""

    record_type: ClassVar[int] = 7
    group_id: str = ""
    member_id: str = ""


class TopicPartition(Struct, frozen=True, gc=False):
    """An entry of `topicPartitions`."""

    topic_id: bytes = ZERO_UUID
    partitions: tuple[int, ...] = ()


class ConsumerGroupTargetAssignmentMemberValue(Struct, frozen=True, gc=False):
    """ConsumerGroupTargetAssignmentMemberValue of versions 0 to 0."""

    record_type: ClassVar[int] = 7
    topic_partitions: tuple[TopicPartition, ...] = ()


class ConsumerGroupTargetAssignmentMetadataKey(Struct, frozen=True, gc=False):
    """ConsumerGroupTargetAssignmentMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 6
    group_id: str = ""


class ConsumerGroupTargetAssignmentMetadataValue(Struct, frozen=True, gc=False):
    """ConsumerGroupTargetAssignmentMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 6
    assignment_epoch: int = 0
    assignment_timestamp: int = 0


ConsumerGroupKey = (
    ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupRegularExpressionKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupTargetAssignmentMetadataKey
)
"""A key of these records."""


ConsumerGroupValue = (
    ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupRegularExpressionValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupTargetAssignmentMetadataValue
)
"""A value of these records."""
