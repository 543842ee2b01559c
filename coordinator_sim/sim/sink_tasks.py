"""Sink tasks: consumers of the group `connect-<connector>`, inside a worker's process.

A sink task commits asynchronously at intervals, and waits for the commit when partitions are
revoked and when it ends. Unlike a source task, it processes what its own consumer group assigns.

Source: kafka trunk, connect/runtime/.../runtime/WorkerSinkTask.java; Worker.java,
baseConsumerConfigs.
"""

from functools import partial

from coordinator_sim.clock import Action
from coordinator_sim.sim.consumers import ConsumerProcess
from coordinator_sim.sim.processing import count_of, split
from coordinator_sim.sim.scenario.work import CommitPolicy, PerRecord, SinkWork
from coordinator_sim.sim.scenario.world import ConsumerGroupSpec, ConsumerSpec
from coordinator_sim.sim.task_runs import TaskFailed, TaskRun
from coordinator_sim.sim.world import US_PER_MS, World


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
            when_gone=self._gone,
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
