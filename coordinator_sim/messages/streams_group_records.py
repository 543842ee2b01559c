"""Keys and values of streams group records.

Written by tools/write_messages.py from schemas/StreamsGroupCurrentMemberAssignmentRecord.json,
schemas/StreamsGroupMemberMetadataRecord.json, schemas/StreamsGroupMetadataRecord.json,
schemas/StreamsGroupTargetAssignmentMemberRecord.json,
schemas/StreamsGroupTargetAssignmentMetadataRecord.json, schemas/StreamsGroupTopologyRecord.json.
"""

from typing import ClassVar

from msgspec import Struct


class StreamsGroupCurrentMemberAssignmentKey(Struct, frozen=True, gc=False):
    """StreamsGroupCurrentMemberAssignmentKey of versions 0 to 0."""

    record_type: ClassVar[int] = 22
    group_id: str = ""
    member_id: str = ""


class TaskIds(Struct, frozen=True, gc=False):
    """An entry of `activeTasks`."""

    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = None


class StreamsGroupCurrentMemberAssignmentValue(Struct, frozen=True, gc=False):
    """StreamsGroupCurrentMemberAssignmentValue of versions 0 to 0."""

    record_type: ClassVar[int] = 22
    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()
    active_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    standby_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    warmup_tasks_pending_revocation: tuple[TaskIds, ...] = ()


class StreamsGroupMemberMetadataKey(Struct, frozen=True, gc=False):
    """StreamsGroupMemberMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 19
    group_id: str = ""
    member_id: str = ""


class Endpoint(Struct, frozen=True, gc=False):
    """The value of `userEndpoint`."""

    host: str = ""
    port: int = 0


class KeyValue(Struct, frozen=True, gc=False):
    """An entry of `clientTags`."""

    key: str = ""
    value: str = ""


class StreamsGroupMemberMetadataValue(Struct, frozen=True, gc=False):
    """StreamsGroupMemberMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 19
    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()


class StreamsGroupMetadataKey(Struct, frozen=True, gc=False):
    """StreamsGroupMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 17
    group_id: str = ""


class LastAssignmentConfig(Struct, frozen=True, gc=False):
    """An entry of `lastAssignmentConfigs`."""

    key: str = ""
    value: str = ""


class StreamsGroupMetadataValue(Struct, frozen=True, gc=False):
    """StreamsGroupMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 17
    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: tuple[LastAssignmentConfig, ...] | None = ()
    stored_description_topology_epoch: int = -1
    failed_description_topology_epoch: int = -1


class StreamsGroupTargetAssignmentMemberKey(Struct, frozen=True, gc=False):
    """StreamsGroupTargetAssignmentMemberKey of versions 0 to 0."""

    record_type: ClassVar[int] = 21
    group_id: str = ""
    member_id: str = ""


class StreamsGroupTargetAssignmentMemberValue(Struct, frozen=True, gc=False):
    """StreamsGroupTargetAssignmentMemberValue of versions 0 to 0."""

    record_type: ClassVar[int] = 21
    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


class StreamsGroupTargetAssignmentMetadataKey(Struct, frozen=True, gc=False):
    """StreamsGroupTargetAssignmentMetadataKey of versions 0 to 0."""

    record_type: ClassVar[int] = 20
    group_id: str = ""


class StreamsGroupTargetAssignmentMetadataValue(Struct, frozen=True, gc=False):
    """StreamsGroupTargetAssignmentMetadataValue of versions 0 to 0."""

    record_type: ClassVar[int] = 20
    assignment_epoch: int = 0
    assignment_timestamp: int = 0


class StreamsGroupTopologyKey(Struct, frozen=True, gc=False):
    """StreamsGroupTopologyKey of versions 0 to 0."""

    record_type: ClassVar[int] = 23
    group_id: str = ""


class TopicConfig(Struct, frozen=True, gc=False):
    """An entry of `topicConfigs`."""

    key: str = ""
    value: str = ""


class TopicInfo(Struct, frozen=True, gc=False):
    """An entry of `stateChangelogTopics`."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: tuple[TopicConfig, ...] = ()


class CopartitionGroup(Struct, frozen=True, gc=False):
    """An entry of `copartitionGroups`."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class Subtopology(Struct, frozen=True, gc=False):
    """An entry of `subtopologies`."""

    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


class StreamsGroupTopologyValue(Struct, frozen=True, gc=False):
    """StreamsGroupTopologyValue of versions 0 to 0."""

    record_type: ClassVar[int] = 23
    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] = ()


StreamsGroupKey = (
    StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTopologyKey
)
"""A key of these records."""


StreamsGroupValue = (
    StreamsGroupCurrentMemberAssignmentValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTopologyValue
)
"""A value of these records."""
