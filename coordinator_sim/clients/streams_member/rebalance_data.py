"""Shared state of a stream thread and its consumer, and the heartbeats built from it.

Source: kafka 4.4, clients/.../consumer/internals/StreamsRebalanceData.java and
StreamsGroupHeartbeatRequestManager.HeartbeatState.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.clients.effects import StreamsTasks
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.orders.iteration_order import java_hash_order, wrapped
from coordinator_sim.kafka.partitioning import java_string_hash
from coordinator_sim.kafka.resources import StreamsTaskId, TopicPartition
from coordinator_sim.messages import streams_group_heartbeat as messages

OffsetSums = dict[StreamsTaskId, int]
"""Task -> sum of offsets over its changelogs; never changed once it is handed out."""
UNKNOWN_OFFSET: Final = 9_223_372_036_854_775_807
"""Offset of a task that is not known yet: Java's Long.MAX_VALUE."""
_TOPOLOGY_EPOCH: Final = 0
"""Source: StreamsRebalanceData.topologyEpoch: a client has no other."""


class TopicInfo(Struct, frozen=True, kw_only=True):
    """An internal topic as the application wants it.

    Args:
        name: Name of the topic, with the application id.
        partitions: Number of partitions; 0 leaves it to the broker.
        replication_factor: `replication.factor`; -1 takes the broker's default.
        configs: Settings of the topic.
    """

    name: str
    partitions: int = 0
    replication_factor: int = -1
    configs: Mapping[str, str] = {}

    def as_message(self, *, is_changelog: bool) -> messages.TopicInfo:
        """Return the message of the topic; that of a changelog has no number of partitions."""
        return messages.TopicInfo(
            name=self.name,
            partitions=0 if is_changelog else self.partitions,
            replication_factor=self.replication_factor,
            topic_configs=tuple(
                messages.KeyValue(key, value) for key, value in sorted(self.configs.items())
            ),
        )


class Subtopology(Struct, frozen=True, kw_only=True):
    """A part of the topology whose tasks each read one partition of all its source topics.

    Args:
        source_topics: Topics of others that it reads.
        repartition_sink_topics: Repartition topics that it writes.
        repartition_source_topics: Repartition topics that it reads.
        state_changelog_topics: Changelogs of its stores.
        copartition_groups: Sets of its topics that must have as many partitions.
    """

    source_topics: tuple[str, ...] = ()
    repartition_sink_topics: tuple[str, ...] = ()
    repartition_source_topics: tuple[TopicInfo, ...] = ()
    state_changelog_topics: tuple[TopicInfo, ...] = ()
    copartition_groups: tuple[tuple[str, ...], ...] = ()

    @property
    def all_sources(self) -> tuple[str, ...]:
        """Every topic that it reads."""
        return (*self.source_topics, *(each.name for each in self.repartition_source_topics))

    def as_message(self, subtopology_id: str) -> messages.Subtopology:
        """Return the subtopology as told, its topics in order of their names.

        Raises:
            ConfigError: a co-partition group names a topic that it does not read.
        """
        sources = sorted(self.source_topics)
        repartitioned = sorted(self.repartition_source_topics, key=lambda topic: topic.name)
        names = [topic.name for topic in repartitioned]
        for name in (name for group in self.copartition_groups for name in group):
            if name not in sources and name not in names:
                raise ConfigError(f"subtopology {subtopology_id} does not read {name!r}: add it")
        return messages.Subtopology(
            subtopology_id=subtopology_id,
            source_topics=tuple(sources),
            state_changelog_topics=tuple(
                topic.as_message(is_changelog=True)
                for topic in sorted(self.state_changelog_topics, key=lambda topic: topic.name)
            ),
            repartition_sink_topics=tuple(sorted(self.repartition_sink_topics)),
            repartition_source_topics=tuple(
                topic.as_message(is_changelog=False) for topic in repartitioned
            ),
            copartition_groups=tuple(
                messages.CopartitionGroup(
                    source_topics=tuple(sources.index(name) for name in group if name in sources),
                    repartition_source_topics=tuple(
                        names.index(name) for name in group if name not in sources
                    ),
                )
                for group in self.copartition_groups
            ),
        )


class StreamsRebalanceData:
    """State that a stream thread and its consumer share.

    Args:
        process_id: Uuid of the instance: its threads share a state directory.
        subtopologies: The topology, by id.
        endpoint: Host and port of `application.server`; None for none.
        rack_id: `client.rack`; None for none.
        client_tags: `client.tag.*`.
        task_offset_sums: Asked, once a heartbeat, for the sums of the changelog offsets that each
            task has restored; those of running active tasks are left out.
        task_end_offset_sums: The same for the ends of the changelogs of tasks that are restored.

    Attributes:
        reconciled: Tasks that the thread has, as its last callback left them.
        statuses: Statuses of the last answer that had any field of them.
        shutdown_requested: Whether the application asks all instances to shut down.
        heartbeat_interval_ms: Of the broker; -1 before its first answer.
        task_offset_interval_ms: Time between two reports of offsets; -1 before the first answer.
        acceptable_recovery_lag: Lag of a warm-up task from which it may become active; -1 before.
        endpoints: Partitions of each endpoint: those of active tasks, and of standby ones.
    """

    __slots__ = (
        "acceptable_recovery_lag", "client_tags", "endpoint", "endpoints", "heartbeat_interval_ms",
        "process_id", "rack_id", "reconciled", "shutdown_requested", "statuses", "subtopologies",
        "task_end_offset_sums", "task_offset_interval_ms", "task_offset_sums",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - everything an instance is configured with, by keyword
        self,
        *,
        process_id: str,
        subtopologies: Mapping[str, Subtopology],
        endpoint: messages.Endpoint | None = None,
        rack_id: str | None = None,
        client_tags: Mapping[str, str] | None = None,
        task_offset_sums: Callable[[], OffsetSums] = dict,
        task_end_offset_sums: Callable[[], OffsetSums] = dict,
    ) -> None:
        self.process_id = process_id
        self.subtopologies = dict(subtopologies)
        self.endpoint = endpoint
        self.rack_id = rack_id
        self.client_tags = dict(client_tags or {})
        self.reconciled = StreamsTasks()
        self.statuses: tuple[messages.Status, ...] = ()
        self.task_offset_sums = task_offset_sums
        self.task_end_offset_sums = task_end_offset_sums
        self.shutdown_requested = False
        self.heartbeat_interval_ms = -1
        self.task_offset_interval_ms = -1
        self.acceptable_recovery_lag = -1
        self.endpoints: tuple[messages.EndpointToPartitions, ...] = ()

    @property
    def source_topics(self) -> tuple[str, ...]:
        """Every topic that the application reads, in order: what its consumer subscribes to."""
        found = (name for each in self.subtopologies.values() for name in each.all_sources)
        return tuple(sorted(dict.fromkeys(found)))

    def partitions_of(self, tasks: Iterable[StreamsTaskId]) -> tuple[TopicPartition, ...]:
        """Return the partitions that active tasks read (topicPartitionsForActiveTasks)."""
        found = (
            TopicPartition(topic, task.task)
            for task in tasks
            for topic in self.subtopologies[task.subtopology].all_sources
        )
        return tuple(sorted(dict.fromkeys(found)))


class SentTasks:
    """Fields of the last heartbeat, on which those of the next depend.

    Attributes:
        endpoint_epoch: Epoch of the endpoints that the member knows; -1 for none.
    """

    __slots__ = ("_end_offsets", "_offsets", "_offsets_ms", "_tasks", "endpoint_epoch")

    def __init__(self) -> None:
        self.endpoint_epoch = -1
        self.reset()

    def reset(self) -> None:
        """Tell everything that changes with the next heartbeat (HeartbeatState.reset)."""
        self._tasks: StreamsTasks | None = None
        self._offsets: OffsetSums | None = None
        self._end_offsets: OffsetSums | None = None
        self._offsets_ms = -1

    def request(
        self,
        data: StreamsRebalanceData,
        identity: messages.StreamsGroupHeartbeatRequest,
        now_ms: int,
        *,
        is_joining: bool,
    ) -> messages.StreamsGroupHeartbeatRequest:
        """Return the next heartbeat, and remember what it tells (buildRequestData).

        UNSPECIFIED: the order of a subtopology's partitions, and of client tags, is that of Java's
        immutable sets, which differs from run to run; here it ascends.

        Args:
            data: The thread's side.
            identity: Group, member, instance and epoch; and the fields told when joining.
            now_ms: The present instant.
            is_joining: Whether the heartbeat has every field.
        """
        fields: dict[str, object] = {"endpoint_information_epoch": self.endpoint_epoch}
        sums, ends = data.task_offset_sums(), data.task_end_offset_sums()
        if is_joining:
            fields |= _on_join(data)
            fields |= {"task_offsets": _offsets(sums), "task_end_offsets": _offsets(ends)}
            self._offsets, self._end_offsets, self._offsets_ms = sums, ends, now_ms
        else:
            tells = data.reconciled != self._tasks
            if tells:
                self._tasks = data.reconciled
                fields |= {
                    "active_tasks": _listed(data.reconciled.active),
                    "standby_tasks": _listed(data.reconciled.standby),
                    "warmup_tasks": _listed(data.reconciled.warmup),
                }
            is_due = self._offsets_ms + data.task_offset_interval_ms <= now_ms
            if tells or is_due or _has_hot_warmup(data, sums, ends):
                fields |= self._changed_offsets(sums, ends, now_ms)
        return messages.StreamsGroupHeartbeatRequest(
            group_id=identity.group_id,
            member_id=identity.member_id,
            member_epoch=identity.member_epoch,
            instance_id=identity.instance_id,
            rebalance_timeout_ms=identity.rebalance_timeout_ms if is_joining else -1,
            shutdown_application=data.shutdown_requested,
            **fields,  # type: ignore[arg-type] # names of fields, with values of their types
        )

    def _changed_offsets(
        self, sums: OffsetSums, ends: OffsetSums, now_ms: int
    ) -> dict[str, object]:
        fields: dict[str, object] = {}
        if sums != self._offsets:
            self._offsets, self._offsets_ms = sums, now_ms
            fields["task_offsets"] = _offsets(sums)
        if ends != self._end_offsets:
            self._end_offsets, self._offsets_ms = ends, now_ms
            fields["task_end_offsets"] = _offsets(ends)
        return fields


def _on_join(data: StreamsRebalanceData) -> dict[str, object]:
    ids = sorted(data.subtopologies)
    return {
        "topology": messages.Topology(
            _TOPOLOGY_EPOCH, tuple(data.subtopologies[each].as_message(each) for each in ids)
        ),
        "process_id": data.process_id,
        "user_endpoint": data.endpoint,
        "rack_id": data.rack_id,
        "client_tags": tuple(messages.KeyValue(*each) for each in data.client_tags.items()),
        "active_tasks": (),
        "standby_tasks": (),
        "warmup_tasks": (),
    }


def _has_hot_warmup(data: StreamsRebalanceData, sums: OffsetSums, ends: OffsetSums) -> bool:
    """Whether a warm-up task has nearly caught up, so that the broker needs its offsets now."""
    for task in data.reconciled.warmup:
        offset = sums.get(task, UNKNOWN_OFFSET)
        end = ends.get(task, UNKNOWN_OFFSET)
        is_known = UNKNOWN_OFFSET not in (offset, end)
        if is_known and end - offset <= data.acceptable_recovery_lag:
            return True
    return False


def _listed(tasks: Iterable[StreamsTaskId]) -> tuple[messages.TaskIds, ...]:
    """Return tasks by subtopology, in the order of Java's map."""
    found: dict[str, list[int]] = {}
    for task in sorted(tasks):
        found.setdefault(task.subtopology, []).append(task.task)
    return tuple(messages.TaskIds(each, tuple(found[each])) for each in java_hash_order(found))


def _task_hash(task: StreamsTaskId) -> int:
    """Source: StreamsRebalanceData.TaskId.hashCode."""
    return wrapped(31 * (31 + java_string_hash(task.subtopology)) + task.task)


def _offsets(sums: Mapping[StreamsTaskId, int]) -> tuple[messages.TaskOffset, ...]:
    return tuple(
        messages.TaskOffset(task.subtopology, task.task, sums[task])
        for task in java_hash_order(sums, hash_of=_task_hash)
    )
