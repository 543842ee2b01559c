"""The records of the world's topics, as counts: the end offset of each partition.

A partition receives records at the constant rate of its topic from time 0, or by its topic's load,
and those that connectors and workloads write. Only what a workload wrote has a content.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import Final, NamedTuple

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.arrivals import TopicArrivals
from coordinator_sim.sim.scenario.load import PoisonRecords
from coordinator_sim.sim.scenario.world import TopicSpec

_US_PER_S: Final = 1_000_000
_FEW: Final = 4
"""Partitions are found by their arrivals while at most one in so many has got records."""


class WrittenRecord(NamedTuple):
    """A record with a content."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class TopicLogs:
    """The log ends of all partitions.

    Args:
        topics: The topics of the scenario, with their rates and loads.
        with_instants: Whether to keep when records were appended, for `arrival_us`.

    Attributes:
        deleted: Topics that were deleted.
        poison: Topic -> its poison records, for topics that have any.
        version: Number of changes to what comes by loads.
    """

    __slots__ = (
        "_appends",
        "_contents",
        "_loads",
        "_rates",
        "_written",
        "deleted",
        "poison",
        "version",
    )

    def __init__(self, topics: Iterable[TopicSpec], *, with_instants: bool = False) -> None:
        self._rates: dict[str, int] = {}
        self._loads: dict[str, TopicArrivals] = {}
        self.poison: dict[str, PoisonRecords] = {}
        for topic in topics:
            if topic.load:
                keys = topic.keys or None
                self._loads[topic.name] = TopicArrivals(topic.load, keys, topic.partitions)
            else:
                self._rates[topic.name] = topic.records_per_s
            if topic.poison:
                self.poison[topic.name] = topic.poison
        self.deleted: dict[str, None] = {}
        self._written: dict[TopicPartition, int] = {}
        self._appends: dict[TopicPartition, list[tuple[int, int]]] | None = None
        """When records were appended, and how many up to then."""
        if with_instants:
            self._appends = {}
        self._contents: dict[TopicPartition, dict[int, WrittenRecord]] = {}
        self.version = 0

    def end_offset(self, partition: TopicPartition, now_us: int) -> int:
        """Return the offset after the last record that exists now."""
        written = self._written.get(partition, 0) if self._written else 0
        rate = self._rates.get(partition.topic)
        if rate is not None:
            return written + rate * now_us // _US_PER_S
        load = self._loads.get(partition.topic)
        return written if load is None else written + load.count(partition.partition, now_us)

    def common_end(self, partitions: Iterable[TopicPartition], now_us: int) -> int | None:
        """Return the end offset of all these partitions now; None where they may differ."""
        rates = set(map(self._rates.get, {partition.topic for partition in partitions}))
        rate = rates.pop() if len(rates) == 1 else None
        return None if rate is None or self._written else rate * now_us // _US_PER_S

    def end_offset_at(self, partition: TopicPartition, at_us: int) -> int:
        """Return the end offset at an earlier instant; needs `with_instants`."""
        written = 0
        appends = self._appends.get(partition) if self._appends else None
        if appends is not None:
            place = bisect_right(appends, at_us, key=itemgetter(0))
            written = appends[place - 1][1] if place else 0
        load = self._loads.get(partition.topic)
        if load is not None:
            return written + load.count(partition.partition, at_us)
        return written + self._rates.get(partition.topic, 0) * at_us // _US_PER_S

    def arrival_us(self, partition: TopicPartition, offset: int) -> int | None:
        """Return when the record of an offset arrives; needs `with_instants`.

        Returns:
            An instant that may be to come; None where records are still to be appended for it, or
            no further ones arrive.
        """
        appends = self._appends.get(partition) if self._appends else None
        if not appends:
            return self._own_arrival_us(partition, offset)
        place = bisect_right(
            appends, offset, key=lambda append: self.end_offset_at(partition, append[0])
        )
        written = appends[place - 1][1] if place else 0
        own_us = self._own_arrival_us(partition, offset - written)
        if place == len(appends):
            return own_us
        at_us = appends[place][0]
        return at_us if own_us is None else min(at_us, own_us)

    def _own_arrival_us(self, partition: TopicPartition, number: int) -> int | None:
        load = self._loads.get(partition.topic)
        if load is not None:
            return load.arrival_us(partition.partition, number)
        rate = self._rates.get(partition.topic)
        return -(-(number + 1) * _US_PER_S // rate) if rate else None

    def grows(self, topic: str) -> bool:
        """Whether the topic receives records by itself at a constant rate."""
        return bool(self._rates.get(topic))

    @property
    def has_loads(self) -> bool:
        """Whether some topic has a load."""
        return bool(self._loads)

    def come_by_loads(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether these partitions receive records by loads, and none in another way."""
        return not self._written and all(each.topic in self._loads for each in partitions)

    def first_arrival_us(self, positions: Mapping[TopicPartition, int]) -> int | None:
        """Return when the first record from these positions on comes by a topic's load.

        Returns:
            An instant, which may be past; None where no load brings any to these partitions.
        """
        first_us: int | None = None
        for partition, position in positions.items():
            load = self._loads.get(partition.topic)
            number = max(0, position - self._written.get(partition, 0))
            us = None if load is None else load.arrival_us(partition.partition, number)
            first_us = us if first_us is None else min(first_us, us or first_us)
        return first_us

    def fill(self, topic: str, records_per_s: int) -> None:
        """Let each partition receive records at this rate from time 0; the topic may be outside."""
        self._rates[topic] = records_per_s

    def write_by_hand(self, topic: str) -> None:
        """Limit a topic to appended records, from the start on."""
        self._rates.pop(topic, None)
        self._loads.pop(topic, None)
        self.version += 1

    def create(self, topic: str) -> None:
        """Know that a topic is there, which may have been deleted before."""
        self.deleted.pop(topic, None)

    def delete(self, topic: str) -> None:
        """Remove all records of a topic, which receives none by itself any more."""
        self.deleted[topic] = None
        self.version += 1
        self._rates[topic] = 0
        self._loads.pop(topic, None)
        self.poison.pop(topic, None)
        for partition in [each for each in self._written if each.topic == topic]:
            for table in (self._written, self._contents, self._appends or {}):
                table.pop(partition, None)

    def grow(self, topic: str, partitions: int, now_us: int) -> None:
        """Share a topic's load among more partitions from now on."""
        load = self._loads.get(topic)
        if load is not None:
            load.grow(partitions, now_us)
            self.version += 1

    def append(self, partition: TopicPartition, count: int, now_us: int) -> None:
        """Append records, in addition to those that the topic's rate or load adds."""
        written = self._written[partition] = self._written.get(partition, 0) + count
        self.version += 1
        if self._appends is not None:
            self._appends.setdefault(partition, []).append((now_us, written))

    def append_record(self, partition: TopicPartition, record: WrittenRecord, now_us: int) -> None:
        """Write a record with a content."""
        offset = self.end_offset(partition, now_us)
        self._contents.setdefault(partition, {})[offset] = record
        self.append(partition, 1, now_us)

    def record(self, partition: TopicPartition, offset: int) -> WrittenRecord | None:
        """Return the content of a record; None for one that is only counted."""
        contents = self._contents.get(partition)
        return None if contents is None else contents.get(offset)


class AwaitedRecords:
    """Finds the partitions of one consumer that have got records by their topics' loads.

    It keeps the next record of each partition in order of arrival: a look costs what the partitions
    cost that have got some, whatever the number of the others.

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
            watched positions; None, and nothing is watched any more, where they are too many, or
            so many partitions that a look at all costs less.
        """
        arrivals, logs, positions = self._arrivals, self._logs, self._positions
        if not arrivals or arrivals[0][0] > now_us:
            return []
        due: list[tuple[int, TopicPartition]] = []
        while arrivals and arrivals[0][0] <= now_us:
            due.append(heappop(arrivals)[1:])
            if len(due) * _FEW > len(positions):
                self._version = -1
                return None
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
