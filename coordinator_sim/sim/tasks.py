"""The tasks that one worker's process runs, as far as the scenario describes their work.

The worker's driver starts, stops and cancels them as its herder orders, and freezes or kills them
with its process. Tasks of connectors without described work are handled by that driver alone.
"""

from collections.abc import Mapping
from functools import partial
from typing import Protocol

import msgspec

from coordinator_sim.clock import Action
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.sim.scenario.quantiles import drawn
from coordinator_sim.sim.scenario.settings import int_setting
from coordinator_sim.sim.scenario.work import (
    DEFAULT_START_MS,
    DEFAULT_STOP_MS,
    ConnectorWork,
    SourceWork,
)
from coordinator_sim.sim.sink_tasks import SinkTask
from coordinator_sim.sim.source_tasks import SourceTask
from coordinator_sim.sim.task_runs import FLUSH_INTERVAL_MS, ClusterWork, TaskFailed, TaskRun
from coordinator_sim.sim.world import US_PER_MS, World


class _Task(Protocol):
    """A running task of any kind."""

    def begin(self, when_started: Action) -> None:
        """Start; the action is called once when it has."""

    def end(self, when_stopped: Action) -> None:
        """Stop in an orderly way; the action is called once when it has."""

    def fail(self, trace: str) -> None:
        """Raise an exception, and end as after one."""

    def cancel(self) -> None:
        """Continue without being waited for."""

    def crash(self) -> None:
        """End at once, with the process."""

    def pause(self, for_us: int) -> None:
        """Freeze, with the process."""

    def keep_still(self, still: bool) -> None:
        """Stop processing, or continue."""


class WorkerTasks:
    """The tasks of one worker process.

    Args:
        world: Shared parts of the run.
        cluster: State shared by the cluster's tasks.
        worker: The worker's name.
        settings: Settings of the worker by Kafka's names: `offset.flush.interval.ms` and
            `exactly.once.source.support` are read.
        on_failed: Called with each task that fails by itself, once it has ended.
    """

    __slots__ = (
        "_abandoned",
        "_cluster",
        "_exactly_once",
        "_flush_us",
        "_on_failed",
        "_running",
        "_worker",
        "_world",
    )

    def __init__(
        self,
        world: World,
        cluster: ClusterWork,
        worker: str,
        *,
        settings: Mapping[str, str],
        on_failed: TaskFailed,
    ) -> None:
        self._world = world
        self._cluster = cluster
        self._worker = worker
        self._flush_us = US_PER_MS * int_setting(
            settings, "offset.flush.interval.ms", FLUSH_INTERVAL_MS
        )
        self._exactly_once = settings.get("exactly.once.source.support") == "enabled"
        self._on_failed = on_failed
        self._running: dict[ConnectorTaskId, _Task] = {}
        self._abandoned: list[_Task] = []

    def does(self, connector: str) -> bool:
        """Whether the scenario describes the work of the connector's tasks."""
        return connector in self._cluster.work

    def topics_of(self, connector: str) -> tuple[str, ...]:
        """Return the topics that the connector's tasks write or read."""
        work = self._cluster.work[connector]
        return (work.topic,) if isinstance(work, SourceWork) else work.topics

    def runs(self, task: ConnectorTaskId) -> bool:
        """Whether the task runs here."""
        return task in self._running

    def fail(self, task: ConnectorTaskId, trace: str) -> None:
        """Make a task fail; ignored when it does not run here."""
        running = self._running.get(task)
        if running is not None:
            running.fail(trace)

    def start(self, task: ConnectorTaskId, task_count: int, when_started: Action) -> None:
        """Run a task that does not run here.

        Args:
            task: Task of a connector that `does` something.
            task_count: Present number of tasks of its connector.
            when_started: Called once when it has started.
        """
        run = TaskRun(
            task=task,
            worker=self._worker,
            number=self._cluster.next_run(),
            task_count=task_count,
            flush_us=self._flush_us,
            exactly_once=self._exactly_once,
        )
        running = self._running[task] = self._make(run, self._work_of(task))
        running.begin(when_started)

    def _work_of(self, task: ConnectorTaskId) -> ConnectorWork:
        """Return the task's work; durations left at their defaults are drawn."""
        work, variety = self._cluster.work[task.connector], self._world.variety
        if variety is None:
            return work
        name, choices = task.resource(), self._world.choices
        start_ms = drawn(variety.start_task_ms, choices, "start-work", name)
        stop_ms = drawn(variety.stop_task_ms, choices, "stop-work", name)
        return msgspec.structs.replace(
            work,
            start_ms=start_ms if work.start_ms == DEFAULT_START_MS else work.start_ms,
            stop_ms=stop_ms if work.stop_ms == DEFAULT_STOP_MS else work.stop_ms,
        )

    def _make(self, run: TaskRun, work: ConnectorWork) -> _Task:
        if isinstance(work, SourceWork):
            return SourceTask(self._world, run, work, cluster=self._cluster, on_failed=self._failed)
        return SinkTask(self._world, run, work, on_failed=self._failed)

    def stop(self, task: ConnectorTaskId, when_stopped: Action) -> None:
        """Stop a task in an orderly way; one that has failed before is over already."""
        running = self._running.get(task)
        if running is None:
            when_stopped()
        else:
            running.end(partial(self._stopped, task, when_stopped))

    def cancel(self, task: ConnectorTaskId) -> None:
        """Stop waiting for a task that does not stop; it runs on unwatched."""
        running = self._running.pop(task, None)
        if running is not None:
            running.cancel()
            self._abandoned.append(running)

    def keep_still(self, connector: str, still: bool) -> None:
        """Pause or resume the tasks of a connector that run here."""
        for task, running in self._running.items():
            if task.connector == connector:
                running.keep_still(still)

    def pause(self, for_us: int) -> None:
        """Freeze all tasks with the worker's process."""
        for running in (*self._running.values(), *self._abandoned):
            running.pause(for_us)

    def crash(self) -> None:
        """End all tasks with the worker's process."""
        for running in (*self._running.values(), *self._abandoned):
            running.crash()
        self._running.clear()
        self._abandoned.clear()

    def _stopped(self, task: ConnectorTaskId, when_stopped: Action) -> None:
        self._running.pop(task, None)
        when_stopped()

    def _failed(self, task: ConnectorTaskId, trace: str) -> None:
        self._running.pop(task, None)
        self._on_failed(task, trace)
