"""The records of the world's topics, as counts: the end offset of each partition.

A partition receives records at the constant rate of its topic from time 0, or those that
connectors write. Records have no content.
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.scenario.world import TopicSpec

_US_PER_S: Final = 1_000_000


class TopicLogs:
    """The log ends of all partitions.

    Args:
        topics: The topics of the scenario, with their rates.
    """

    __slots__ = ("_rates", "_written")

    def __init__(self, topics: Iterable[TopicSpec]) -> None:
        self._rates = {topic.name: topic.records_per_s for topic in topics}
        self._written: dict[TopicPartition, int] = {}

    def end_offset(self, partition: TopicPartition, now_us: int) -> int:
        """Return the offset after the last record that exists at the instant."""
        rate = self._rates.get(partition.topic)
        if rate is None:
            return self._written.get(partition, 0)
        return rate * now_us // _US_PER_S

    def fill(self, topic: str, records_per_s: int) -> None:
        """Let each partition receive records at this rate from time 0; the topic may be outside."""
        self._rates[topic] = records_per_s

    def write_by_hand(self, topic: str) -> None:
        """Limit a topic to appended records, from the start on."""
        self._rates.pop(topic, None)

    def append(self, partition: TopicPartition, count: int) -> None:
        """Write records to a topic that is written by hand."""
        self._written[partition] = self._written.get(partition, 0) + count
