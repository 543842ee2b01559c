"""An instance of a Kafka Streams application: tasks, the state they restore, and what they process.

DEVIATION: stores of one instance restore side by side, each at its own rate; copies wait while an
active task restores, as in Java. A store's changelog does not grow during the run.

Source: kafka 4.4, streams/.../processor/internals/StreamThread.java, TaskManager.java,
DefaultStreamsRebalanceListener.java, StoreChangelogReader.java.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from coordinator_sim.clients.effects import CallbackKind, ResetPositions, RunCallback
from coordinator_sim.clients.streams_member import (
    GroupMembershipOperation,
    StreamsMember,
    StreamsRebalanceData,
    streams_config,
)
from coordinator_sim.clients.streams_member.rebalance_data import OffsetSums
from coordinator_sim.clock import Action
from coordinator_sim.kafka.resources import StreamsTaskId
from coordinator_sim.kafka.states import StreamsStatus
from coordinator_sim.sim.consumers import ConsumerProcess
from coordinator_sim.sim.scenario.streams import topology_of
from coordinator_sim.sim.scenario.work import CommitPolicy
from coordinator_sim.sim.scenario.world import ConsumerSpec, StreamsGroupSpec, SubtopologySpec
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event

_US_PER_S: Final = 1_000_000
_POLL_MS: Final = 100
"""Default of `poll.ms`."""


class Application:
    """What outlives the processes of one application: disks, and when tasks processed last.

    Args:
        group: The application.
    """

    def __init__(self, group: StreamsGroupSpec) -> None:
        self.group = group
        self.subtopologies = topology_of(group)
        self.idle_since_us: dict[StreamsTaskId, int] = {}
        """When each task that nobody runs was processed last."""
        self._disks: dict[str, tuple[str, dict[StreamsTaskId, int]]] = {}

    def disk_of(self, world: World, member: str) -> tuple[str, dict[StreamsTaskId, int]]:
        """Return the process id on a member's disk, and how many bytes it has of each task."""
        if member not in self._disks or not self.group.persistent_volume:
            self._disks[member] = (world.new_member_id(), {})
        return self._disks[member]

    def part_of(self, task: StreamsTaskId) -> SubtopologySpec:
        """Return the subtopology of a task."""
        return self.group.subtopologies[int(task.subtopology)]

    def size_of(self, task: StreamsTaskId) -> int:
        """Return the bytes of a task's state."""
        return sum(store.bytes for store in self.part_of(task).stores.values())

    def rate_of(self, task: StreamsTaskId) -> int:
        """Return the bytes a second at which a task restores, whose last store ends it."""
        stores = self.part_of(task).stores.values()
        longest_us = max((s.bytes * _US_PER_S // s.restore_bytes_per_s for s in stores), default=0)
        return self.size_of(task) * _US_PER_S // max(longest_us, 1)

    def offset_of(self, task: StreamsTaskId, restored: int) -> int:
        """Return the sum of changelog offsets for restored bytes."""
        size = self.size_of(task)
        records = sum(s.bytes // s.record_bytes for s in self.part_of(task).stores.values())
        return records if restored >= size else records * restored // size


class StreamsProcess(ConsumerProcess):
    """One incarnation of an instance.

    Args:
        world: Shared parts of the run.
        spec: The instance.
        application: The application.
        on_exit: Called once when the process has ended.
    """

    __slots__ = ("_application", "_changed_us", "_copies", "_disk", "_member", "_restoring",
                 "_running", "_topics_missing_us")  # fmt: skip

    def __init__(
        self, world: World, spec: ConsumerSpec, application: Application, *, on_exit: Action
    ) -> None:
        group = application.group
        process_id, self._disk = application.disk_of(world, spec.name)
        self._application = application
        self._running: dict[StreamsTaskId, None] = {}
        """Active tasks that process."""
        self._restoring: dict[StreamsTaskId, None] = {}
        """Active tasks whose state is not complete."""
        self._copies: dict[StreamsTaskId, None] = {}
        """Standby and warm-up tasks."""
        self._changed_us = world.environment.now_us
        self._topics_missing_us: int | None = None
        data = StreamsRebalanceData(
            process_id=process_id,
            subtopologies=application.subtopologies,
            rack_id=spec.rack,
            task_offset_sums=self._offset_sums,
            task_end_offset_sums=self._end_offset_sums,
        )
        settings = {**group.settings, **spec.settings}
        if spec.instance_id is not None:
            settings["group.instance.id"] = spec.instance_id
        member = StreamsMember(
            streams_config(settings),
            rebalance_data=data,
            client_id=spec.name,
            group_id=group.group_id,
            topics=data.source_topics,
            assignors=(),
            bootstrap=world.bootstrap(),
            member_id=world.new_member_id(),
            jitter=world.choices,
        )
        super().__init__(world, spec, group, on_exit=on_exit, consumer=member)
        self._policy = CommitPolicy(when="interval", interval_ms=group.commit_interval_ms)
        self._poll_timeout_ms = _POLL_MS
        self._member = member

    # What the thread tells its consumer.

    def _offset_sums(self) -> OffsetSums:
        """Sum what is on disk, but for tasks that process (maybeUpdateTaskOffsetSumSnapshot)."""
        self._advance()
        return {
            task: self._application.offset_of(task, restored)
            for task, restored in sorted(self._disk.items())
            if task not in self._running
        }

    def _end_offset_sums(self) -> OffsetSums:
        """Sum the ends of what is being restored (updateTaskEndOffsetSumSnapshot)."""
        application = self._application
        updated = sorted({**self._restoring, **self._copies})
        return {task: application.offset_of(task, application.size_of(task)) for task in updated}

    # The thread's loop.

    def _on_poll_returned(self, error: str | None) -> None:
        if error is None:
            self._read_statuses()
            self._run_restored()
        super()._on_poll_returned(error)

    def _survive(self, error: str | None, call: str) -> None:
        was_stopping = self._is_stopping
        super()._survive(error, call)
        if self._is_stopping and not was_stopping:
            self._member.leaves_by = GroupMembershipOperation.LEAVE_GROUP

    def _read_statuses(self) -> None:
        """Shut down if another instance asks for it, or topics are not as they must be.

        Source: StreamThread.handleStreamsRebalanceData, handleMissingSourceTopicsWithTimeout.
        """
        data, now_us = self._member.rebalance_data, self._environment.now_us
        codes = [status.status_code for status in data.statuses]
        if StreamsStatus.SHUTDOWN_APPLICATION in codes and not self._is_stopping:
            self._member.leaves_by = GroupMembershipOperation.REMAIN_IN_GROUP
            self._is_stopping = True
        if StreamsStatus.INCORRECTLY_PARTITIONED_TOPICS in codes:
            self._fail("TopologyException")
        if StreamsStatus.MISSING_SOURCE_TOPICS not in codes:
            self._topics_missing_us = None
            return
        if self._topics_missing_us is None:
            self._topics_missing_us = now_us
        elif now_us - self._topics_missing_us >= 2 * data.heartbeat_interval_ms * US_PER_MS:
            self._fail("MissingSourceTopicException")

    def _fail(self, error: str) -> None:
        if not self._is_stopping:
            self._record(Event.LIFECYCLE, reason_text=f"thread raised {error}")
            self._member.leaves_by = GroupMembershipOperation.LEAVE_GROUP
            self._is_stopping = True

    def _advance(self) -> None:
        """Restore up to now; copies wait while active tasks restore (transitToRestoreActive)."""
        now_us = self._environment.now_us
        elapsed_us, self._changed_us = now_us - self._changed_us, now_us
        if self._is_paused:
            return
        for task in self._restoring or self._copies:
            gained = self._application.rate_of(task) * elapsed_us // _US_PER_S
            restored = min(self._application.size_of(task), self._disk.get(task, 0) + gained)
            if self._application.part_of(task).stores:
                self._disk[task] = restored

    def _run_restored(self) -> None:
        """Process from now on what is restored, in a group that is ready (checkStateUpdater)."""
        self._advance()
        if not self._member.rebalance_data.reconciled.is_group_ready:
            return
        size_of, now_us = self._application.size_of, self._environment.now_us
        for task in [t for t in self._restoring if self._disk.get(t, 0) >= size_of(t)]:
            del self._restoring[task]
            self._running[task] = None
            attrs = {"resources": task.resource()}
            since_us = self._application.idle_since_us.pop(task, None)
            if since_us is not None:
                attrs["without_ms"] = str((now_us - since_us) // US_PER_MS)
            self._tell_tasks(Event.TASKS_STARTED, attrs)
        self._pause_restoring()

    def _pause_restoring(self) -> None:
        partitions = self._member.rebalance_data.partitions_of(self._restoring)
        self._member.paused = dict.fromkeys(partitions)

    def _stop_tasks(self, tasks: Iterable[StreamsTaskId]) -> None:
        """Process and restore these active tasks no more."""
        self._advance()
        stopped = sorted(task for task in tasks if task in self._running)
        for task in tasks:
            self._restoring.pop(task, None)
            self._running.pop(task, None)
        if stopped:
            now_us = self._environment.now_us
            for task in stopped:
                self._application.idle_since_us.setdefault(task, now_us)
            resources = " ".join(task.resource() for task in stopped)
            self._tell_tasks(Event.TASKS_STOPPED, {"resources": resources})

    def _tell_tasks(self, event: Event, attrs: dict[str, str]) -> None:
        member = self._member
        self._record(
            event, generation=member.generation_id, member_id=member.member_id, attrs=attrs
        )

    # Callbacks of the consumer.

    def _on_callback(self, callback: RunCallback) -> None:
        """Take over and give up tasks (DefaultStreamsRebalanceListener)."""
        tasks = callback.streams
        if tasks is not None and callback.kind is CallbackKind.PARTITIONS_ASSIGNED:
            self._advance()
            given = tasks.deduplicated()
            self._copies = dict.fromkeys((*given.standby, *given.warmup))
            self._restoring = {t: None for t in given.active if t not in self._running}
            self._pause_restoring()
        elif tasks is not None and callback.kind is CallbackKind.PARTITIONS_REVOKED:
            self._stop_tasks(tasks.active)
        elif tasks is not None:
            self._stop_tasks((*self._running, *self._restoring))
            self._copies = {}
        super()._on_callback(callback)

    def _on_reset(self, reset: ResetPositions) -> None:
        """Start partitions, but for those that a topic of fewer partitions does not have.

        QUIRK: a task reads the partition of its number from each topic of its subtopology. Java
        looks in vain for the beginning of one that is not there (topicPartitionsForActiveTasks).
        """
        topics = self._world.cluster.image.topics
        there = tuple(
            each
            for each in reset.partitions
            if each.topic not in topics or each.partition < len(topics[each.topic].partitions)
        )
        super()._on_reset(msgspec.structs.replace(reset, partitions=there))

    # The end, and pauses.

    def _close(self) -> None:
        """Commit and close all tasks, then the consumer (StreamThread.completeShutdown)."""
        self._stop_tasks((*self._running, *self._restoring))
        self._policy = msgspec.structs.replace(self._policy, on_revoke=False)
        if self._done:
            self._commit_and_wait(self._done, self._close_member)
        else:
            self._close_member(None)

    def _close_member(self, error: str | None) -> None:
        del error
        super()._close()

    def pause(self, for_us: int) -> None:
        """Freeze the process: it neither processes nor restores meanwhile."""
        if not self._is_paused:
            self._advance()
            now_us = self._environment.now_us
            for task in self._running:
                self._application.idle_since_us.setdefault(task, now_us)
        super().pause(for_us)

    def _thaw(self) -> None:
        self._advance()
        for task in self._running:
            self._application.idle_since_us.pop(task, None)
        super()._thaw()

    def _on_gone(self) -> None:
        self._stop_tasks((*self._running, *self._restoring))
        super()._on_gone()
