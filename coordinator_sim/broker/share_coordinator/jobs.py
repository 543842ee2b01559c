"""Periodic jobs of a share coordinator: it prunes its log, and rewrites cold snapshots.

Each job re-arms when it has finished. While no partition needs a job, its timer is hidden from
drivers and keeps running, so that it fires when Kafka's would.

Source: kafka 4.3, ShareCoordinatorService.java: setupRecordPruning, performRecordPruning,
setupSnapshotColdPartitions, onMetadataUpdate.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from coordinator_sim.broker.share_coordinator.ports import ShareCoordinatorConfig, StateLog
from coordinator_sim.broker.share_coordinator.runtime import Operation, ShareCoordinatorRuntime
from coordinator_sim.broker.share_coordinator.shard import (
    Records,
    Refusal,
    ShareCoordinatorShard,
)
from coordinator_sim.clock.timer_queue import TimerKey, TimerKind
from coordinator_sim.coordinator.common.runtime import PartitionState
from coordinator_sim.kafka.errors import ErrorCode


class _Job(Struct, frozen=True, eq=False):
    """What is done again and again.

    Args:
        interval_ms: How often.
        generation: Of the jobs that it was begun with.
        do: Does it once, and arms the job when it is through.
    """

    interval_ms: int
    generation: int
    do: "Callable[[_Job], None]"


class PeriodicJobs:
    """The jobs of one broker's share coordinator.

    Args:
        config: How often.
        runtime: The partitions.
        log: What is cut short.
    """

    def __init__(
        self, config: ShareCoordinatorConfig, runtime: ShareCoordinatorRuntime, log: StateLog
    ) -> None:
        self._config = config
        self._runtime = runtime
        self._log = log
        self._is_enabled = False
        self._generation = 0
        self._pruned: dict[int, int] = {}
        self._armed: dict[TimerKey, _Job] = {}

    def enable(self, *, is_enabled: bool) -> None:
        """Begin with the jobs, or end each when it is due next.

        QUIRK: jobs that are begun again before the old ones were due run twice as often, up to 4.3.
        """
        if is_enabled == self._is_enabled:
            return
        self._is_enabled = is_enabled
        if self._config.profile.share_upkeep_begins_once:
            self._generation += 1
        if is_enabled:
            config, generation = self._config, self._generation
            self._arm(_Job(config.prune_interval_ms, generation, self._prune))
            if config.cold_interval_ms is not None:
                self._arm(_Job(config.cold_interval_ms, generation, self._snapshot))

    def forget(self, partition: int) -> None:
        """Another broker may write to a partition from now on."""
        self._pruned.pop(partition, None)

    # -- time ---------------------------------------------------------------------------------

    def _arm(self, job: _Job) -> None:
        self._arm_at(self._runtime.now_ms + job.interval_ms, job)

    def _arm_at(self, deadline_ms: int, job: _Job) -> None:
        key: TimerKey = self._runtime.new_timer(
            TimerKind.UPKEEP, deadline_ms, lambda: self._due(key)
        )
        self._armed[key] = job
        self.arm()

    def _due(self, key: TimerKey) -> None:
        job = self._armed.pop(key)
        if self._goes_on(job):
            job.do(job)

    def _goes_on(self, job: _Job) -> bool:
        return self._is_enabled and job.generation == self._generation

    def catch_up(self, now_ms: int) -> None:
        """Let the timers of jobs that had nothing to do go on, up to now."""
        timers = self._runtime.timers
        overdue = [
            (key, timer.deadline_ms)
            for key in self._armed
            if (timer := timers.get(key)) is not None and timer.deadline_ms <= now_ms
        ]
        if not overdue or (self._is_enabled and self._has_work()):
            return
        for key, deadline_ms in overdue:
            timers.cancel(key)
            job = self._armed.pop(key)
            if self._goes_on(job):
                missed = (now_ms - deadline_ms) // job.interval_ms + 1
                self._arm_at(deadline_ms + missed * job.interval_ms, job)

    def next_deadline_ms(self) -> int | None:
        """The earliest deadline of the broker, without jobs that have nothing to do."""
        hidden = () if self._has_work() else self._armed
        timers = (timer for timer in self._runtime.timers if timer.key not in hidden)
        return min((timer.deadline_ms for timer in timers), default=None)

    def arm(self) -> None:
        """Arm the alarm for the jobs, if they have something to do."""
        if self._armed and self._has_work():
            for key in self._armed:
                timer = self._runtime.timers.get(key)
                self._runtime.wake_by(None if timer is None else timer.deadline_ms)

    def _has_work(self) -> bool:
        """Whether a partition has state, or a log that can be cut."""
        return any(
            len(shard) or shard.redundant.last() != self._pruned.get(index)
            for index, shard in self._runtime.partitions.items()
            if shard.state is PartitionState.ACTIVE
        )

    # -- the log ------------------------------------------------------------------------------

    def _prune(self, job: _Job) -> None:
        """Delete what is redundant in every partition, then wait for the next time."""
        shards = self._runtime.active()
        rest = _Countdown(len(shards), partial(self._arm, job))
        for shard in shards:
            told = partial(self._prune_to, shard.index, rest)
            name = "CoordinatorWriteEvent(name=write-state-record-prune)"
            self._runtime.enqueue(Operation(shard.index, name, _last_redundant, told))
        rest.begin()

    def _prune_to(
        self,
        partition: int,
        rest: "_Countdown",
        offset: Any,  # noqa: ANN401 - see `Told`
        failure: Refusal | None,
    ) -> None:
        is_new = failure is None and offset is not None and self._pruned.get(partition) != offset
        if is_new and self._log.delete_before(partition, offset) is ErrorCode.NONE:
            self._pruned[partition] = offset
        rest.one_done()

    # -- cold share partitions ----------------------------------------------------------------

    def _snapshot(self, job: _Job) -> None:
        """Write snapshots of cold share partitions, so that updates before them are redundant."""

        def act(shard: ShareCoordinatorShard) -> tuple[Records, None]:
            return shard.cold_snapshots(self._runtime.now_ms, job.interval_ms), None

        rest = _Countdown(0, partial(self._arm, job))
        name = "CoordinatorWriteEvent(name=snapshot-cold-partitions)"
        count = self._runtime.write_all(name, act, lambda _result, _failure: rest.one_done())
        rest.left += count
        rest.begin()


def _last_redundant(shard: ShareCoordinatorShard) -> tuple[Records, int | None]:
    return (), shard.redundant.last()


class _Countdown:
    """Calls back once so many things are done, and all of them were begun."""

    def __init__(self, left: int, then: Callable[[], None]) -> None:
        self.left = left
        self._then = then
        self._has_begun = False

    def begin(self) -> None:
        """All were begun."""
        self._has_begun = True
        self._check()

    def one_done(self) -> None:
        """One is done."""
        self.left -= 1
        self._check()

    def _check(self) -> None:
        if self._has_begun and self.left == 0:
            self._then()
