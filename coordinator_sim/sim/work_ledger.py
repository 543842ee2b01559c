"""What one process has processed, told to the trace as stretches of records.

A stretch is a run of consecutive records of one partition and the time its owner had for them.
The stretches of an owner follow each other without a hole, in offsets and in time, from the
instant it took the partition up to the instant it let go; a long ownership is cut into stretches
so that the trace shows progress. Stretches without records are told too: they say that the
partition was held, and from which offset on.
"""

from typing import TYPE_CHECKING, Final

from coordinator_sim.protocol.resources import TopicPartition
from coordinator_sim.trace.events import Event, OffsetEntry, TraceEvent

if TYPE_CHECKING:
    from coordinator_sim.sim.world import World

STRETCH_US: Final = 60_000_000
"""Longest stretch: an hour of a thousand partitions is 60,000 events."""


class _Stretch:
    __slots__ = ("first", "max_lag", "next_offset", "since_us")

    def __init__(self, offset: int, since_us: int) -> None:
        self.first = offset
        self.next_offset = offset
        self.since_us = since_us
        self.max_lag = 0


class WorkLedger:
    """The open stretches of one process.

    Args:
        world: What the run shares; a run whose trace tells no work has silent ledgers.
        group_id: The group whose offsets say what is processed.
        client_id: Who processes.
        attrs: Of every stretch: `task` and `run` of a Connect task.
    """

    __slots__ = ("_attrs", "_client_id", "_group_id", "_open", "_suspended", "_world", "is_on")

    def __init__(
        self, world: "World", *, group_id: str, client_id: str, attrs: dict[str, str] | None = None
    ) -> None:
        self._world = world
        self._group_id = group_id
        self._client_id = client_id
        self._attrs = attrs or {}
        self.is_on = world.traces_work
        """Whether anything is told; what is silent need not be called."""
        self._open: dict[TopicPartition, _Stretch] = {}
        self._suspended: dict[TopicPartition, int] = {}
        if self.is_on:
            world.ledgers[self] = None

    def hold(self, partition: TopicPartition, offset: int) -> None:
        """The process is at work on the partition, and this is the next offset to process.

        Ends the open stretch if it got elsewhere: an offset was reset or sought.
        """
        if not self.is_on:
            return
        stretch = self._open.get(partition)
        if stretch is not None and stretch.next_offset != offset:
            self._end(partition)
            stretch = None
        now_us = self._world.environment.now_us
        if stretch is None:
            stretch = self._open[partition] = _Stretch(offset, now_us)
        lag = self._world.topic_logs.end_offset(partition, now_us) - offset
        stretch.max_lag = max(stretch.max_lag, lag)

    def processed(self, partition: TopicPartition, next_offset: int) -> None:
        """The records before `next_offset` are processed now; ignored where nothing is held."""
        stretch = self._open.get(partition)
        if stretch is None:
            return
        stretch.next_offset = next_offset
        now_us = self._world.environment.now_us
        if now_us - stretch.since_us >= STRETCH_US:
            self._end(partition)
            self._open[partition] = _Stretch(next_offset, now_us)

    def let_go(self, partition: TopicPartition) -> None:
        """The process works on the partition no longer."""
        if partition in self._open:
            self._end(partition)

    def suspend(self) -> None:
        """The process stands still with what it holds."""
        for partition, stretch in list(self._open.items()):
            self._suspended[partition] = stretch.next_offset
            self._end(partition)

    def resume(self) -> None:
        """The process goes on where it stood still."""
        now_us = self._world.environment.now_us
        for partition, offset in self._suspended.items():
            self._open[partition] = _Stretch(offset, now_us)
        self._suspended.clear()

    def close(self) -> None:
        """The process is gone, or the run is over."""
        for partition in list(self._open):
            self._end(partition)
        self._suspended.clear()
        self._world.ledgers.pop(self, None)

    def _end(self, partition: TopicPartition) -> None:
        stretch = self._open.pop(partition)
        now_us = self._world.environment.now_us
        lag = self._world.topic_logs.end_offset(partition, now_us) - stretch.next_offset
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
                },
            )
        )
