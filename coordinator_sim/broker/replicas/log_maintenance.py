"""Housekeeping of logs by group time: retention, cleaning, expiry of producers.

There is a deadline only while some log has records, so that a clock that jumps from deadline to
deadline stops when all logs are empty.

Source: kafka trunk, core/.../log/LogManager.scala (cleanupLogs); LogCleaner.scala;
UnifiedLog.java (producerExpireCheck); kafka 2.8, LogManager.ProducerIdExpirationCheckIntervalMs.
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.broker.cluster_events import ClusterEvents
from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.log_manager import LogManager
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.partition_log import PartitionLog

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

    __slots__ = (
        "_configs",
        "_due_ms",
        "_logs",
        "_scheduler",
        "_seen_ms",
        "_storage_failed",
        "_trouble",
        "_unfinished",
        "_waiting",
    )

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

    def _begin(self, topic: str, partition: int) -> None:
        """Schedule the turns that are not scheduled yet, if this log has records."""
        is_incomplete = len(self._due_ms) < len(_INTERVALS_MS)
        if is_incomplete and self._logs.has_records(topic, partition):
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
