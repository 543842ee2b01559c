"""Records of streams groups (KIP-1071) in the `__consumer_offsets` log, as plain data.

Names, fields and defaults are those of Kafka's schema files, so that the recorded schemas
`messages/schemas/StreamsGroup*Record.json` describe their bytes and their JSON. A record of a key
is the latest word on it; a tombstone takes it back.

Source: kafka 4.4, group-coordinator/src/main/resources/common/message/StreamsGroup*.json.
"""

from typing import Final

from msgspec import Struct


class StreamsGroupMetadataKey(Struct, frozen=True, gc=False):
    """Key type 17: the epoch of a group."""

    group_id: str = ""


class LastAssignmentConfig(Struct, frozen=True, gc=False):
    """A setting that assignments depend on."""

    key: str = ""
    value: str = ""


class StreamsGroupMetadataValue(Struct, frozen=True, gc=False):
    """A group's epoch.

    Args:
        epoch: Grows whenever a new assignment is needed.
        metadata_hash: Of the topics that the topology needs; 0 where none of them exists.
        validated_topology_epoch: Of the topology whose topics are as they must be; -1 for none.
        last_assignment_configs: The settings of the assignment, by name.
        stored_description_topology_epoch: Of the topology that a plugin has a description of; -1
            for none.
        failed_description_topology_epoch: Of the topology whose description it refused; likewise.
    """

    epoch: int = 0
    metadata_hash: int = 0
    validated_topology_epoch: int = -1
    last_assignment_configs: tuple[LastAssignmentConfig, ...] | None = ()
    stored_description_topology_epoch: int = -1
    failed_description_topology_epoch: int = -1


class StreamsGroupMemberMetadataKey(Struct, frozen=True, gc=False):
    """Key type 19: what a member said of itself."""

    group_id: str = ""
    member_id: str = ""


class Endpoint(Struct, frozen=True, gc=False):
    """Where a process answers interactive queries."""

    host: str = ""
    port: int = 0


class KeyValue(Struct, frozen=True, gc=False):
    """A tag of a member."""

    key: str = ""
    value: str = ""


class StreamsGroupMemberMetadataValue(Struct, frozen=True, gc=False):
    """A member.

    Args:
        instance_id: Of a static member.
        rack_id: Where it is.
        client_id: Of its last heartbeat.
        client_host: Of its last heartbeat.
        rebalance_timeout_ms: How long it may take to give tasks up.
        topology_epoch: Of the topology that it runs.
        process_id: Of the process, which may run several members.
        user_endpoint: Where it answers interactive queries.
        client_tags: For rack-aware assignments, by name.
    """

    instance_id: str | None = ""
    rack_id: str | None = ""
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()


class StreamsGroupTargetAssignmentMetadataKey(Struct, frozen=True, gc=False):
    """Key type 20: for which epoch the target was computed."""

    group_id: str = ""


class StreamsGroupTargetAssignmentMetadataValue(Struct, frozen=True, gc=False):
    """The target's epoch, and when it was computed; 0 when that is not told."""

    assignment_epoch: int = 0
    assignment_timestamp: int = 0


class TaskIds(Struct, frozen=True, gc=False):
    """Tasks of one subtopology.

    Args:
        subtopology_id: The subtopology.
        partitions: Numbers of the tasks.
        assignment_epochs: The epoch at which the member got each; of active tasks alone.
    """

    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()
    assignment_epochs: tuple[int, ...] | None = None


class StreamsGroupTargetAssignmentMemberKey(Struct, frozen=True, gc=False):
    """Key type 21: what a member shall have."""

    group_id: str = ""
    member_id: str = ""


class StreamsGroupTargetAssignmentMemberValue(Struct, frozen=True, gc=False):
    """What a member shall have, by the role of the tasks."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


class StreamsGroupCurrentMemberAssignmentKey(Struct, frozen=True, gc=False):
    """Key type 22: what a member has."""

    group_id: str = ""
    member_id: str = ""


class StreamsGroupCurrentMemberAssignmentValue(Struct, frozen=True, gc=False):
    """What a member has and must give up, by the role of the tasks.

    Args:
        member_epoch: Of the target that it was last moved to.
        previous_member_epoch: What it was before.
        state: How far it has come; see `streams.member.MemberState`.
        active_tasks: What it runs.
        standby_tasks: Of what it keeps a copy.
        warmup_tasks: Of what it makes a copy.
        active_tasks_pending_revocation: What it must stop running.
        standby_tasks_pending_revocation: Copies that it must give up.
        warmup_tasks_pending_revocation: Likewise.
    """

    member_epoch: int = 0
    previous_member_epoch: int = 0
    state: int = 0
    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()
    active_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    standby_tasks_pending_revocation: tuple[TaskIds, ...] = ()
    warmup_tasks_pending_revocation: tuple[TaskIds, ...] = ()


class StreamsGroupTopologyKey(Struct, frozen=True, gc=False):
    """Key type 23: the topology that the group runs."""

    group_id: str = ""


class TopicConfig(Struct, frozen=True, gc=False):
    """A setting of an internal topic."""

    key: str = ""
    value: str = ""


class TopicInfo(Struct, frozen=True, gc=False):
    """An internal topic.

    Args:
        name: Its name.
        partitions: How many it shall have; 0 lets the coordinator decide.
        replication_factor: Likewise; 0 for the cluster's default.
        topic_configs: Its settings.
    """

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: tuple[TopicConfig, ...] = ()


class CopartitionGroup(Struct, frozen=True, gc=False):
    """Topics that must have the same number of partitions, by their places in the subtopology."""

    source_topics: tuple[int, ...] = ()
    source_topic_regex: tuple[int, ...] = ()
    repartition_source_topics: tuple[int, ...] = ()


class Subtopology(Struct, frozen=True, gc=False):
    """A part of a topology whose tasks read the same topics.

    Args:
        subtopology_id: Its id.
        source_topics: Topics that it reads.
        source_topic_regex: Expressions for more; no release takes any.
        state_changelog_topics: Topics that hold its state.
        repartition_sink_topics: Repartition topics that it writes.
        repartition_source_topics: Repartition topics that it reads.
        copartition_groups: Which of its sources must have the same number of partitions.
    """

    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    source_topic_regex: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[CopartitionGroup, ...] = ()


class StreamsGroupTopologyValue(Struct, frozen=True, gc=False):
    """A topology, and its epoch."""

    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] = ()


StreamsGroupKey = (
    StreamsGroupMetadataKey
    | StreamsGroupMemberMetadataKey
    | StreamsGroupTargetAssignmentMetadataKey
    | StreamsGroupTargetAssignmentMemberKey
    | StreamsGroupCurrentMemberAssignmentKey
    | StreamsGroupTopologyKey
)
"""Keys of the records of streams groups."""

StreamsGroupValue = (
    StreamsGroupMetadataValue
    | StreamsGroupMemberMetadataValue
    | StreamsGroupTargetAssignmentMetadataValue
    | StreamsGroupTargetAssignmentMemberValue
    | StreamsGroupCurrentMemberAssignmentValue
    | StreamsGroupTopologyValue
)
"""Their values."""

STREAMS_RECORD_TYPES: Final[dict[type[StreamsGroupKey], int]] = {
    StreamsGroupMetadataKey: 17,
    StreamsGroupMemberMetadataKey: 19,
    StreamsGroupTargetAssignmentMetadataKey: 20,
    StreamsGroupTargetAssignmentMemberKey: 21,
    StreamsGroupCurrentMemberAssignmentKey: 22,
    StreamsGroupTopologyKey: 23,
}
"""The number that the bytes of a key begin with."""
