"""The log of `__consumer_offsets` behind the group coordinators: written before anybody is told.

A coordinator asks its append policy before it takes a batch. Here that question is the write: what
cannot be stored is refused, and so is never acknowledged.
"""

from collections.abc import Iterator

from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.records import LogBatch


class OffsetsTopic:
    """Every partition's batches, oldest first."""

    __slots__ = ("_logs", "failure")

    def __init__(self) -> None:
        self._logs: dict[int, list[LogBatch]] = {}
        self.failure = ErrorCode.NONE
        """What the next appends fail with."""

    def verdict(self, batch: LogBatch) -> ErrorCode:
        """Store a batch, or say why not; as `AppendPolicy.verdict`."""
        if self.failure is not ErrorCode.NONE:
            return self.failure
        if batch.records or batch.marker is not None:
            self._logs.setdefault(batch.partition, []).append(batch)
        return ErrorCode.NONE

    def batches(self, partition: int) -> Iterator[LogBatch]:
        """What one partition holds, for a coordinator that loads it."""
        return iter(self._logs.get(partition, ()))
