"""The tasks that one worker's process runs, as far as the scenario describes their work.

The worker's driver starts, stops and cancels them as its herder orders, and freezes or kills them
with its process. Tasks of connectors without described work are handled by that driver alone.

Sink tasks: consumers of the group `connect-<connector>`, inside a worker's process.

A sink task commits asynchronously at intervals, and waits for the commit when partitions are
revoked and when it ends. Unlike a source task, it processes what its own consumer group assigns.

Source tasks: they copy records of an outside system into a topic, and commit their position.

Records have no content. Modelled are where a task begins (the last source offset committed for its
partitions), what it writes, and what it commits before it ends.

Source: kafka trunk, connect/runtime/.../runtime/WorkerSinkTask.java; Worker.java,
baseConsumerConfigs; connect/runtime/.../runtime/AbstractWorkerSourceTask.java, execute and cancel;
WorkerSourceTask.java; ExactlyOnceWorkerSourceTask.java; SourceTaskOffsetCommitter.java.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final, Protocol

import msgspec

from coordinator_sim.clock import Action
from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.sim.consumers import ConsumerProcess
from coordinator_sim.sim.pausable import PausableProcess
from coordinator_sim.sim.processing import Pace, Records, count_of, split
from coordinator_sim.sim.scenario.quantiles import drawn
from coordinator_sim.sim.scenario.settings import int_setting
from coordinator_sim.sim.scenario.work import (
    DEFAULT_START_MS,
    DEFAULT_STOP_MS,
    CommitPolicy,
    ConnectorWork,
    PerRecord,
    SinkWork,
    SourceWork,
    source_topic,
)
from coordinator_sim.sim.scenario.world import ConsumerGroupSpec, ConsumerSpec
from coordinator_sim.sim.task_runs import FLUSH_INTERVAL_MS, ClusterWork, TaskFailed, TaskRun
from coordinator_sim.sim.work_ledger import WorkLedger
from coordinator_sim.sim.world import US_PER_MS, World

BATCH_RECORDS: Final = 500
"""Most records of one poll."""
RETRY_US: Final = 100_000
"""Producer's `retry.backoff.ms`: wait before a topic with an unreachable leader is retried."""
FENCED: Final = "org.apache.kafka.common.errors.ProducerFencedException"


class SourceTask(PausableProcess):
    """One run of a source task.

    With exactly-once support the records of a poll and their source offsets are one transaction,
    and a newer run of the task fences this one. Without it, offsets are committed every
    `offset.flush.interval.ms` and at the end; two simultaneous runs both write, and the later
    commit counts.

    Args:
        world: Shared parts of the run.
        run: Run number and task.
        work: Work of the task.
        cluster: Source offsets of its Connect cluster.
        on_failed: Called with the trace when it has failed and ended.
    """

    __slots__ = (
        "_cluster",
        "_flush_at_us",
        "_in_hand",
        "_is_still",
        "_ledger",
        "_on_failed",
        "_positions",
        "_processed_count",
        "_run",
        "_when_stopped",
        "_work",
    )

    def __init__(
        self,
        world: World,
        run: TaskRun,
        work: SourceWork,
        *,
        cluster: ClusterWork,
        on_failed: TaskFailed,
    ) -> None:
        super().__init__(world)
        self._run = run
        self._work = work
        self._cluster = cluster
        self._on_failed = on_failed
        self._ledger = WorkLedger(
            world, group_id=cluster.group_id, client_id=run.worker, attrs=run.attrs()
        )
        self._positions: dict[TopicPartition, int] = {}
        self._in_hand: list[Records] = []
        self._processed_count = 0
        self._is_still = False
        self._flush_at_us = 0
        self._when_stopped: Action | None = None

    # Calls of the worker.

    def begin(self, when_started: Action) -> None:
        """Read the committed offsets and begin, once the task's own start is over."""
        self._later(self._work.start_ms * US_PER_MS, partial(self._started, when_started))

    def end(self, when_stopped: Action) -> None:
        """End when the current batch is written, then commit for the last time."""
        self._when_stopped = when_stopped

    def fail(self, trace: str) -> None:
        """Commit what was written, unless in a transaction, and end."""
        if self._is_alive:
            self._flush()
            self.crash()
            self._on_failed(self._run.task, trace)

    def cancel(self) -> None:
        """Close the producer: the worker stopped waiting, and later results do not count."""
        self.crash()

    def crash(self) -> None:
        """End at once: unwritten records are not written, uncommitted offsets are lost."""
        if self._is_alive:
            self._end()
            self._ledger.close()

    def pause(self, for_us: int) -> None:
        """Freeze with the worker's process."""
        if not self._is_paused:
            self._ledger.suspend()
        super().pause(for_us)

    def _thaw(self) -> None:
        self._ledger.resume()
        super()._thaw()

    def keep_still(self, still: bool) -> None:
        """Process nothing while the connector is paused."""
        self._is_still = still

    # The task's thread.

    def _started(self, when_started: Action) -> None:
        topic = source_topic(self._run.task.connector)
        numbers = range(self._run.task.task, self._work.partitions, self._run.task_count)
        for number in numbers:
            partition = TopicPartition(topic, number)
            self._positions[partition] = self._cluster.committed.get(partition, 0)
        self._cluster.claim(self._run)
        self._flush_at_us = self._environment.now_us + self._run.flush_us
        self.set_alarm(self._flush_at_us)
        self._hold()
        when_started()
        self._poll()

    def _poll(self) -> None:
        if self._when_stopped is not None:
            self._later(self._work.stop_ms * US_PER_MS, self._stopped)
            return
        self._hold()
        self._in_hand = [] if self._is_still else self._batch()
        if self._in_hand:
            pace = Pace(0, self._work.record_us)
            self._later(pace.busy_us(count_of(self._in_hand)), self._send)
        else:
            self._later(self._work.poll_ms * US_PER_MS, self._poll)

    def _hold(self) -> None:
        now_us = self._environment.now_us
        end_offset = self._world.topic_logs.end_offset
        for partition, position in self._positions.items():
            self._ledger.hold(partition, position, end_offset(partition, now_us))

    def _batch(self) -> list[Records]:
        """Return the records that reached the source, longest-waiting partition first."""
        now_us = self._environment.now_us
        end_offset = self._world.topic_logs.end_offset
        waiting = [
            Records(partition, position, end_offset(partition, now_us))
            for partition, position in sorted(self._positions.items(), key=_by_offset)
        ]
        batch = split([each for each in waiting if each.end > each.first], BATCH_RECORDS)[0]
        if self._work.fails_after is None:
            return batch
        return split(batch, self._work.fails_after - self._processed_count)[0]

    def _send(self) -> None:
        """Write the batch; retry records that cannot be written until the task has to stop."""
        reaches = self._world.reaches_leader
        batch = self._in_hand
        written = [r for r in batch if reaches(self._run.worker, self._target(r.partition))]
        if self._run.exactly_once and len(written) < len(batch):
            written = []  # a transaction is whole or not at all
        if written and self._is_fenced():
            self.fail(FENCED)
            return
        self._in_hand = [records for records in batch if records not in written]
        self._sent(written)
        if self._processed_count == self._work.fails_after:
            self.fail(f"the task failed after {self._processed_count} records")
        elif self._in_hand and self._when_stopped is None:
            self._later(RETRY_US, self._send)
        elif self._in_hand or count_of(batch) == BATCH_RECORDS:
            self._poll()
        else:
            self._later(self._work.poll_ms * US_PER_MS, self._poll)

    def _sent(self, written: list[Records]) -> None:
        for partition, first, end in written:
            target, now_us = self._target(partition), self._environment.now_us
            self._world.topic_logs.append(target, end - first, now_us)
            self._positions[partition] = end
            self._ledger.processed(partition, end)
        self._processed_count += count_of(written)
        if self._run.exactly_once and written:
            self._cluster.commit(self._positions)

    def _target(self, partition: TopicPartition) -> TopicPartition:
        count = self._world.partition_count(self._work.topic) or 1
        return TopicPartition(self._work.topic, partition.partition % count)

    def _is_fenced(self) -> bool:
        return self._run.exactly_once and not self._cluster.may_write(self._run)

    # Offsets.

    def _on_alarm(self) -> None:
        if self._is_paused:
            return
        now_us = self._environment.now_us
        if now_us >= self._flush_at_us:
            self._flush()
            self._flush_at_us = now_us + self._run.flush_us
        self.set_alarm(self._flush_at_us)

    def _flush(self) -> None:
        """Write the offsets of written records; they reach the topic one latency later.

        A worker that reaches no broker keeps them for the next time.
        """
        if self._run.exactly_once or not self._world.reaches_any(self._run.worker):
            return
        worker = self._run.worker
        one_way_us = self._world.network.latency_us(worker, f"offsets>{worker}")
        arrive = partial(self._cluster.commit, dict(self._positions))
        self._environment.call_at(self._environment.now_us + one_way_us, arrive)

    def _stopped(self) -> None:
        when_stopped = self._when_stopped
        self._flush()
        self.crash()
        if when_stopped is not None:
            when_stopped()


def _by_offset(entry: tuple[TopicPartition, int]) -> tuple[int, TopicPartition]:
    partition, position = entry
    return position, partition


class SinkTask(ConsumerProcess):
    """One run of a sink task.

    Args:
        world: Shared parts of the run.
        run: Run number and task.
        work: Work of the task.
        on_failed: Called with the trace when it has failed and ended.
    """

    __slots__ = (
        "_delivered_count",
        "_is_still",
        "_on_failed",
        "_run_of_task",
        "_trace",
        "_when_stopped",
        "_work",
    )

    def __init__(
        self, world: World, run: TaskRun, work: SinkWork, *, on_failed: TaskFailed
    ) -> None:
        connector, number = run.task
        super().__init__(
            world,
            ConsumerSpec(
                name=f"connector-consumer-{connector}-{number}",
                processing=PerRecord(work.record_us),
                commits=CommitPolicy(when="interval", interval_ms=run.flush_us // US_PER_MS),
            ),
            ConsumerGroupSpec(group_id=f"connect-{connector}", topics=work.topics, members=()),
            on_exit=self._gone,
            host=run.worker,
            attrs=run.attrs(),
        )
        self._run_of_task = run
        self._work = work
        self._on_failed = on_failed
        self._delivered_count = 0
        self._is_still = False
        self._trace: str | None = None
        self._when_stopped: Action | None = None

    # Calls of the worker.

    def begin(self, when_started: Action) -> None:
        """Subscribe and poll, once the task's own start is over."""
        self._later(self._work.start_ms * US_PER_MS, partial(self._started, when_started))

    def end(self, when_stopped: Action) -> None:
        """End when the current batch is delivered: commit, and leave the group."""
        self._when_stopped = when_stopped
        self.stop()

    def fail(self, trace: str) -> None:
        """Raise now: the current batch is not delivered, and what was before is committed."""
        self._count_done()
        for partition, first, _ in (*self._processing, *self._taken):
            self._consumer.advance_position(partition, first)
        self._processing, self._taken = [], []
        self._trace = trace
        self.stop()

    def cancel(self) -> None:
        """Stop being waited for: the task ends when it can, and commits no more."""
        self._policy = CommitPolicy(when="never", on_revoke=False)
        self._when_stopped = None
        self.stop()

    def crash(self) -> None:
        """End at once: the group notices when the session times out."""
        if self._is_alive:
            self._trace = self._when_stopped = None
            self.kill()

    def keep_still(self, still: bool) -> None:
        """Fetch nothing while the connector is paused; finished records are committed soon."""
        self._is_still = still
        self._next_commit_us = 0

    # Differences from other consumers.

    def _started(self, when_started: Action) -> None:
        when_started()
        self._poll()

    def _take_records(self) -> bool:
        return not self._is_still and super()._take_records()

    def _process(self, commit_error: str | None = None) -> None:
        left = self._left()
        if left is None or count_of(self._taken) < left:
            self._delivered_count += count_of(self._taken)
            super()._process(commit_error)
            return
        # The offsets of a batch count once all of it is delivered, so none of this batch's do.
        self._processing = split(self._taken, left)[0]
        for partition, first, _ in self._taken:
            self._consumer.advance_position(partition, first)
        self._taken = []
        self._started_us = self._environment.now_us
        self._later(self._pace.busy_us(count_of(self._processing)), self._raise)

    def _left(self) -> int | None:
        """Return the number of records until the task fails; None when it never does."""
        limit = self._work.fails_after
        return None if limit is None else limit - self._delivered_count

    def _raise(self) -> None:
        failing, self._processing = self._processing, []
        for partition, _, end in failing:
            self._ledger.processed(partition, end)
        self._trace = f"the task failed after {self._work.fails_after} records"
        self.stop()
        self._close()

    def _close(self) -> None:
        if self._trace is None:
            self._later(self._work.stop_ms * US_PER_MS, super()._close)
        else:
            super()._close()

    def _gone(self) -> None:
        if self._trace is not None:
            self._on_failed(self._run_of_task.task, self._trace)
        elif self._when_stopped is not None:
            self._when_stopped()


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
