"""Up to which offset the records of a partition are redundant: newer ones have replaced them.

Source: kafka 4.3, ShareCoordinatorOffsetsManager.java.
"""

from typing import Final

from coordinator_sim.broker.shares.partition_keys import share_partition_hash
from coordinator_sim.broker.shares.persister import SharePartitionKey
from coordinator_sim.coordinator.timeline import Timeline, TimelineTable, TimelineValue

_NOTHING_YET: Final = (1 << 63) - 1


class RedundantOffsets:
    """The latest snapshot of each share partition, by offset.

    Args:
        timeline: Of the partition.
    """

    __slots__ = ("_latest", "_redundant")

    def __init__(self, timeline: Timeline) -> None:
        self._latest: TimelineTable[SharePartitionKey, int] = TimelineTable(
            timeline, share_partition_hash
        )
        self._redundant = TimelineValue(timeline, _NOTHING_YET)

    def snapshot_written(self, key: SharePartitionKey, offset: int, *, is_tombstone: bool) -> None:
        """A snapshot replaces what was written of a share partition before. Source: updateState."""
        self._redundant.value = min(self._redundant.value, offset)
        self._latest.put(key, offset)
        # Kafka stops at an offset that equals the last one, which no other can be below.
        self._redundant.value = min(self._latest.entries.values())
        if is_tombstone:
            self._latest.remove(key)

    def last(self) -> int | None:
        """The first offset that is needed; None where nothing before it can go."""
        value = self._redundant.value
        return None if value <= 0 or value == _NOTHING_YET else value
