"""The internal topics of a Connect cluster as its first worker finds them.

Counts the records of a compacted topic of source offsets, from how it was written and cleaned.

Every source partition commits its offset at one interval, so keys follow each other in a circle,
and records can be counted without being kept: a log consists of its segments, less what each
cleaner pass removed. Kafka's rule says when a segment is closed, and `log` when a pass is
worthwhile.

Left out: tombstones (`delete.retention.ms`), which a source connector does not write, and the pause
between two cleaner checks, 15 s compared with months.
"""

from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.stores import config_records
from coordinator_sim.connect.stores.topic_log import CLEANUP_POLICY, COMPACT
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.log.cleaning import cleanable_before, is_dirty_enough
from coordinator_sim.log.contract import SegmentInfo
from coordinator_sim.log.format.counted_batches import RECORD_OVERHEAD_BYTES, counted_batches
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.format.segments import EncodedBatch
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.partition_log import PartitionLog
from coordinator_sim.sim.scenario.work import SinkWork
from coordinator_sim.sim.scenario.world import ConnectGroupSpec, OffsetHistory
from coordinator_sim.sim.world import US_PER_MS, World, create_topic

_EVER: Final = 1 << 62


def compacted_offsets(
    history: OffsetHistory, partitions: int, record_bytes: int
) -> tuple[int, int]:
    """Return the records of all partitions that a worker finds, and the sum of their end offsets.

    Args:
        history: How the topic was written and cleaned.
        partitions: Partitions of the topic; source partitions are spread over them evenly.
        record_bytes: Size of key and value of one record.
    """
    each, more = divmod(history.source_partitions, partitions)
    found = [
        (count, *_partition(keys, history, record_bytes + RECORD_OVERHEAD_BYTES))
        for keys, count in ((each, partitions - more), (each + 1, more))
        if keys and count
    ]
    return sum(n * records for n, records, _ in found), sum(n * end for n, _, end in found)


def _partition(keys: int, history: OffsetHistory, size_bytes: int) -> tuple[int, int]:
    """Return the records and the end offset of a partition with so many keys."""
    config = LogConfig(
        cleanup_policy="compact", min_cleanable_dirty_ratio=history.min_cleanable_dirty_ratio
    )
    end_offset = keys * (history.written_ms // history.commit_every_ms)
    segments: list[SegmentInfo] = []
    cleaned_to = start = 0
    while start < end_offset:
        following = min(_end_of_segment(start, keys, history, size_bytes), end_offset)
        segments.append(
            SegmentInfo(
                base_offset=start,
                next_offset=following,
                size_bytes=(following - start) * size_bytes,
                max_timestamp_ms=((following - 1) // keys + 1) * history.commit_every_ms,
            )
        )
        start = following
        bound = cleanable_before(segments, _EVER, _EVER)
        now_ms = segments[-1].max_timestamp_ms
        if len(segments) > 1 and is_dirty_enough(segments, cleaned_to, bound, config, now_ms):
            left = min(keys, bound)
            clean = SegmentInfo(
                base_offset=0,
                next_offset=bound,
                size_bytes=left * size_bytes,
                max_timestamp_ms=segments[-2].max_timestamp_ms,
            )
            segments, cleaned_to = [clean, segments[-1]], bound
    return sum(one.size_bytes for one in segments) // size_bytes, end_offset


def _end_of_segment(start: int, keys: int, history: OffsetHistory, size_bytes: int) -> int:
    """Return the end of the segment that begins there. Source: LogSegment.shouldRoll."""
    by_size = start + max(1, history.segment_bytes // size_bytes)
    first_late = start // keys + history.segment_ms // history.commit_every_ms + 1
    return min(by_size, first_late * keys)


SOURCE_CLASS: Final = "SimulatedSource"
"""`connector.class` of a connector with only tasks, or with source work, in the scenario."""
SINK_CLASS: Final = "SimulatedSink"
"""`connector.class` of a connector whose tasks are sinks."""


SHARDS: Final = "shards"
"""Setting that a simulated connector divides among its tasks."""


class InternalTopicNames(Struct, frozen=True):
    """The names of a cluster's internal topics."""

    configs: str
    offsets: str
    statuses: str

    def settings(self) -> dict[str, str]:
        """Return the names as worker settings by Kafka's names."""
        return {
            "config.storage.topic": self.configs,
            "offset.storage.topic": self.offsets,
            "status.storage.topic": self.statuses,
        }


def internal_topic_names(group: ConnectGroupSpec) -> InternalTopicNames:
    """Return the names from the cluster's settings, or `<group id>-configs` and so on."""
    settings, group_id = group.settings, group.group_id
    return InternalTopicNames(
        settings.get("config.storage.topic", f"{group_id}-configs"),
        settings.get("offset.storage.topic", f"{group_id}-offsets"),
        settings.get("status.storage.topic", f"{group_id}-status"),
    )


def create_internal_topics(world: World, group: ConnectGroupSpec) -> None:
    """Create the topics of a cluster and fill them, unless its first worker is to create them.

    The config topic gets the cluster's connectors as a leader would have written them.
    """
    spec, names = group.internal_topics, internal_topic_names(group)
    if not spec.exist:
        return
    for name, partitions in (
        (names.configs, 1),
        (names.offsets, spec.offset_partitions),
        (names.statuses, spec.status_partitions),
    ):
        if not world.partition_count(name):
            create_topic(world.cluster, name, partitions, world.now, {CLEANUP_POLICY: COMPACT})
    records, span = spec.offset_records, spec.offset_end or spec.offset_records
    if spec.offset_history is not None:
        records, span = compacted_offsets(
            spec.offset_history, spec.offset_partitions, spec.offset_record_bytes
        )
    _append_counted(
        world,
        names.offsets,
        records=records,
        span=span,
        record_bytes=spec.offset_record_bytes,
        partitions=spec.offset_partitions,
    )
    _append_counted(
        world,
        names.statuses,
        records=spec.status_records,
        span=spec.status_records,
        record_bytes=spec.status_record_bytes,
        partitions=spec.status_partitions,
    )
    _append_counted(
        world,
        names.configs,
        records=spec.config_records,
        span=spec.config_records,
        record_bytes=spec.config_record_bytes,
        partitions=1,
    )
    _write_connectors(world, names.configs, group)
    # These records came by no request: the upkeep of their logs begins here.
    world.cluster.scheduler.arm()


def _write_connectors(world: World, topic: str, group: ConnectGroupSpec) -> None:
    """Append a session key, and for each connector its configuration, tasks and commit."""
    log = _log_of(world, topic, 0)
    if group.connectors and group.connect_protocol == "sessioned":
        # The worker that wrote the connectors led an earlier generation, so it wrote a key too.
        key = config_records.SessionKey(sha256(group.group_id.encode()).digest(), "HmacSHA256", 0)
        _append(log, [(config_records.SESSION_KEY_KEY, config_records.session_key_value(key))])
    for name, tasks in group.connectors.items():
        config = connector_config(group, name, tasks)
        task_keys = [
            config_records.task_key(ConnectorTaskId(name, number)) for number in range(tasks)
        ]
        _append(
            log,
            [
                (config_records.connector_key(name), config_records.properties_value(config)),
                *(
                    (key, config_records.properties_value(task_config(config, number)))
                    for number, key in enumerate(task_keys)
                ),
                (config_records.commit_tasks_key(name), config_records.commit_value(tasks)),
            ],
        )


def _log_of(world: World, topic: str, partition: int) -> PartitionLog:
    log = world.cluster.logs.log_of(topic, partition)
    if log is None:
        raise InvariantViolation(f"there is no partition {partition} of topic {topic}")
    return log


def _append(log: PartitionLog, records: Iterable[tuple[str, bytes]]) -> None:
    """Append records of the time before the run, each in a batch of its own."""
    for key, value in records:
        record = Record(offset=0, timestamp_ms=0, key=key.encode(), value=value)
        log.append(
            encode_record_batch(batch_of((record,))), now_ms=0, leader_epoch=log.leader_epoch
        )


def compact_regularly(world: World, group: ConnectGroupSpec) -> None:
    """Have the cluster's topics compacted as often as the scenario says."""
    every_ms = group.internal_topics.compact_every_ms
    if every_ms is None:
        return
    environment, names = world.environment, internal_topic_names(group)
    for topic in (names.configs, names.offsets, names.statuses):
        for partition in range(world.partition_count(topic)):
            _log_of(world, topic, partition).compact(world.now.group_ms)
    next_us = environment.now_us + every_ms * US_PER_MS
    environment.call_at(next_us, partial(compact_regularly, world, group))


def connector_config(group: ConnectGroupSpec, name: str, tasks: int) -> dict[str, str]:
    """The configuration of a connector of the scenario: each shard is a task."""
    work = group.work.get(name)
    config = {
        # Connect requires `tasks.max` of at least 1; a scenario may give a connector none.
        "tasks.max": str(max(tasks, 1)),
        SHARDS: ",".join(map(str, range(tasks))),
        "name": name,
    }
    if isinstance(work, SinkWork):
        return {"connector.class": SINK_CLASS, **config, "topics": ",".join(work.topics)}
    return {"connector.class": SOURCE_CLASS, **config}


def task_config(config: dict[str, str], number: int) -> dict[str, str]:
    """Return the configuration of a task as its class makes it, in a leader's order."""
    task_class = f"{config['connector.class']}Task"
    return config_records.as_hash_map({**config, "task.class": task_class, SHARDS: str(number)})


def _append_counted(
    world: World, topic: str, *, records: int, span: int, record_bytes: int, partitions: int
) -> None:
    """Spread counted records over the partitions of a topic, the first ones getting the rest."""
    for partition in range(partitions):
        count = records // partitions + (partition < records % partitions)
        if not count:
            continue
        log = _log_of(world, topic, partition)
        offsets = max(count, span // partitions + (partition < span % partitions))
        for each in counted_batches(log.end_offset, count, span=offsets, value_bytes=record_bytes):
            encoded = EncodedBatch(each.base_offset, each.next_offset, each.header())
            log.append_encoded(encoded, now_ms=0)
