"""The logs of a cluster's partitions: opened on first use, deleted with their topics.

A log follows its topic's settings and its partition's leader epoch in the image.

Source: kafka trunk, core/.../log/LogManager.scala; ReplicaManager.applyDelta.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.log.contract import SegmentStore
from coordinator_sim.log.log_config import LogConfig
from coordinator_sim.log.partition_log import PartitionLog

ConfigOf = Callable[[str], LogConfig]
"""Gives the config of a topic's logs."""
NewStore = Callable[[str, int, bytes], SegmentStore]
"""Opens the store of a partition: topic, number, topic id."""


@dataclass(slots=True)
class _Kept:
    log: PartitionLog
    store: SegmentStore
    topic_id: bytes
    image_version: int
    config: LogConfig
    is_broken: bool = False


class LogManager:
    """The logs, one per partition.

    Args:
        image: The metadata.
        new_store: See `NewStore`.
        config_of: See `ConfigOf`; called again whenever the metadata changed.

    Attributes:
        changed: (topic, partition): a log was opened, or may have got other settings.
    """

    __slots__ = ("_config_of", "_image", "_kept", "_new_store", "changed")

    def __init__(self, image: MetadataImage, new_store: NewStore, config_of: ConfigOf) -> None:
        self._image = image
        self._new_store = new_store
        self._config_of = config_of
        self._kept: dict[Place, _Kept] = {}
        self.changed: list[Callable[[str, int], None]] = []

    def log_of(self, topic: str, partition: int) -> PartitionLog | None:
        """The log of a partition; None when there is no such partition.

        Raises:
            OSError: the store of the log cannot be opened.
        """
        kept = self._kept.get((topic, partition))
        if kept is not None and kept.image_version == self._image.version and not kept.is_broken:
            return kept.log
        state = self._image.partition(topic, partition)
        if state is None:
            return None
        topic_id = self._image.topics[topic].topic_id
        config = self._config_of(topic)
        if kept is None or kept.topic_id != topic_id:
            store = self._new_store(topic, partition, topic_id)
            log = PartitionLog(topic, partition, store, config)
            kept = _Kept(log, store, topic_id, -1, config)
            self._kept[topic, partition] = kept
        elif kept.config != config:
            kept.config = config
            kept.log.configure(config)
        if kept.is_broken:
            kept.log = PartitionLog(topic, partition, kept.store, config)
            kept.is_broken = False
        kept.image_version = self._image.version
        for listener in self.changed:
            listener(topic, partition)
        if kept.log.leader_epoch < state.leader_epoch:
            kept.log.become_leader(state.leader_epoch)
        return kept.log

    def broken(self, topic: str, partition: int) -> None:
        """Mark a log whose disk failed: it is reopened before it is used again."""
        kept = self._kept.get((topic, partition))
        if kept is not None:
            kept.is_broken = True

    def have_records(self) -> bool:
        """Whether any open log has records."""
        return any(map(_has_records, self._kept.values()))

    def has_records(self, topic: str, partition: int) -> bool:
        """Whether the log of a partition is open and has records."""
        kept = self._kept.get((topic, partition))
        return kept is not None and _has_records(kept)

    def has(self, log: PartitionLog) -> bool:
        """Whether this is the open log of its partition."""
        kept = self._kept.get((log.topic, log.partition))
        return kept is not None and kept.log is log

    def logs(self) -> list[PartitionLog]:
        """The open logs."""
        return [kept.log for kept in self._kept.values()]

    def leader_changed(self, topic: str, partition: int, _now: Instants) -> None:
        """Start the new leader's epoch at the log's end; a log that cannot do so is broken."""
        state = self._image.partition(topic, partition)
        if state is not None and state.leader_id != NO_LEADER:
            try:
                self.log_of(topic, partition)
            except OSError:
                self.broken(topic, partition)

    def topic_deleted(self, topic: str, _topic_id: bytes, partitions: int, _now: Instants) -> None:
        """Delete the logs of a deleted topic.

        Files that a failing disk keeps are deleted at the next start.
        """
        for partition in range(partitions):
            kept = self._kept.pop((topic, partition), None)
            if kept is not None:
                with suppress(OSError):
                    kept.log.delete()

    def close(self) -> None:
        """Close all logs cleanly, so that they can be reopened."""
        for kept in self._kept.values():
            kept.log.close()
        self._kept.clear()


def _has_records(entry: _Kept) -> bool:
    return entry.log.end_offset > entry.log.log_start_offset
