"""A Connect worker process: the herder's thread, and the connectors and tasks it is told to run.

The herder decides everything; here its ticks are repeated, and starting and stopping takes time.
"""

from collections.abc import Sequence
from functools import partial
from typing import Final

from coordinator_sim.clients.config import WorkerConfig
from coordinator_sim.clients.effects import CallbackKind, RunCallback
from coordinator_sim.clients.worker_coordinator import ConfigSnapshot
from coordinator_sim.clock import Action
from coordinator_sim.connect.config_log import ConfigChange
from coordinator_sim.connect.ticking_herder import Herder
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.protocol.resources import ConnectorTaskId, connector_resource
from coordinator_sim.scenario.world import ConnectGroupSpec, WorkerSpec
from coordinator_sim.sim.client_process import ClientProcess
from coordinator_sim.sim.connect_cluster import ConnectCluster
from coordinator_sim.sim.task_runs import ClusterWork
from coordinator_sim.sim.tasks import WorkerTasks
from coordinator_sim.sim.world import World
from coordinator_sim.trace.events import Event

START_UP_US: Final = 1_000_000
"""From the start of the process to its first tick; 0.8 to 1.5 s were seen on idle machines."""
START_WORK_US: Final = 100_000
"""Time the start of connectors and tasks takes, all of one call together."""
STOP_WORK_US: Final = 200_000
"""Time their stop takes; within every graceful timeout that is not absurdly short."""
TICK_TIMEOUT_MS: Final = 86_400_000
"""Bound of one tick. Java has none; a day changes nothing that happens."""


class _ConfigView:
    """What one worker has read of the config topic."""

    __slots__ = ("_latest",)

    def __init__(self, latest: ConfigSnapshot) -> None:
        self._latest = latest

    def snapshot(self) -> ConfigSnapshot:
        """The present view."""
        return self._latest

    def advance(self, latest: ConfigSnapshot) -> None:
        """More records were read; reads are never taken back."""
        if latest.offset > self._latest.offset:
            self._latest = latest


class _Countdown:
    """Does something at the last of so many calls."""

    __slots__ = ("_action", "_left")

    def __init__(self, calls: int, action: Action) -> None:
        self._left = calls
        self._action = action

    def __call__(self) -> None:
        self._left -= 1
        if self._left == 0:
            self._action()


class WorkerProcess(ClientProcess):
    """One incarnation of a Connect worker.

    Args:
        world: What the run shares.
        spec: The worker.
        group: Its cluster.
        cluster: The cluster's config topic.
        work: What the cluster's tasks share.
        when_gone: Called once when the process has ended.
    """

    __slots__ = (
        "_cluster",
        "_configs",
        "_herder",
        "_is_closing",
        "_slow_us",
        "_tasks",
        "_when_gone",
    )

    def __init__(
        self,
        world: World,
        spec: WorkerSpec,
        group: ConnectGroupSpec,
        *,
        cluster: ConnectCluster,
        work: ClusterWork,
        when_gone: Action,
    ) -> None:
        self._configs = _ConfigView(cluster.snapshot)
        self._herder = Herder(
            WorkerConfig.from_settings(worker_settings(spec, group)),
            worker_name=spec.name,
            url=f"http://{spec.name}:8083/",
            group_id=group.group_id,
            bootstrap=world.bootstrap(),
            config_log=self._configs,
            jitter=world.choices,
        )
        super().__init__(world, spec.name, group_id=group.group_id, port=self._herder)
        self._cluster = cluster
        self._tasks = WorkerTasks(
            world,
            work,
            spec.name,
            settings=worker_settings(spec, group),
            on_failed=self._task_failed,
        )
        self._is_closing = False
        self._slow_us = 0
        self._when_gone = when_gone

    def start(self) -> None:
        """Read the config topic and tick for the first time, once the process is up."""
        self._cluster.follow(self._name, self)
        self._later(START_UP_US, self._tick)

    def stop(self) -> None:
        """Stop all work, leave the group, and end."""
        if not self._is_closing:
            self._is_closing = True
            self._later(0, self._close)

    def be_slow(self, for_us: int) -> None:
        """Keep the herder's thread busy for so long after its present tick."""
        self._slow_us += for_us
        self._later(0, self._wake_up)

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Never asked of a worker: scenarios are checked for it.

        Raises:
            InvariantViolation: always.
        """
        raise InvariantViolation(f"worker {self._name} cannot subscribe to {topics}")

    def configs_read(self, snapshot: ConfigSnapshot, change: ConfigChange) -> None:
        """New records of the config topic were read."""
        self._later(0, partial(self._read_configs, snapshot, change))

    def _read_configs(self, snapshot: ConfigSnapshot, change: ConfigChange) -> None:
        self._configs.advance(snapshot)
        self._run(self._herder.config_changed(self._now_ms(), change))

    def _close(self) -> None:
        self._run(self._herder.close(self._now_ms(), 0))

    def _wake_up(self) -> None:
        self._run(self._herder.wakeup(self._now_ms()))

    def _tick(self) -> None:
        if not self._is_closing:
            self._run(self._herder.poll(self._now_ms(), TICK_TIMEOUT_MS))

    def _on_poll_returned(self, error: str | None) -> None:
        if error is not None:
            # Whatever the herder's thread does not catch ends the process.
            # Source: kafka trunk, DistributedHerder.run.
            self._record(Event.LIFECYCLE, reason_text=f"herder raised {error}")
            self._later(0, self.kill)
            return
        slow_us = self._slow_us
        self._slow_us = 0
        self._later(slow_us, self._tick)

    def _on_callback(self, callback: RunCallback) -> None:
        starts = callback.kind is CallbackKind.WORK_ASSIGNED
        described = [task for task in callback.tasks if self._tasks.does(task.connector)]
        done = partial(self._work_done, callback, starts=starts)
        last = _Countdown(1 + len(described), done)
        self._later(START_WORK_US if starts else STOP_WORK_US, last)
        for task in described:
            if starts:
                self._tasks.start(task, self._task_count(task), last)
            else:
                self._tasks.stop(task, last)

    def _task_count(self, task: ConnectorTaskId) -> int:
        """Tasks of the connector now; one that is deleted meanwhile has at least this one."""
        return self._cluster.snapshot.connectors.get(task.connector, task.task + 1)

    def _task_failed(self, task: ConnectorTaskId, trace: str) -> None:
        self._record(Event.LIFECYCLE, reason_text=f"{task.resource()} failed: {trace}")

    def pause(self, for_us: int) -> None:
        """Freeze the process with its tasks."""
        self._tasks.pause(for_us)
        super().pause(for_us)

    def _work_done(self, callback: RunCallback, *, starts: bool) -> None:
        self._record(
            Event.TASKS_STARTED if starts else Event.TASKS_STOPPED,
            generation=self._herder.generation_id,
            member_id=self._herder.member_id or None,
            attrs={"resources": resources_text(callback.connectors, callback.tasks)},
        )
        self._complete_callback(callback.token)
        if starts:
            for connector in callback.connectors:
                self._cluster.connector_started(connector)

    def _on_gone(self) -> None:
        self._tasks.crash()
        self._cluster.unfollow(self._name)
        self._when_gone()


def resources_text(connectors: Sequence[str], tasks: Sequence[ConnectorTaskId]) -> str:
    """Resource names separated by spaces, connectors first."""
    return " ".join((*map(connector_resource, connectors), *(task.resource() for task in tasks)))


def worker_settings(spec: WorkerSpec, group: ConnectGroupSpec) -> dict[str, str]:
    """The settings of one worker by Kafka's names, its own over its cluster's."""
    return {**group.settings, **spec.settings, "connect.protocol": group.connect_protocol}
