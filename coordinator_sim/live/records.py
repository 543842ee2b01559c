"""Records of the partitions a member owns, read by librdkafka and assigned by hand.

The port runs the group's protocol: this consumer neither joins nor commits. Its calls block, so
they run in a thread, one at a time.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaException, Message
from confluent_kafka import TopicPartition as Assigned
from msgspec import Struct

from coordinator_sim.clients.config import OffsetReset
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.resources import TopicPartition

MAX_POLL_RECORDS: Final = 500
"""Default of `max.poll.records`."""

_LOOK_UP_S: Final = 5.0


class RecordRange(Struct, frozen=True, kw_only=True):
    """Records of one partition in one fetch, in order.

    Args:
        first_offset: Offset of the first record.
        last_offset: Offset of the last record.
        count: Number of records; fewer than the offsets between where the log has gaps.
    """

    partition: TopicPartition
    first_offset: int
    last_offset: int
    count: int


class RecordReader:
    """A consumer whose partitions are assigned by its caller.

    Args:
        bootstrap: `bootstrap.servers`.
        group_id: Group id in requests only; it does not join.
        client_id: Client id in requests.
    """

    def __init__(self, bootstrap: str, *, group_id: str, client_id: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group_id,
                "client.id": client_id,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "log_level": 0,
            }
        )
        self._next_offsets: dict[TopicPartition, int] = {}

    def fetch(self, positions: Mapping[TopicPartition, int], timeout_s: float) -> list[RecordRange]:
        """Return the partitions' records from these positions on; empty when none came in time.

        Raises:
            DataError: a partition cannot be read.
        """
        if self._next_offsets != positions:
            self._assign(positions)
        found: dict[TopicPartition, RecordRange] = {}
        for message in self._consumer.consume(MAX_POLL_RECORDS, timeout_s):
            error = message.error()
            if error is None:
                self._add(found, message)
            elif not error.retriable():
                raise DataError(f"{message.topic()}-{message.partition()}: {error.str()}")
        return list(found.values())

    def offsets_at(
        self, partitions: Sequence[TopicPartition], to: OffsetReset
    ) -> dict[TopicPartition, int]:
        """Return the begin or end offsets of partitions; unavailable ones are left out."""
        found = {}
        for partition in partitions:
            asked = Assigned(partition.topic, partition.partition)
            try:
                first, end = self._consumer.get_watermark_offsets(asked, _LOOK_UP_S)
            except KafkaException:
                continue
            found[partition] = first if to is OffsetReset.EARLIEST else end
        return found

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _assign(self, positions: Mapping[TopicPartition, int]) -> None:
        self._consumer.assign(
            [Assigned(tp.topic, tp.partition, offset) for tp, offset in positions.items()]
        )
        self._next_offsets = dict(positions)

    def _add(self, found: dict[TopicPartition, RecordRange], message: Message) -> None:
        topic, number, offset = message.topic(), message.partition(), message.offset()
        if topic is None or number is None or offset is None:
            return
        partition = TopicPartition(topic, number)
        before = found.get(partition)
        found[partition] = RecordRange(
            partition=partition,
            first_offset=offset if before is None else before.first_offset,
            last_offset=offset,
            count=1 if before is None else before.count + 1,
        )
        self._next_offsets[partition] = offset + 1
