"""Work of one process, recorded in the trace as stretches of records.

A stretch is a run of consecutive records of one partition and the time its owner had for them. The
stretches of an owner follow each other without a gap, in offsets and in time, from the instant it
took the partition to the instant it let go; a long ownership is cut into stretches so that the
trace shows progress. Stretches without records are recorded too: they show that the partition was
held, and from which offset on.
"""

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.lag_meter import LagMeter, StretchLag
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent

STRETCH_US: Final = 60_000_000
"""Longest stretch: an hour of a thousand partitions gives 60,000 events."""


class LedgerWorld(Protocol):
    """What a ledger needs of the run that it is part of."""

    environment: Environment
    topic_logs: TopicLogs
    traces_work: bool
    lag_meter: LagMeter | None
    ledgers: "dict[WorkLedger, None]"

    def record(self, event: TraceEvent) -> None:
        """Add an event to the trace."""
        ...


class _Stretch:
    __slots__ = ("first", "lag", "max_lag", "next_offset", "since_us")

    def __init__(self, offset: int, since_us: int, lag: StretchLag | None) -> None:
        self.lag = lag
        self.first = offset
        self.next_offset = offset
        self.since_us = since_us
        self.max_lag = 0


class WorkLedger:
    """The open stretches of one process.

    Args:
        world: Shared parts of the run; if its trace omits work, ledgers are silent.
        group_id: Group whose offsets tell the progress.
        client_id: Client that processes.
        attrs: Attributes of every stretch: `task` and `run` of a Connect task.
    """

    __slots__ = ("_attrs", "_client_id", "_group_id", "_open", "_suspended", "_world", "is_on")

    def __init__(
        self,
        world: LedgerWorld,
        *,
        group_id: str,
        client_id: str,
        attrs: dict[str, str] | None = None,
    ) -> None:
        self._world = world
        self._group_id = group_id
        self._client_id = client_id
        self._attrs = attrs or {}
        self.is_on = world.traces_work
        """Whether the ledger records; a silent one need not be called."""
        self._open: dict[TopicPartition, _Stretch] = {}
        self._suspended: dict[TopicPartition, int] = {}
        if self.is_on:
            world.ledgers[self] = None

    def hold(self, partition: TopicPartition, offset: int, end_offset: int) -> None:
        """Begin work on a partition at this next offset.

        Ends the open stretch if the offset differs: it was reset or sought.

        Args:
            partition: What is held.
            offset: Of the next record.
            end_offset: After the last record that there is now.
        """
        if self.is_on:
            self.hold_level((partition,), offset, end_offset)

    def hold_level(
        self, partitions: Iterable[TopicPartition], offset: int, end_offset: int
    ) -> None:
        """Call `hold` for partitions that have the same offsets; the ledger records."""
        lag = end_offset - offset
        is_open = self._open
        for partition in partitions:
            stretch = is_open.get(partition)
            if stretch is not None and stretch.next_offset != offset:
                self._end(partition)
                stretch = None
            if stretch is None:
                stretch = self._begin(partition, offset)
            if lag > stretch.max_lag:  # noqa: PLR1730 - hot, max() is a call
                stretch.max_lag = lag

    def processed_all(self, done: Iterable[tuple[TopicPartition, int, int]]) -> None:
        """Call `processed` for each partition, with its first offset and the one after its last."""
        is_open = self._open
        now_us = self._world.environment.now_us
        for partition, _, end in done:
            stretch = is_open.get(partition)
            if stretch is None:
                continue
            if stretch.lag is not None and self._world.lag_meter is not None:
                records = stretch.next_offset, end
                self._world.lag_meter.done(stretch.lag, partition, records, now_us)
            stretch.next_offset = end
            if now_us - stretch.since_us >= STRETCH_US:
                self._end(partition)
                self._begin(partition, end)

    def processed(self, partition: TopicPartition, next_offset: int) -> None:
        """Record that all records before `next_offset` are processed; ignored if not held."""
        self.processed_all(((partition, next_offset, next_offset),))

    def let_go(self, partition: TopicPartition) -> None:
        """End work on the partition."""
        if partition in self._open:
            self._end(partition)

    def suspend(self) -> None:
        """Suspend work on all held partitions."""
        for partition, stretch in list(self._open.items()):
            self._suspended[partition] = stretch.next_offset
            self._end(partition)

    def resume(self) -> None:
        """Resume suspended work."""
        for partition, offset in self._suspended.items():
            self._begin(partition, offset)
        self._suspended.clear()

    def close(self) -> None:
        """End all work: the process is gone, or the run is over."""
        for partition in list(self._open):
            self._end(partition)
        self._suspended.clear()
        self._world.ledgers.pop(self, None)

    def is_level(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Whether nothing is to be recorded while these positions and the log ends stay."""
        is_open = self._open
        return not self.is_on or all(
            (stretch := is_open.get(partition)) is not None and stretch.next_offset == position
            for partition, position in positions.items()
        )

    def _oldest(self, _partition: TopicPartition, offset: int) -> int:
        """Return the offset of the oldest record that waits behind this next offset."""
        return offset

    def _begin(self, partition: TopicPartition, offset: int) -> _Stretch:
        now_us, meter = self._world.environment.now_us, self._world.lag_meter
        oldest = self._oldest(partition, offset)
        lag = None if meter is None else meter.begin(self._group_id, partition, oldest, now_us)
        stretch = self._open[partition] = _Stretch(offset, now_us, lag)
        return stretch

    def _end(self, partition: TopicPartition) -> None:
        stretch = self._open.pop(partition)
        now_us = self._world.environment.now_us
        end_offset = self._world.topic_logs.end_offset(partition, now_us)
        lag = max(0, end_offset - stretch.next_offset)  # A deleted topic ends before.
        meter, in_time = self._world.lag_meter, {}
        if stretch.lag is not None and meter is not None:
            oldest = self._oldest(partition, stretch.next_offset)
            in_time = meter.attrs(stretch.lag, partition, oldest, now_us)
        self._world.record(
            TraceEvent(
                event=Event.RECORDS_PROCESSED,
                ts_us=now_us,
                group_id=self._group_id,
                client_id=self._client_id,
                latency_us=now_us - stretch.since_us,
                offsets=(OffsetEntry(partition.topic, partition.partition, stretch.first),),
                position=stretch.next_offset,
                attrs={
                    **self._attrs,
                    "lag": str(lag),
                    "max_lag": str(max(stretch.max_lag, lag)),
                    **in_time,
                },
            )
        )
