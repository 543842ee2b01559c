"""Records of consumer groups (KIP-848) in the `__consumer_offsets` log, as plain data.

Names, fields and defaults are those of Kafka's schema files, so that the recorded schemas
`messages/schemas/ConsumerGroup*Record.json` describe their bytes and their JSON. A record of a key
is the latest word on it; a tombstone takes it back.

Source: kafka 4.4, group-coordinator/src/main/resources/common/message/ConsumerGroup*.json.
"""

from typing import Final

from msgspec import Struct


class ConsumerGroupMetadataKey(Struct, frozen=True, gc=False):
    """Key type 3: the epoch of a group."""

    group_id: str = ""


class ConsumerGroupMetadataValue(Struct, frozen=True, gc=False):
    """A group's epoch.

    Args:
        epoch: Grows whenever a new assignment is needed.
        metadata_hash: Of the topics that the group subscribes to; 0 where there are none, and in
            releases that store the topics themselves.
    """

    epoch: int = 0
    metadata_hash: int = 0


class ConsumerGroupPartitionMetadataKey(Struct, frozen=True, gc=False):
    """Key type 4: the topics of a group, in releases without a hash of them."""

    group_id: str = ""


class PartitionMetadata(Struct, frozen=True, gc=False):
    """The racks of one partition."""

    partition: int = 0
    racks: tuple[str, ...] = ()


class TopicMetadata(Struct, frozen=True, gc=False):
    """A topic as the group knew it when it last looked."""

    topic_id: bytes = bytes(16)
    topic_name: str = ""
    num_partitions: int = 0
    partition_metadata: tuple[PartitionMetadata, ...] = ()


class ConsumerGroupPartitionMetadataValue(Struct, frozen=True, gc=False):
    """The topics of a group."""

    topics: tuple[TopicMetadata, ...] = ()


class ConsumerGroupMemberMetadataKey(Struct, frozen=True, gc=False):
    """Key type 5: what a member said of itself."""

    group_id: str = ""
    member_id: str = ""


class ClassicProtocol(Struct, frozen=True, gc=False):
    """A protocol that a member of the classic protocol supports."""

    name: str = ""
    metadata: bytes = b""


class ClassicMemberMetadata(Struct, frozen=True, gc=False):
    """What a member of the classic protocol has beside the others."""

    session_timeout_ms: int = 0
    supported_protocols: tuple[ClassicProtocol, ...] = ()


class ConsumerGroupMemberMetadataValue(Struct, frozen=True, gc=False):
    """What a member said of itself; topic names are in ascending order."""

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    subscribed_topic_names: tuple[str, ...] = ()
    subscribed_topic_regex: str | None = ""
    rebalance_timeout_ms: int = -1
    server_assignor: str | None = ""
    classic_member_metadata: ClassicMemberMetadata | None = None


class ConsumerGroupTargetAssignmentMetadataKey(Struct, frozen=True, gc=False):
    """Key type 6: for which epoch of the group the target was computed."""

    group_id: str = ""


class ConsumerGroupTargetAssignmentMetadataValue(Struct, frozen=True, gc=False):
    """The epoch of a group's target.

    Args:
        assignment_epoch: The group's epoch when the target was computed.
        assignment_timestamp: When that was, in milliseconds; 0 when unknown.
    """

    assignment_epoch: int = 0
    assignment_timestamp: int = 0


class ConsumerGroupTargetAssignmentMemberKey(Struct, frozen=True, gc=False):
    """Key type 7: what a member shall have."""

    group_id: str = ""
    member_id: str = ""


class TopicPartition(Struct, frozen=True, gc=False):
    """Partitions of one topic in a target."""

    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()


class ConsumerGroupTargetAssignmentMemberValue(Struct, frozen=True, gc=False):
    """What a member shall have."""

    topic_partitions: tuple[TopicPartition, ...] = ()


class ConsumerGroupCurrentMemberAssignmentKey(Struct, frozen=True, gc=False):
    """Key type 8: what a member has."""

    group_id: str = ""
    member_id: str = ""


class TopicPartitions(Struct, frozen=True, gc=False):
    """Partitions of one topic that a member has.

    Args:
        topic_id: 16 bytes.
        partitions: Their numbers.
        assignment_epochs: At which epoch the member got each, in the order of `partitions`; None
            in records of releases that did not store it.
    """

    topic_id: bytes = bytes(16)
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = None


class ConsumerGroupCurrentMemberAssignmentValue(Struct, frozen=True, gc=False):
    """What a member has, and how far it has come; `state` is the number of its member state."""

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    assigned_partitions: tuple[TopicPartitions, ...] = ()
    partitions_pending_revocation: tuple[TopicPartitions, ...] = ()


class ConsumerGroupRegularExpressionKey(Struct, frozen=True, gc=False):
    """Key type 16: a regular expression that members subscribe to."""

    group_id: str = ""
    regular_expression: str = ""


class ConsumerGroupRegularExpressionValue(Struct, frozen=True, gc=False):
    """The topics that an expression matched.

    Args:
        topics: Their names in ascending order.
        version: Of the metadata that was looked through.
        timestamp: When that was, in milliseconds.
    """

    topics: tuple[str, ...] = ()
    version: int = 0
    timestamp: int = 0


ConsumerGroupKey = (
    ConsumerGroupMetadataKey
    | ConsumerGroupPartitionMetadataKey
    | ConsumerGroupMemberMetadataKey
    | ConsumerGroupTargetAssignmentMetadataKey
    | ConsumerGroupTargetAssignmentMemberKey
    | ConsumerGroupCurrentMemberAssignmentKey
    | ConsumerGroupRegularExpressionKey
)
"""A key of a record of a consumer group."""
ConsumerGroupValue = (
    ConsumerGroupMetadataValue
    | ConsumerGroupPartitionMetadataValue
    | ConsumerGroupMemberMetadataValue
    | ConsumerGroupTargetAssignmentMetadataValue
    | ConsumerGroupTargetAssignmentMemberValue
    | ConsumerGroupCurrentMemberAssignmentValue
    | ConsumerGroupRegularExpressionValue
)
"""A value of a record of a consumer group."""

CONSUMER_RECORD_TYPES: Final[dict[type[ConsumerGroupKey], int]] = {
    ConsumerGroupMetadataKey: 3,
    ConsumerGroupPartitionMetadataKey: 4,
    ConsumerGroupMemberMetadataKey: 5,
    ConsumerGroupTargetAssignmentMetadataKey: 6,
    ConsumerGroupTargetAssignmentMemberKey: 7,
    ConsumerGroupCurrentMemberAssignmentKey: 8,
    ConsumerGroupRegularExpressionKey: 16,
}
"""The number that a key's bytes begin with. Source: CoordinatorRecordType."""
