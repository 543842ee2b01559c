"""Outcome of a replayed coordinator's appends, as its trace tells it."""

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.records import LogBatch


class StoreFailures:
    """Accepts appends except where the trace says that storing an assignment failed."""

    def __init__(self) -> None:
        self.fails = False

    def append(self, batch: LogBatch) -> ErrorCode:
        """Return the error of a partition with too few replicas while failing, else NONE."""
        del batch
        return ErrorCode.NOT_ENOUGH_REPLICAS if self.fails else ErrorCode.NONE

    def takes_unacknowledged(self, batch: LogBatch) -> bool:
        """Return True: unacknowledged appends store no assignment."""
        del batch
        return True
