"""Housekeeping of logs by group time: retention, cleaning, expiry of producers.

There is a deadline only while some log has records, so that a clock that jumps from deadline to
deadline stops when all logs are empty.

Source: kafka trunk, core/.../log/LogManager.scala (cleanupLogs); LogCleaner.scala.
"""

from collections.abc import Callable
from typing import Final

from coordinator_sim.broker.configs.configs import Configs
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.log_manager import LogManager
from coordinator_sim.errors import WireFormatError
from coordinator_sim.log.partition_log import PartitionLog

_CHECK: Final = "log.retention.check.interval.ms"
_CLEANER: Final = "log.cleaner.enable"
_AT_ONCE: Final = 500
"""Logs maintained in one slice: some milliseconds, where no segment is deleted."""

Work = Callable[[int], bool | None]
"""Part of the housekeeping of a log, called with the present; returns whether more is to do."""
StorageFailed = Callable[[Place, OSError], None]
"""Called when the disk of a log failed."""


class LogMaintenance:
    """Runs retention, expiry of producers and the cleaner.

    All three run together, every `log.retention.check.interval.ms`, for some logs at a time; the
    cleaner then works in slices of some milliseconds, one per `expire`. Clients are answered in
    between.

    DEVIATION: the cleaner looks for work as often as retention does, not every
    `log.cleaner.backoff.ms`; only readers of superseded records can see the difference.

    Args:
        logs: Logs of the cluster.
        configs: Settings; give the interval, and whether there is a cleaner.
        storage_failed: See `StorageFailed`.
        trouble: Called with one line for a log that cannot be cleaned.
    """

    __slots__ = (
        "_configs",
        "_due_ms",
        "_logs",
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
    ) -> None:
        self._logs = logs
        self._configs = configs
        self._storage_failed = storage_failed
        self._trouble = trouble
        self._seen_ms = 0
        self._due_ms: int | None = None
        self._unfinished: list[PartitionLog] = []
        self._waiting: list[PartitionLog] = []

    def expire(self, now: Instants) -> None:
        """Run what is due, or the next slice of retention or of the cleaner."""
        is_first = not self._seen_ms
        self._seen_ms = now.group_ms
        if is_first:
            # The first turn is one interval after the first `expire`, which tells the time.
            self._due_ms = None
        elif self._due_ms is not None and now.group_ms >= self._due_ms:
            self._due_ms = None
            self._waiting = self._logs.logs()[::-1]
            self._keep_up(now.group_ms)
        elif self._waiting:
            self._keep_up(now.group_ms)
        elif self._unfinished:
            log = self._unfinished[-1]
            if not self._attempt(log, log.clean_some, now.group_ms):
                self._unfinished.pop()

    def next_group_deadline_ms(self) -> int | None:
        """When the next turn is; now while there is work left."""
        if self._waiting or self._unfinished:
            return self._seen_ms
        if self._due_ms is None and self._logs.have_records():
            interval_ms = self._configs.broker_value(_CHECK)
            if isinstance(interval_ms, int):
                self._due_ms = self._seen_ms + interval_ms
        return self._due_ms

    def next_wall_deadline_ms(self) -> int | None:
        """None: logs age by the group clock."""
        return None

    def _keep_up(self, now_ms: int) -> None:
        """Maintain the next logs in line, skipping those deleted meanwhile."""
        cleans = bool(self._configs.broker_value(_CLEANER))
        some, self._waiting = self._waiting[-_AT_ONCE:], self._waiting[:-_AT_ONCE]
        for log in filter(self._logs.has, reversed(some)):
            log.expire_producers(now_ms)
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
