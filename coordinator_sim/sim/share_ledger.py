"""Progress of share groups for the trace: lag, delays, archived records, locks that ran out.

A share partition's lag is Kafka's: the records from its start offset on that are neither
acknowledged nor archived. They need not be consecutive, so that a stretch counts records that are
done, not offsets; its lag in time is the age of the oldest record that is not done.

Source: KIP-1226; kafka 4.4, GroupCoordinatorService.computeShareGroupLagAndBuildResponse.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import structs

from coordinator_sim.broker.shares.in_flight_state import RecordState
from coordinator_sim.broker.shares.persister import StateBatch
from coordinator_sim.broker.shares.share_values import Progress
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.work_ledger import STRETCH_US, WorkLedger
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent

_RUN: Final = {"run": "share"}
"""All members of a group are one run: that several work on a partition is no fault."""


class _Done:
    """Records of a partition that are done: all before `start`, and those in `beyond`."""

    __slots__ = ("beyond", "start")

    def __init__(self, start: int) -> None:
        self.start = start
        self.beyond: set[int] = set()

    def add(self, batches: Iterable[StateBatch], start: int) -> list[tuple[int, int]]:
        """Add records, and all before an offset; return what is new, as first and end offsets."""
        runs: list[tuple[int, int]] = []
        for offset in self._new(batches):
            if runs and runs[-1][1] == offset:
                runs[-1] = runs[-1][0], offset + 1
            else:
                runs.append((offset, offset + 1))
        while self.start < start or self.start in self.beyond:
            self.beyond.discard(self.start)
            self.start += 1
        return runs

    def _new(self, batches: Iterable[StateBatch]) -> Iterator[int]:
        for batch in batches:
            if RecordState(batch.delivery_state).is_terminal:
                for offset in range(max(batch.first_offset, self.start), batch.last_offset + 1):
                    if offset not in self.beyond:
                        self.beyond.add(offset)
                        yield offset


class ShareLedger(WorkLedger):
    """The open stretches of one share group's partitions, over all brokers.

    Args:
        world: Shared parts of the run.
        group_id: The group.
    """

    __slots__ = ("_client_ids", "_done", "_timed_out")

    def __init__(self, world: World, group_id: str) -> None:
        super().__init__(world, group_id=group_id, client_id="", attrs=_RUN)
        self._client_ids = world.client_ids
        self._done: dict[TopicPartition, _Done] = {}
        self._timed_out: list[TraceEvent] = []
        """Locks that ran out at this instant; consecutive records of one member are one event."""

    def watch(self, progress: Progress) -> None:
        """Count and record a change of a share partition."""
        partition = TopicPartition(progress.topic, progress.key.partition)
        if progress.holder is None:
            self._count(partition, progress)
            for batch in progress.batches:
                if batch.delivery_state == RecordState.ARCHIVED:
                    self._world.record(self._event(Event.RECORDS_ARCHIVED, partition, batch))
            return
        environment, pending = self._world.environment, self._timed_out
        for batch in progress.batches:
            event = self._event(Event.LOCK_TIMED_OUT, partition, batch, progress)
            if not pending:
                environment.call_at(environment.now_us, self._tell_timed_out)
            elif _continues(pending[-1], event):
                pending[-1] = structs.replace(pending[-1], position=event.position)
                continue
            pending.append(event)

    def _count(self, partition: TopicPartition, progress: Progress) -> None:
        now_us, meter = self._world.environment.now_us, self._world.lag_meter
        done = self._done.get(partition)
        if done is None:
            done = self._done[partition] = _Done(progress.start_offset)
            self._begin(partition, done.start)
        before, stretch = done.start, self._open[partition]
        lag = self._world.topic_logs.end_offset(partition, now_us) - stretch.next_offset
        stretch.max_lag = max(stretch.max_lag, lag)
        runs = done.add(progress.batches, progress.start_offset)
        if stretch.lag is not None and meter is not None:
            meter.done_apart(stretch.lag, partition, runs, (before, done.start), now_us)
        stretch.next_offset = done.start + len(done.beyond)
        if now_us - stretch.since_us >= STRETCH_US:
            self._end(partition)
            self._begin(partition, stretch.next_offset)

    def _oldest(self, partition: TopicPartition, _offset: int) -> int:
        return self._done[partition].start

    def _event(
        self,
        event: Event,
        partition: TopicPartition,
        batch: StateBatch,
        progress: Progress | None = None,
    ) -> TraceEvent:
        member_id = None if progress is None else progress.holder
        return TraceEvent(
            event=event,
            ts_us=self._world.environment.now_us,
            group_id=self._group_id,
            member_id=member_id,
            client_id=self._client_ids.get(member_id or ""),
            latency_us=None if progress is None else progress.locked_ms * US_PER_MS,
            offsets=(OffsetEntry(partition.topic, partition.partition, batch.first_offset),),
            position=batch.last_offset + 1,
            attrs={"deliveries": str(batch.delivery_count)},
        )

    def _tell_timed_out(self) -> None:
        for event in self._timed_out:
            self._world.record(event)
        self._timed_out.clear()


def _continues(last: TraceEvent, event: TraceEvent) -> bool:
    """Whether an event has the records after the last one's, and is the same otherwise."""
    (place,) = last.offsets
    same = structs.replace(event, offsets=last.offsets, position=last.position) == last
    return same and event.offsets == (structs.replace(place, offset=last.position),)
