"""The records of the world's topics, as counts: the end offset of each partition.

A partition receives records at the constant rate of its topic from time 0, and those that
connectors and workloads write. Only what a workload wrote has a content.
"""

from collections.abc import Iterable
from typing import Final, NamedTuple

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.scenario.world import TopicSpec

_US_PER_S: Final = 1_000_000


class WrittenRecord(NamedTuple):
    """A record with a content."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class TopicLogs:
    """The log ends of all partitions.

    Args:
        topics: The topics of the scenario, with their rates.
    """

    __slots__ = ("_contents", "_rates", "_written")

    def __init__(self, topics: Iterable[TopicSpec]) -> None:
        self._rates = {topic.name: topic.records_per_s for topic in topics}
        self._written: dict[TopicPartition, int] = {}
        self._contents: dict[TopicPartition, dict[int, WrittenRecord]] = {}

    def end_offset(self, partition: TopicPartition, now_us: int) -> int:
        """Return the offset after the last record that exists at the instant."""
        written = self._written.get(partition, 0) if self._written else 0
        rate = self._rates.get(partition.topic)
        return written if rate is None else written + rate * now_us // _US_PER_S

    def common_end(self, partitions: Iterable[TopicPartition], now_us: int) -> int | None:
        """Return the end offset of all these partitions at the instant; None where they differ."""
        rates = set(map(self._rates.get, {partition.topic for partition in partitions}))
        rate = rates.pop() if len(rates) == 1 else None
        return None if rate is None or self._written else rate * now_us // _US_PER_S

    def grows(self, topic: str) -> bool:
        """Whether the topic receives records by itself."""
        return bool(self._rates.get(topic))

    def fill(self, topic: str, records_per_s: int) -> None:
        """Let each partition receive records at this rate from time 0; the topic may be outside."""
        self._rates[topic] = records_per_s

    def write_by_hand(self, topic: str) -> None:
        """Limit a topic to appended records, from the start on."""
        self._rates.pop(topic, None)

    def append(self, partition: TopicPartition, count: int) -> None:
        """Append records, in addition to those that the topic's rate adds."""
        self._written[partition] = self._written.get(partition, 0) + count

    def append_record(self, partition: TopicPartition, record: WrittenRecord, now_us: int) -> None:
        """Write a record with a content."""
        offset = self.end_offset(partition, now_us)
        self._contents.setdefault(partition, {})[offset] = record
        self.append(partition, 1)

    def record(self, partition: TopicPartition, offset: int) -> WrittenRecord | None:
        """Return the content of a record; None for one that is only counted."""
        contents = self._contents.get(partition)
        return None if contents is None else contents.get(offset)
