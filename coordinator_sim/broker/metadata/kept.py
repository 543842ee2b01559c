"""The interface through which a cluster saves its state; a driver implements it with files."""

from collections.abc import Callable
from typing import Protocol

from coordinator_sim.broker.contract import Instants, Timed
from coordinator_sim.broker.metadata.changes import Change
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.log.contract import SegmentStore


class Kept(Timed, Protocol):
    """Metadata and records that outlive the process.

    Attributes:
        image: The metadata of the last run.
        storage_failed: Called for a partition that could not be flushed.
        trouble: Called with a sentence for the server's log.
    """

    image: MetadataImage
    storage_failed: Callable[[Place, OSError], None] | None
    trouble: Callable[[str], None] | None

    def schedule(self, scheduler: Scheduler) -> None:
        """Have `expire` called in time."""
        ...

    def log_changed(self, topic_partition: Place) -> None:
        """Arm the scheduler after an append to a log, or a change of its settings."""
        ...

    def journal(self, change: Change) -> None:
        """Write a change before it takes effect.

        Raises:
            OSError: the change could not be written.
        """
        ...

    def new_store(self, topic: str, partition: int, topic_id: bytes) -> SegmentStore:
        """Open the store of a partition; see `partition_logs.NewStore`."""
        ...

    def topic_deleted(self, topic: str, topic_id: bytes, partitions: int, now: Instants, /) -> None:
        """Delete the stores of a deleted topic's partitions."""
        ...

    def close(self) -> None:
        """Leave everything as the next process wants it; the logs must be closed before.

        Raises:
            OSError: something could not be written; the next process recovers.
        """
        ...
