"""The work a herder runs: what was started and not stopped, and the wait for either.

The herder's thread blocks while work starts or stops. Which work, and why, is the herder's affair.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, startAndStop;
Worker.java, stopAndAwaitConnector, stopAndAwaitTasks.
"""

from collections.abc import Callable
from enum import Enum, unique
from typing import Final

from coordinator_sim.assignors.contract import WorkerLoad
from coordinator_sim.clients.config import WorkerConfig
from coordinator_sim.clients.effects import CallbackKind, Effect, RunCallback
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.protocol.resources import ConnectorTaskId

CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS: Final = 5_000
"""Worker.CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS."""
START_STOP_THREAD_COUNT: Final = 8
"""DistributedHerder.START_STOP_THREAD_POOL_SIZE."""

Continuation = Callable[[int], None]


@unique
class Phase(Enum):
    """What the herder's thread is doing."""

    IDLE = "IDLE"
    ENSURING_ACTIVE = "ENSURING_ACTIVE"
    POLLING = "POLLING"
    READING = "READING"
    SLEEPING = "SLEEPING"
    STARTING = "STARTING"
    STOPPING = "STOPPING"
    CLOSED = "CLOSED"


class WorkKeeper:
    """The running connectors and tasks, and the one start or stop in progress."""

    __slots__ = (
        "_config",
        "_next_token",
        "_out",
        "_outstanding_token",
        "_phase",
        "_running_connectors",
        "_running_tasks",
        "_wake_ms",
        "_work",
        "_work_then",
    )

    def __init__(self, config: WorkerConfig) -> None:
        self._config = config
        self._out: list[Effect] = []
        self._phase = Phase.IDLE
        self._wake_ms = FOREVER
        self._next_token = 1
        self._outstanding_token = 0
        self._work = WorkerLoad()
        self._work_then: Continuation | None = None
        self._running_connectors: dict[str, None] = {}
        self._running_tasks: dict[ConnectorTaskId, None] = {}

    @property
    def running(self) -> WorkerLoad:
        """The connectors and tasks that this worker has started and not stopped."""
        return WorkerLoad(
            connectors=tuple(self._running_connectors), tasks=tuple(self._running_tasks)
        )

    @property
    def phase(self) -> Phase:
        """What the herder's thread is doing."""
        return self._phase

    def stop_bound_ms(self, connector_count: int, task_count: int) -> int:
        """The longest that a stop may keep the herder: what does not end by then is cancelled."""
        connector_ms = CONNECTOR_GRACEFUL_SHUTDOWN_TIMEOUT_MS if connector_count else 0
        task_ms = self._config.task_shutdown_graceful_timeout_ms if task_count else 0
        turns = -(-(connector_count + task_count) // START_STOP_THREAD_COUNT)
        return turns * max(connector_ms, task_ms)

    def _start(self, load: WorkerLoad, *, then: Continuation, now_ms: int) -> None:
        """Have the work started, then go on; at once when there is none."""
        if not load.connectors and not load.tasks:
            then(now_ms)
            return
        self._ask(CallbackKind.WORK_ASSIGNED, load, then)
        self._phase = Phase.STARTING

    def _stop(self, load: WorkerLoad, *, then: Continuation, now_ms: int) -> None:
        """Have what of the work runs stopped, then go on; at once when none runs.

        The wait is bounded: work that does not stop in its graceful timeout is given up.
        """
        running = WorkerLoad(
            connectors=tuple(c for c in load.connectors if c in self._running_connectors),
            tasks=tuple(t for t in load.tasks if t in self._running_tasks),
        )
        if not running.connectors and not running.tasks:
            then(now_ms)
            return
        self._ask(CallbackKind.WORK_REVOKED, running, then)
        self._phase = Phase.STOPPING
        self._wake_ms = now_ms + self.stop_bound_ms(len(running.connectors), len(running.tasks))

    def _ask(self, kind: CallbackKind, load: WorkerLoad, then: Continuation) -> None:
        token = self._outstanding_token = self._next_token
        self._next_token += 1
        self._work = load
        self._work_then = then
        self._out.append(
            RunCallback(token=token, kind=kind, connectors=load.connectors, tasks=load.tasks)
        )

    def _sleep(self, until_ms: int, then: Continuation) -> None:
        self._phase = Phase.SLEEPING
        self._wake_ms = until_ms
        self._work_then = then

    def _work_done(self, now_ms: int) -> None:
        """The start, stop or sleep is over: by the driver's word, or by time."""
        load, then = self._work, self._work_then
        if self._phase is Phase.STARTING:
            self._running_connectors.update(dict.fromkeys(load.connectors))
            self._running_tasks.update(dict.fromkeys(load.tasks))
        elif self._phase is Phase.STOPPING:
            for connector in load.connectors:
                self._running_connectors.pop(connector, None)
            for task in load.tasks:
                self._running_tasks.pop(task, None)
        self._work_then = None
        self._outstanding_token = 0
        self._wake_ms = FOREVER
        if then is not None:
            then(now_ms)
