"""The messages of StreamsGroupHeartbeat.

Written by tools/write_messages.py from schemas/StreamsGroupHeartbeat.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


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


class Topology(Struct, frozen=True, gc=False):
    """The value of `topology`."""

    epoch: int = 0
    subtopologies: tuple[Subtopology, ...] = ()


class TaskIds(Struct, frozen=True, gc=False):
    """An entry of `activeTasks`."""

    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()


class Endpoint(Struct, frozen=True, gc=False):
    """The value of `userEndpoint`."""

    host: str = ""
    port: int = 0


class TaskOffset(Struct, frozen=True, gc=False):
    """An entry of `taskOffsets`."""

    subtopology_id: str = ""
    partition: int = 0
    offset: int = 0


class StreamsGroupHeartbeatRequest(Struct, frozen=True, gc=False):
    """StreamsGroupHeartbeatRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_HEARTBEAT
    group_id: str = ""
    member_id: str = ""
    member_epoch: int = 0
    endpoint_information_epoch: int = 0
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topology: Topology | None = None
    active_tasks: tuple[TaskIds, ...] | None = None
    standby_tasks: tuple[TaskIds, ...] | None = None
    warmup_tasks: tuple[TaskIds, ...] | None = None
    process_id: str | None = None
    user_endpoint: Endpoint | None = None
    client_tags: tuple[KeyValue, ...] | None = None
    task_offsets: tuple[TaskOffset, ...] | None = None
    task_end_offsets: tuple[TaskOffset, ...] | None = None
    shutdown_application: bool = False


class Status(Struct, frozen=True, gc=False):
    """An entry of `status`."""

    status_code: int = 0
    status_detail: str = ""


class StreamsGroupHeartbeatResponseTaskIds(Struct, frozen=True, gc=False):
    """An entry of `activeTasks`."""

    subtopology_id: str = ""
    partitions: tuple[int, ...] = ()


class StreamsGroupHeartbeatResponseEndpoint(Struct, frozen=True, gc=False):
    """The value of `userEndpoint`."""

    host: str = ""
    port: int = 0


class TopicPartition(Struct, frozen=True, gc=False):
    """An entry of `activePartitions`."""

    topic: str = ""
    partitions: tuple[int, ...] = ()


class EndpointToPartitions(Struct, frozen=True, gc=False):
    """An entry of `partitionsByUserEndpoint`."""

    user_endpoint: StreamsGroupHeartbeatResponseEndpoint = StreamsGroupHeartbeatResponseEndpoint()
    active_partitions: tuple[TopicPartition, ...] = ()
    standby_partitions: tuple[TopicPartition, ...] = ()


class StreamsGroupHeartbeatResponse(Struct, frozen=True, gc=False):
    """StreamsGroupHeartbeatResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.STREAMS_GROUP_HEARTBEAT
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    member_id: str = ""
    member_epoch: int = 0
    heartbeat_interval_ms: int = 0
    acceptable_recovery_lag_legacy: int = 0
    task_offset_interval_ms: int = 0
    acceptable_recovery_lag: int = -1
    status: tuple[Status, ...] | None = ()
    active_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    standby_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    warmup_tasks: tuple[StreamsGroupHeartbeatResponseTaskIds, ...] | None = None
    topology_description_required: bool = False
    endpoint_information_epoch: int = 0
    partitions_by_user_endpoint: tuple[EndpointToPartitions, ...] | None = None
