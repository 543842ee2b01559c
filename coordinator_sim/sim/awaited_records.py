"""The next record of each partition that a consumer reads, in order of arrival.

A consumer of hundreds of partitions under a load looks for records hundreds of times a second. Here
a look costs what the partitions cost that have got some, whatever their number.
"""

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.topic_logs import TopicLogs


class AwaitedRecords:
    """Finds the partitions of one consumer that have got records by their topics' loads.

    Args:
        logs: The topics.
    """

    __slots__ = ("_arrivals", "_logs", "_positions", "_version")

    def __init__(self, logs: TopicLogs) -> None:
        self._logs = logs
        self._version = -1
        self._positions: dict[TopicPartition, int] = {}
        self._arrivals: list[tuple[int, int, TopicPartition]] = []
        """When the record at each position comes, and the partition's place among all."""

    def watch(self, positions: Mapping[TopicPartition, int]) -> None:
        """Watch these positions; topics that get records in other ways cannot be watched."""
        logs = self._logs
        self._version = -1
        if not logs.come_by_loads(positions):
            return
        self._version = logs.version
        self._positions = dict(positions)
        arrivals = self._arrivals = []
        for place, (partition, position) in enumerate(positions.items()):
            at_us = logs.arrival_us(partition, position)
            if at_us is not None:
                arrivals.append((at_us, place, partition))
        heapify(arrivals)

    def forget(self) -> None:
        """Watch nothing."""
        self._version = -1

    def watches(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Whether these positions are watched, and their topics are as they were."""
        return self._version == self._logs.version and positions == self._positions

    @property
    def first_us(self) -> int | None:
        """When the first record comes that is watched for; None for never."""
        return self._arrivals[0][0] if self._arrivals else None

    def take(self, now_us: int, most: int) -> list[tuple[TopicPartition, int, int]] | None:
        """Move past all records up to now.

        Returns:
            Partitions with their first offset and the one after their last, in the order of the
            watched positions; None, and nothing is watched any more, where they are too many.
        """
        arrivals, logs, positions = self._arrivals, self._logs, self._positions
        if not arrivals or arrivals[0][0] > now_us:
            return []
        due: list[tuple[int, TopicPartition]] = []
        while arrivals and arrivals[0][0] <= now_us:
            due.append(heappop(arrivals)[1:])
        due.sort()
        found = [
            (partition, positions[partition], logs.end_offset(partition, now_us))
            for _, partition in due
        ]
        if sum(end - first for _, first, end in found) > most:
            self._version = -1
            return None
        for (place, _), (partition, _, end) in zip(due, found, strict=True):
            positions[partition] = end
            at_us = logs.arrival_us(partition, end)
            if at_us is not None:
                heappush(arrivals, (at_us, place, partition))
        return found
