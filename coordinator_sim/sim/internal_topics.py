"""The internal topics of a Connect cluster as its first worker finds them."""

from hashlib import sha256
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.stores.config_records import (
    SESSION_KEY_KEY,
    SessionKey,
    as_hash_map,
    commit_tasks_key,
    commit_value,
    connector_key,
    properties_value,
    session_key_value,
    task_key,
)
from coordinator_sim.connect.stores.topic_log import CLEANUP_POLICY, COMPACT
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.sim.data_brokers import DataBrokers
from coordinator_sim.sim.data_service import DataService
from coordinator_sim.sim.offset_history import compacted_offsets
from coordinator_sim.sim.scenario.work import SinkWork
from coordinator_sim.sim.scenario.world import ConnectGroupSpec

_US_PER_MS: Final = 1_000
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


def create_internal_topics(service: DataService, group: ConnectGroupSpec) -> None:
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
        service.create_topic(name, partitions, {CLEANUP_POLICY: COMPACT})
    records, span = spec.offset_records, spec.offset_end or spec.offset_records
    if spec.offset_history is not None:
        records, span = compacted_offsets(
            spec.offset_history, spec.offset_partitions, spec.offset_record_bytes
        )
    _append_runs(
        service,
        names.offsets,
        records=records,
        span=span,
        record_bytes=spec.offset_record_bytes,
        partitions=spec.offset_partitions,
    )
    _append_runs(
        service,
        names.statuses,
        records=spec.status_records,
        span=spec.status_records,
        record_bytes=spec.status_record_bytes,
        partitions=spec.status_partitions,
    )
    _append_runs(
        service,
        names.configs,
        records=spec.config_records,
        span=spec.config_records,
        record_bytes=spec.config_record_bytes,
        partitions=1,
    )
    _write_connectors(service, names.configs, group)


def _write_connectors(service: DataService, topic: str, group: ConnectGroupSpec) -> None:
    """Append a session key, and for each connector its configuration, tasks and commit."""
    log = service.log_of(topic, 0)
    if log is None:
        raise InvariantViolation(f"there is no topic {topic}")
    if group.connectors and group.connect_protocol == "sessioned":
        # The worker that wrote the connectors led an earlier generation, so it wrote a key too.
        key = SessionKey(sha256(group.group_id.encode()).digest(), "HmacSHA256", 0)
        log.append_records(((SESSION_KEY_KEY.encode(), session_key_value(key)),), now_ms=0)
    for name, tasks in group.connectors.items():
        config = connector_config(group, name, tasks)
        log.append_records(
            (
                (connector_key(name).encode(), properties_value(config)),
                *(
                    (
                        task_key(ConnectorTaskId(name, number)).encode(),
                        properties_value(task_config(config, number)),
                    )
                    for number in range(tasks)
                ),
                (commit_tasks_key(name).encode(), commit_value(tasks)),
            ),
            now_ms=0,
        )


def compact_regularly(data: DataBrokers, group: ConnectGroupSpec) -> None:
    """Have the cluster's topics compacted as often as the scenario says."""
    every_ms = group.internal_topics.compact_every_ms
    if every_ms is not None:
        names = internal_topic_names(group)
        data.compact_every((names.configs, names.offsets, names.statuses), every_ms * _US_PER_MS)


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
    return as_hash_map({**config, "task.class": task_class, SHARDS: str(number)})


def _append_runs(
    service: DataService, topic: str, *, records: int, span: int, record_bytes: int, partitions: int
) -> None:
    """Spread counted records over the partitions of a topic, the first ones getting the rest."""
    for partition in range(partitions):
        count = records // partitions + (partition < records % partitions)
        log = service.log_of(topic, partition)
        if log is not None and count:
            offsets = max(count, span // partitions + (partition < span % partitions))
            log.append_run(count, count * record_bytes, offsets)
