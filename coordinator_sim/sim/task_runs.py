"""State shared by the runs of a Connect cluster's tasks: source offsets, and the newest runs."""

from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.resources import ConnectorTaskId, TopicPartition
from coordinator_sim.sim.scenario.work import ConnectorWork, SourceWork, source_topic
from coordinator_sim.sim.scenario.world import ConnectGroupSpec
from coordinator_sim.sim.world import World

FLUSH_INTERVAL_MS: Final = 60_000
"""Default of `offset.flush.interval.ms`."""

TaskFailed = Callable[[ConnectorTaskId, str], None]
"""Called with a task that has failed and ended, and its trace."""


class TaskRun(Struct, frozen=True, kw_only=True):
    """One run of one task.

    Args:
        worker: Worker that runs it.
        number: Counts the runs of the cluster; a later run of the task fences an earlier one.
        task_count: Number of tasks of its connector when it was started.
        flush_us: `offset.flush.interval.ms` of the worker, in microseconds.
        exactly_once: Whether source records and offsets are written in transactions.
    """

    task: ConnectorTaskId
    worker: str
    number: int
    task_count: int
    flush_us: int
    exactly_once: bool

    def attrs(self) -> dict[str, str]:
        """Return the attributes of its work in the trace."""
        return {"task": self.task.resource(), "run": str(self.number)}


class ClusterWork:
    """State shared by the tasks of one Connect cluster.

    Args:
        world: Shared parts of the run; its topics grow with source records and tasks' writes.
        group: The cluster.
    """

    def __init__(self, world: World, group: ConnectGroupSpec) -> None:
        self.group_id = group.group_id
        self.work: Mapping[str, ConnectorWork] = group.work
        self.committed: dict[TopicPartition, int] = {}
        """Source offsets, as they are on the offsets topic."""
        self._newest_run: dict[ConnectorTaskId, int] = {}
        self._first_run: dict[str, tuple[int, int]] = {}
        """Connector -> its number of tasks, and its first run with that number."""
        self._run_count = 0
        for connector, work in group.work.items():
            if isinstance(work, SourceWork):
                world.topic_logs.fill(source_topic(connector), work.records_per_s)
                world.topic_logs.write_by_hand(work.topic)

    def next_run(self) -> int:
        """Return the number of the next run of any task."""
        self._run_count += 1
        return self._run_count

    def claim(self, run: TaskRun) -> None:
        """Fence older producers of the task, and of all tasks when their number has changed.

        Source: kafka trunk, ExactlyOnceWorkerSourceTask.java; DistributedHerder.java,
        fenceZombieSourceTasks.
        """
        connector = run.task.connector
        task_count, _ = self._first_run.get(connector, (0, 0))
        if task_count != run.task_count:
            self._first_run[connector] = (run.task_count, run.number)
        self._newest_run[run.task] = run.number

    def may_write(self, run: TaskRun) -> bool:
        """Whether the producer of the run has not been fenced."""
        _, first_run = self._first_run[run.task.connector]
        return self._newest_run[run.task] == run.number >= first_run

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Store written source offsets; the last write of a partition counts, whoever wrote it."""
        self.committed.update(offsets)
