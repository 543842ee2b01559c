"""A broker whose driver fires each timer itself, and prepares the results of its assignors.

Unit tests of Kafka's coordinator drive it so: they move the clock, fire the timers that are due one
by one, run the tasks of other threads, prepare the results of assignors, and replay records into a
coordinator that has not been loaded.

Source: kafka trunk, MockCoordinatorTimer, MockCoordinatorExecutor, MockPartitionAssignor,
GroupMetadataManagerTestContext.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.assignors.contract import AssignmentFailed
from coordinator_sim.assignors.server import ServerMember, TopicAssignment
from coordinator_sim.clock.timer_queue import Timer, TimerKind
from coordinator_sim.coordinator.classic.group import Group
from coordinator_sim.coordinator.common.runtime import PartitionState
from coordinator_sim.coordinator.contract import Assignors, CoordinatorResult, DeletedTopic
from coordinator_sim.coordinator.coordinator import GroupCoordinator, fire
from coordinator_sim.coordinator.loading import open_groups, replay_batch
from coordinator_sim.coordinator.offsets.expiry import expire_offsets
from coordinator_sim.coordinator.partition import Partition
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.harness.harness import Harness, Step
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.offset_commit import OffsetCommitRequest
from coordinator_sim.messages.offset_delete import OffsetDeleteRequest
from coordinator_sim.messages.offset_fetch import OffsetFetchRequest
from coordinator_sim.messages.records import (
    NO_PRODUCER_ID,
    EndTransactionMarker,
    LogBatch,
    LogRecord,
    OpaqueKey,
)
from coordinator_sim.messages.sync_group import SyncGroupRequest
from coordinator_sim.trace.epoch_records import group_of

_NAMES: Final = {
    TimerKind.SESSION: "heartbeat-{0}-{1}",
    TimerKind.JOIN: "join-{0}",
    TimerKind.SYNC: "sync-{0}",
    TimerKind.CONSUMER_SESSION: "session-timeout-{0}-{1}",
    TimerKind.CONSUMER_REBALANCE: "rebalance-timeout-{0}-{1}",
    TimerKind.CONSUMER_JOIN: "join-{0}-{1}",
    TimerKind.CONSUMER_SYNC: "sync-{0}-{1}",
    TimerKind.STREAMS_INITIAL_DELAY: "initial-rebalance-timeout-{0}",
}
"""Kafka's names of the timers of groups. Source: GroupMetadataManager, StreamsGroup."""


class SteppingError(CoordinatorSimError):
    """A step that cannot be taken; the message says why."""


class Prepared(Struct, frozen=True):
    """What an assignor answers when it is asked next.

    Args:
        protocol: Whose assignor: `consumer`, `share` or `streams`.
        targets: Per member, as that assignor returns them.
        failure: What it fails with instead; None if it does not.
    """

    protocol: str
    targets: Mapping[str, Any] = {}
    failure: str | None = None


class PreparedResults:
    """Results that assignors give in order, each once."""

    def __init__(self) -> None:
        self._results: deque[Prepared] = deque()

    def __len__(self) -> int:
        """The number of results that no assignor has been asked for yet."""
        return len(self._results)

    def add(self, prepared: Prepared) -> None:
        """Let an assignor give this result after those that are prepared already."""
        self._results.append(prepared)

    def take(self, protocol: str) -> Mapping[str, Any]:
        """The next result of an assignor of that protocol.

        Raises:
            AssignmentFailed: The result is that it fails.
            SteppingError: No result, or one of another protocol, is prepared.
        """
        if not self._results or self._results[0].protocol != protocol:
            raise SteppingError(f"an assignor of {protocol} groups is asked, no result is prepared")
        prepared = self._results.popleft()
        if prepared.failure is not None:
            raise AssignmentFailed(prepared.failure)
        return prepared.targets

    def share(self, *_asked: object, **_how: object) -> Mapping[str, Any]:
        """See `Assignors.share`."""
        return self.take("share")

    def streams(self, *_asked: object, **_how: object) -> Mapping[str, Any]:
        """See `Assignors.streams`."""
        return self.take("streams")


class PreparedAssignor(Struct, frozen=True):
    """An assignor of consumer groups that returns prepared results; see `ServerAssignor`."""

    name: str
    results: PreparedResults

    def assign(
        self,
        topics: Mapping[bytes, int],  # noqa: ARG002 - what is prepared is returned, whatever is asked
        members: Sequence[ServerMember],  # noqa: ARG002 - as above
        *,
        is_homogeneous: bool | None = None,  # noqa: ARG002 - as above
    ) -> dict[str, TopicAssignment]:
        """Return the next prepared result."""
        return dict(self.results.take("consumer"))


def timer_name(timer: Timer) -> str | None:
    """Kafka's name of a timer; None for one that is not of a group."""
    form = _NAMES.get(timer.key.kind)
    return None if form is None else form.format(timer.key.group_id, timer.key.member_id)


class SteppedCoordinator(GroupCoordinator):
    """A coordinator whose timers, loading and background tasks are driven one by one."""

    def use_assignors(self, assignors: Assignors) -> None:
        """Compute targets by these from now on."""
        self._runtime.assignors = assignors

    def _active(self, index: int) -> Partition:
        part = self._runtime.partitions.get(index)
        if part is None or part.state is not PartitionState.ACTIVE:
            raise SteppingError(f"partition {index} is not led: elect it first")
        return part

    def replay_active(self, partition: int, batch: LogBatch) -> None:
        """Apply a batch of an active partition, whose groups get no timers.

        Source: CoordinatorRuntime.CoordinatorContext.append, which replays what it appends.
        """
        runtime = self._runtime
        part = self._active(partition)
        replay_batch(runtime, part, batch)
        keys = [record.key for record in batch.records if not isinstance(record.key, OpaqueKey)]
        for group_id in dict.fromkeys(map(group_of, keys)):
            group = part.groups.get(group_id)
            if isinstance(group, Group):
                runtime.add_group(group)
            else:
                runtime.remove_group(group_id)

    def open(self, partition: int, now_ms: int) -> CoordinatorResult:
        """Start the timers of every group. Source: GroupMetadataManager.onLoaded."""
        runtime = self._runtime
        runtime.now_ms = now_ms
        open_groups(runtime, self._handlers.takeover, self._active(partition))
        return runtime.take()

    def fire(self, name: str, now_ms: int) -> CoordinatorResult:
        """Fire one timer that is due.

        Args:
            name: Kafka's.
            now_ms: The present, which may be after its deadline.

        Raises:
            SteppingError: There is no such timer, or it is not due.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        timer = next((each for each in runtime.timers if timer_name(each) == name), None)
        if timer is None:
            raise SteppingError(f"timer {name!r} is not armed")
        if timer.deadline_ms > now_ms:
            raise SteppingError(f"timer {name!r} is due at {timer.deadline_ms}, now is {now_ms}")
        runtime.timers.cancel(timer.key)
        fire(runtime, timer)
        return runtime.take()

    def expire_offsets(self, partition: int, now_ms: int) -> CoordinatorResult:
        """Look for expired offsets now. Source: GroupCoordinatorShard.cleanupGroupMetadata."""
        runtime = self._runtime
        runtime.now_ms = now_ms
        expire_offsets(runtime, self._active(partition))
        return runtime.take()

    def refuse(self, partition: int, error: ErrorCode, now_ms: int) -> CoordinatorResult:
        """Fail every write that waits for the high watermark."""
        runtime = self._runtime
        runtime.now_ms = now_ms
        runtime.fail_deferred(self._active(partition), error)
        return runtime.take()

    def run_in_background(self, now_ms: int) -> CoordinatorResult:
        """Do the oldest work of another thread, and write what comes of it.

        Raises:
            SteppingError: There is none.
        """
        runtime = self._runtime
        runtime.now_ms = now_ms
        key = next(iter(runtime.in_background), None)
        if key is None:
            raise SteppingError("no other thread has work")
        steps = runtime.in_background[key]
        try:
            while True:
                next(steps)
        except StopIteration as done:
            del runtime.in_background[key]
            done.value.run(runtime)
        return runtime.take()


class SteppedHarness(Harness):
    """A broker whose timers and tasks run only when its driver runs them."""

    coordinator_type: ClassVar[type[GroupCoordinator]] = SteppedCoordinator
    past_edge: ClassVar[tuple[type, ...]] = (
        *Harness.past_edge,
        OffsetCommitRequest,
        OffsetDeleteRequest,
        OffsetFetchRequest,
        SyncGroupRequest,
    )
    coordinator: SteppedCoordinator

    @cached_property
    def results(self) -> PreparedResults:
        """What its assignors answer, once `use_prepared_assignors` is called."""
        return PreparedResults()

    def use_prepared_assignors(self, names: Sequence[str]) -> None:
        """Compute targets from prepared results; the names are of consumer groups' assignors."""
        self.config = replace(self.config, group_consumer_assignors=tuple(names))
        self.coordinator.reconfigure(self.config, {})
        consumer = {name: PreparedAssignor(name, self.results) for name in names}
        self.coordinator.use_assignors(
            Assignors(consumer, share=self.results.share, streams=self.results.streams)
        )

    def set_clock(self, now_ms: int) -> Step:
        """Set the clock; no timer fires."""
        self.now_ms = now_ms
        return self._step()

    def replay(
        self,
        partition: int,
        records: tuple[LogRecord, ...],
        *,
        producer_id: int = NO_PRODUCER_ID,
        marker: EndTransactionMarker | None = None,
    ) -> Step:
        """Apply a batch to a partition, as if another leader had written it."""
        batch = LogBatch(
            partition=partition,
            base_offset=self.coordinator.end_offset(partition),
            timestamp_ms=self.now_ms,
            records=records,
            producer_id=producer_id,
            producer_epoch=NO_PRODUCER_ID if producer_id == NO_PRODUCER_ID else 0,
            transactional=producer_id != NO_PRODUCER_ID and marker is None,
            marker=marker,
            control=marker is not None,
        )
        self.coordinator.replay_active(partition, batch)
        self.append_batches((batch,))
        return self._step()

    def expire_offsets(self, partition: int) -> Step:
        """Look for expired offsets now."""
        self._take(self.coordinator.expire_offsets(partition, self.now_ms))
        return self._step()

    def open(self, partition: int) -> Step:
        """Start the timers of every group of a partition."""
        self._take(self.coordinator.open(partition, self.now_ms))
        return self._step()

    def fire(self, name: str) -> Step:
        """Fire one timer that is due, by Kafka's name."""
        self._take(self.coordinator.fire(name, self.now_ms))
        return self._step()

    def delete_topics(self, topics: Mapping[str, DeletedTopic]) -> Step:
        """Tell the coordinator that topics were deleted."""
        self._take(self.coordinator.topics_deleted(topics, self.now_ms))
        return self._step()

    def refuse(self, partition: int, error: ErrorCode) -> Step:
        """Fail every write that waits for the high watermark."""
        self._take(self.coordinator.refuse(partition, error, self.now_ms))
        return self._step()

    def run_in_background(self) -> Step:
        """Do the oldest work of another thread."""
        self._take(self.coordinator.run_in_background(self.now_ms))
        return self._step()

    def _settle(self) -> None:
        """Fire nothing: the driver does."""
