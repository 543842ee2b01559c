"""Source tasks: they copy records of an outside system into a topic, and commit their position.

Records have no content. Modelled are where a task begins (the last source offset committed for its
partitions), what it writes, and what it commits before it ends.

Source: kafka trunk, connect/runtime/.../runtime/AbstractWorkerSourceTask.java, execute and cancel;
WorkerSourceTask.java; ExactlyOnceWorkerSourceTask.java; SourceTaskOffsetCommitter.java.
"""

from functools import partial
from typing import Final

from coordinator_sim.clock import Action
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.pausable import PausableProcess
from coordinator_sim.sim.processing import Pace, Records, count_of, split
from coordinator_sim.sim.scenario.work import SourceWork, source_topic
from coordinator_sim.sim.task_runs import ClusterWork, TaskFailed, TaskRun
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
            self._world.topic_logs.append(self._target(partition), end - first)
            self._positions[partition] = end
            self._ledger.processed(partition, end)
        self._processed_count += count_of(written)
        if self._run.exactly_once and written:
            self._cluster.commit(self._positions)

    def _target(self, partition: TopicPartition) -> TopicPartition:
        count = self._world.partition_count(self._work.topic)
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
