"""Appends of a replayed coordinator, as its trace says that they fared."""

from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.records import LogBatch


class StoreFailures:
    """Lets appends through but where the trace says that storing an assignment failed."""

    def __init__(self) -> None:
        self.fails = False

    def verdict(self, batch: LogBatch) -> ErrorCode:
        """The error of a partition with too few replicas, while failing."""
        del batch
        return ErrorCode.NOT_ENOUGH_REPLICAS if self.fails else ErrorCode.NONE

    def takes_unacknowledged(self, batch: LogBatch) -> bool:
        """Always: they store no assignment."""
        del batch
        return True
