"""The messages of StreamsGroupDescribe.

Written by tools/write_messages.py from schemas/StreamsGroupDescribe.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class StreamsGroupDescribeRequest(Struct, frozen=True, gc=False):
    """StreamsGroupDescribeRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_DESCRIBE
    group_ids: tuple[str, ...] = ()
    include_authorized_operations: bool = False
    include_topology_description: bool = False


class KeyValue(Struct, frozen=True, gc=False):
    """An entry of `topicConfigs`."""

    key: str = ""
    value: str = ""


class TopicInfo(Struct, frozen=True, gc=False):
    """An entry of `stateChangelogTopics`."""

    name: str = ""
    partitions: int = 0
    replication_factor: int = 0
    topic_configs: tuple[KeyValue, ...] = ()


class Subtopology(Struct, frozen=True, gc=False):
    """An entry of `subtopologies`."""

    subtopology_id: str = ""
    source_topics: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()


class Topology(Struct, frozen=True, gc=False):
    """The value of `topology`."""

    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] | None = None


class Endpoint(Struct, frozen=True, gc=False):
    """The value of `userEndpoint`."""

    host: str = ""
    port: int = 0


class TaskOffset(Struct, frozen=True, gc=False):
    """An entry of `taskOffsets`."""

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


class TaskIds(Struct, frozen=True, gc=False):
    """An entry of `activeTasks`."""

    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()


class Assignment(Struct, frozen=True, gc=False):
    """The value of `assignment`."""

    active_tasks: tuple[TaskIds, ...] = ()
    standby_tasks: tuple[TaskIds, ...] = ()
    warmup_tasks: tuple[TaskIds, ...] = ()


class Member(Struct, frozen=True, gc=False):
    """An entry of `members`."""

    member_id: str = ""
    member_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topology_epoch: int = 0
    process_id: str = ""
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] = ()
    task_offsets: tuple[TaskOffset, ...] = ()
    task_end_offsets: tuple[TaskOffset, ...] = ()
    assignment: Assignment = Assignment()
    target_assignment: Assignment = Assignment()
    is_classic: bool = False


class TopologyDescriptionNode(Struct, frozen=True, gc=False):
    """An entry of `nodes`."""

    name: str = ""
    node_type: int = 0
    source_topics: tuple[str, ...] = ()
    sink_topic: str | None = None
    stores: tuple[str, ...] = ()
    successors: tuple[str, ...] = ()


class TopologyDescriptionSubtopology(Struct, frozen=True, gc=False):
    """An entry of `subtopologies`."""

    subtopology_id: str = ""
    nodes: tuple[TopologyDescriptionNode, ...] = ()


class TopologyDescriptionGlobalStore(Struct, frozen=True, gc=False):
    """An entry of `globalStores`."""

    source: TopologyDescriptionNode = TopologyDescriptionNode()
    processor: TopologyDescriptionNode = TopologyDescriptionNode()


class TopologyDescription(Struct, frozen=True, gc=False):
    """The value of `topologyDescription`."""

    subtopologies: tuple[TopologyDescriptionSubtopology, ...] = ()
    global_stores: tuple[TopologyDescriptionGlobalStore, ...] = ()


class DescribedGroup(Struct, frozen=True, gc=False):
    """An entry of `groups`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: Topology | None = None
    members: tuple[Member, ...] = ()
    authorized_operations: int = -2_147_483_648
    topology_description: TopologyDescription | None = None
    topology_description_status: int = 0
    assignor_name: str | None = None


class StreamsGroupDescribeResponse(Struct, frozen=True, gc=False):
    """StreamsGroupDescribeResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_DESCRIBE
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()
