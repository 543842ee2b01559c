"""How a herder reads its config log: to the end when behind, and as its listener.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, readConfigToEnd,
backoff, ConfigUpdateListener.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

from coordinator_sim.clients.config import ConnectProtocolCompatibility, WorkerConfig
from coordinator_sim.clients.effects import Effect
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot, WorkerCoordinator
from coordinator_sim.connect.config_log import ConfigChange, ConfigLog
from coordinator_sim.connect.work_keeper import Phase, WorkKeeper
from coordinator_sim.protocol.embedded import ConnectAssignment
from coordinator_sim.protocol.resources import ConnectorTaskId

BACKOFF_RETRY_COUNT: Final = 5
"""DistributedHerder.BACKOFF_RETRIES."""

Answer = Callable[[bool, int], None]


class ConfigReader(WorkKeeper):
    """What the herder knows of the cluster's configuration, and what it missed."""

    __slots__ = (
        "_assignment",
        "_backoff_retries",
        "_can_read_configs",
        "_config_log",
        "_config_state",
        "_connector_updates",
        "_member",
        "_needs_reconfig_rebalance",
        "_protocol",
        "_queue",
        "_read_target",
        "_read_then",
        "_task_updates",
        "_tasks_to_restart",
    )

    def __init__(
        self, config: WorkerConfig, config_log: ConfigLog, member: WorkerCoordinator
    ) -> None:
        super().__init__(config)
        self._config_log = config_log
        self._member = member
        self._queue: deque[Effect] = deque()
        self._protocol = config.connect_protocol
        self._assignment: ConnectAssignment | None = None
        self._config_state = ConfigSnapshot()
        self._can_read_configs = True
        self._backoff_retries = BACKOFF_RETRY_COUNT
        self._read_then: Answer | None = None
        self._read_target = -1
        self._needs_reconfig_rebalance = False
        self._connector_updates: dict[str, None] = {}
        self._task_updates: dict[str, None] = {}
        self._tasks_to_restart: dict[ConnectorTaskId, None] = {}

    def _read_config_to_end(self, now_ms: int, then: Answer) -> None:
        assignment = self._assignment
        self._read_then = then
        self._read_target = assignment.config_offset if assignment is not None else -1
        if self._config_log.snapshot().offset >= self._read_target:
            self._read_ended(now_ms)
        else:
            self._phase = Phase.READING
            self._wake_ms = now_ms + self._config.worker_sync_timeout_ms

    def _read_ended(self, now_ms: int) -> None:
        self._wake_ms = FOREVER
        self._config_state = self._config_log.snapshot()
        self._backoff_retries = BACKOFF_RETRY_COUNT
        self._answer_read(succeeded=True, now_ms=now_ms)

    def _read_timed_out(self, now_ms: int) -> None:
        """Be out of the way of the others, and try again later."""
        self._can_read_configs = False
        self._queue.extend(self._member.leave_group("taking too long to read the log", now_ms))
        if self._protocol is ConnectProtocolCompatibility.EAGER:
            self._sleep(now_ms + self._config.worker_unsync_backoff_ms, self._read_failed)
        elif self._backoff_retries > 0:
            delay_ms = self._config.scheduled_rebalance_max_delay_ms // 10 // self._backoff_retries
            self._backoff_retries -= 1
            self._sleep(now_ms + delay_ms, self._read_failed)
        else:
            self._backoff_retries = BACKOFF_RETRY_COUNT
            self._stop(self.running, then=self._read_failed, now_ms=now_ms)

    def _read_failed(self, now_ms: int) -> None:
        self._answer_read(succeeded=False, now_ms=now_ms)

    def _answer_read(self, *, succeeded: bool, now_ms: int) -> None:
        then = self._read_then
        self._read_then = None
        if then is not None:
            then(succeeded, now_ms)

    # The config listener.

    def _hear(self, change: ConfigChange, now_ms: int) -> None:
        known = self._config_state.connectors
        for connector in change.removed:
            if connector in known:
                self._needs_reconfig_rebalance = True
            else:
                self._connector_updates[connector] = None
        for connector in change.updated:
            if connector in known:
                self._connector_updates[connector] = None
            else:
                self._needs_reconfig_rebalance = True
        for connector in change.reconfigured:
            self._needs_reconfig_rebalance = True
            self._task_updates[connector] = None
        if change.removed or change.updated or change.reconfigured:
            self._queue.extend(self._member.wakeup(now_ms))
