"""The logs of a cluster's partitions: opened on first use, deleted with their topics.

A log follows its topic's settings and its partition's leader epoch in the image. There is a
deadline for retention and cleaning only while some log has records, so that a clock that jumps
from deadline to deadline stops when all logs are empty.

Source: kafka trunk, core/.../log/LogManager.scala (cleanupLogs); ReplicaManager.applyDelta;
LogCleaner.scala; UnifiedLog.java (producerExpireCheck); kafka 2.8,
LogManager.ProducerIdExpirationCheckIntervalMs.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.image import NO_LEADER, MetadataImage
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.errors import WireFormatError
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
    configs_version: int
    config: LogConfig
    is_broken: bool = False


class LogManager:
    """The logs, one per partition.

    Args:
        image: The metadata.
        new_store: See `NewStore`.
        config_of: See `ConfigOf`; called again whenever settings changed.

    Attributes:
        changed: (partition): a log was opened, or may have got other settings.
    """

    def __init__(self, image: MetadataImage, new_store: NewStore, config_of: ConfigOf) -> None:
        self._image = image
        self._new_store = new_store
        self._config_of = config_of
        self._kept: dict[Place, _Kept] = {}
        self.changed: list[Callable[[Place], None]] = []

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
        configs_version = self._image.configs_version
        has_config = kept is not None and kept.configs_version == configs_version
        config = kept.config if kept is not None and has_config else self._config_of(topic)
        if kept is None or kept.topic_id != topic_id:
            store = self._new_store(topic, partition, topic_id)
            log = PartitionLog(topic, partition, store, config)
            kept = _Kept(log, store, topic_id, -1, configs_version, config)
            self._kept[topic, partition] = kept
        elif kept.config != config:
            kept.config = config
            kept.log.configure(config)
        if kept.is_broken:
            kept.log = PartitionLog(topic, partition, kept.store, config)
            kept.is_broken = False
        kept.image_version = self._image.version
        kept.configs_version = configs_version
        for listener in self.changed:
            listener((topic, partition))
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


_RETENTION: Final = "log.retention.check.interval.ms"
_PRODUCERS: Final = "producer.id.expiration.check.interval.ms"
_INTERVALS_MS: Final = {_RETENTION: 300_000, _PRODUCERS: 600_000}
"""The interval of each turn; releases that lack the setting have this value built in."""
_CLEANER: Final = "log.cleaner.enable"
_AT_ONCE: Final = 500
"""Logs maintained in one slice: some milliseconds, where no segment is deleted."""

Work = Callable[[int], bool | None]
"""Part of the housekeeping of a log, called with the present; returns whether more is to do."""
StorageFailed = Callable[[Place, OSError], None]
"""Called when the disk of a log failed."""


class LogMaintenance:
    """Runs retention, expiry of producers and the cleaner.

    Retention and the cleaner run together, every `log.retention.check.interval.ms`, for some logs
    at a time; the cleaner then works in slices of some milliseconds, one per `expire`. Clients are
    answered in between. Producers expire every `producer.id.expiration.check.interval.ms`.

    DEVIATION: the cleaner looks for work as often as retention does, not every
    `log.cleaner.backoff.ms`; only readers of superseded records can see the difference.

    Args:
        logs: Logs of the cluster.
        configs: Settings; give the intervals, and whether there is a cleaner.
        storage_failed: See `StorageFailed`.
        trouble: Called with one line for a log that cannot be cleaned.
        scheduler: Calls `expire` in time.
    """

    def __init__(
        self,
        logs: LogManager,
        configs: Configs,
        storage_failed: StorageFailed,
        trouble: Callable[[str], None],
        scheduler: Scheduler,
    ) -> None:
        self._logs = logs
        self._scheduler = scheduler
        self._configs = configs
        self._storage_failed = storage_failed
        self._trouble = trouble
        self._seen_ms = 0
        self._due_ms: dict[str, int] = {}
        self._unfinished: list[PartitionLog] = []
        self._waiting: list[PartitionLog] = []

    def listen(self, cluster_events: ClusterEvents) -> None:
        """Subscribe to the first records of a log: they are appended, or found on disk."""
        cluster_events.readable.append(self._begin)
        self._logs.changed.append(self._begin)

    def _begin(self, topic_partition: Place) -> None:
        """Schedule the turns that are not scheduled yet, if this log has records."""
        is_incomplete = len(self._due_ms) < len(_INTERVALS_MS)
        if is_incomplete and self._logs.has_records(*topic_partition):
            self.arm()

    def expire(self, now: Instants) -> None:
        """Run what is due, or the next slice of retention or of the cleaner."""
        is_first = not self._seen_ms
        self._seen_ms = now.group_ms
        if is_first:
            # The first turn is one interval after the first `expire`, which tells the time.
            self._due_ms.clear()
            return
        if self._is_due(_PRODUCERS):
            for log in self._logs.logs():
                log.expire_producers(now.group_ms)
        if self._is_due(_RETENTION):
            self._waiting = self._logs.logs()[::-1]
        if self._waiting:
            self._keep_up(now.group_ms)
        elif self._unfinished:
            log = self._unfinished[-1]
            if not self._attempt(log, log.clean_some, now.group_ms):
                self._unfinished.pop()

    def next_group_deadline_ms(self) -> int | None:
        """When the next turn is; now while there is work left."""
        if self._waiting or self._unfinished:
            return self._seen_ms
        if len(self._due_ms) < len(_INTERVALS_MS) and self._logs.have_records():
            for name, built_in_ms in _INTERVALS_MS.items():
                interval_ms = built_in_ms
                if name in self._configs.broker:
                    interval_ms = int(str(self._configs.broker_value(name)))
                self._due_ms.setdefault(name, self._seen_ms + interval_ms)
        return min(self._due_ms.values(), default=None)

    def arm(self) -> None:
        """Arm the scheduler for the next turn; logs age by the group clock."""
        self._scheduler.wake_by_group_ms(self.next_group_deadline_ms())

    def _is_due(self, name: str) -> bool:
        """Whether the turn with that interval is due; it is due only once."""
        if self._due_ms.get(name, self._seen_ms + 1) > self._seen_ms:
            return False
        del self._due_ms[name]
        return True

    def _keep_up(self, now_ms: int) -> None:
        """Maintain the next logs in line, skipping those deleted meanwhile."""
        cleans = bool(self._configs.broker_value(_CLEANER))
        some, self._waiting = self._waiting[-_AT_ONCE:], self._waiting[:-_AT_ONCE]
        for log in filter(self._logs.has, reversed(some)):
            self._attempt(log, log.maintain_retention, now_ms)
            is_idle = cleans and log not in self._unfinished
            if is_idle and self._attempt(log, log.clean_some, now_ms):
                self._unfinished.append(log)

    def _attempt(self, log: PartitionLog, work: Work, now_ms: int) -> bool:
        """Run a part; return whether more is to do. A failed disk or a bad batch ends it."""
        try:
            return bool(work(now_ms))
        except OSError as error:
            self._storage_failed((log.topic, log.partition), error)
        except WireFormatError as error:
            self._trouble(
                f"{log.topic}-{log.partition} is not compacted any more, so that superseded "
                f"records stay: {error}"
            )
        return False
