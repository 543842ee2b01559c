"""A producer for the threads of Trogdor's workloads; what is written can be read at once."""

from collections.abc import Callable, Mapping
from typing import Final

from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.partitioning import partition_of_key
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.kafka_client import KafkaClient
from coordinator_sim.sim.polled_consumer import partitions_of
from coordinator_sim.sim.topic_logs import WrittenRecord
from coordinator_sim.sim.topic_writer import DELIVERY_TIMEOUT_MS, TopicWriter
from coordinator_sim.sim.world import World
from coordinator_sim.trogdor.workloads.clients import ClientFailed, Told

_LINGER_MS: Final = "5"
"""Default of `linger.ms` since Kafka 4.0."""
_BUFFER_BYTES: Final = str(32 * 1024 * 1024)
"""Default of `buffer.memory`."""
_MAX_BLOCK_MS: Final = "60000"
"""Default of `max.block.ms`."""


class VirtualProducer:
    """A producer without transactions.

    Args:
        world: Shared parts of the run.
        client: Its connections.
        settings: Settings by Kafka's names.
        draw: Draws a number below another one.
        serve: Runs a thread of its process.
    """

    def __init__(
        self,
        world: World,
        client: KafkaClient,
        settings: Mapping[str, str],
        *,
        draw: Callable[[int], int],
        serve: Callable[[Blocking[None]], None],
    ) -> None:
        self._world = world
        self._client = client
        self._draw = draw
        self._serve = serve
        self._linger_ms = int(settings.get("linger.ms", _LINGER_MS))
        self._buffer_bytes = int(settings.get("buffer.memory", _BUFFER_BYTES))
        self._max_block_ms = int(settings.get("max.block.ms", _MAX_BLOCK_MS))
        self._timeout_ms = int(settings.get("delivery.timeout.ms", str(DELIVERY_TIMEOUT_MS)))
        self._writers: dict[TopicPartition, TopicWriter] = {}
        self._open: dict[int, tuple[TopicPartition, WrittenRecord, Told]] = {}
        self._open_bytes = 0
        self._count = 0
        self._answered: Pending[bool] = Pending()

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic, in order, as the producer's metadata has them."""
        yield from ()
        return partitions_of(self._world, topic)

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        told: Told,
    ) -> Blocking[None]:
        """Hand a record over; it fails when the buffer stays full for `max.block.ms`."""
        deadline_ms = self._client.now_ms + self._max_block_ms
        record = WrittenRecord(self._client.now_ms, key, value)
        size = _size_bytes(record)
        while self._open and self._open_bytes + size > self._buffer_bytes:
            if self._client.now_ms >= deadline_ms:
                told(
                    f"Failed to allocate {size} bytes within the configured max blocking time "
                    f"{self._max_block_ms} ms."
                )
                return
            yield Wait(self._next_answer(), until_ms=deadline_ms)
        where = TopicPartition(topic, self._partition(topic, partition, key))
        self._count += 1
        self._open[self._count] = (where, record, told)
        self._open_bytes += size
        self._writer(where).queue(self._count, where.partition, key, value)

    def flush(self) -> Blocking[None]:
        """Wait until every record that was handed over has its outcome."""
        for writer in self._writers.values():
            writer.flush()
        while self._open:
            yield Wait(self._next_answer())

    def _next_answer(self) -> Pending[bool]:
        """What several threads may wait for: the next outcome of a record."""
        if self._answered.done:
            self._answered = Pending()
        return self._answered

    def init_transactions(self) -> Blocking[None]:
        """Transactions of workloads are refused when a scenario is read."""
        yield from ()
        raise ClientFailed("a producer of the simulator's workloads has no transactions")

    def begin_transaction(self) -> None:
        """See `init_transactions`."""
        raise ClientFailed("a producer of the simulator's workloads has no transactions")

    def end_transaction(self, *, committed: bool) -> Blocking[None]:  # noqa: ARG002 - contract
        """See `init_transactions`."""
        return self.init_transactions()

    def close(self) -> Blocking[None]:
        """Wait for all outcomes, and close."""
        yield from self.flush()
        self._client.close()

    def _partition(self, topic: str, partition: int | None, key: bytes | None) -> int:
        if partition is not None:
            return partition
        count = self._world.partition_count(topic) or 1
        return self._draw(count) if key is None else partition_of_key(key, count)

    def _writer(self, where: TopicPartition) -> TopicWriter:
        """The writer of a partition: partitions do not wait for each other."""
        writer = self._writers.get(where)
        if writer is None:
            writer = self._writers[where] = TopicWriter(
                self._client,
                where.topic,
                linger_ms=self._linger_ms,
                retries=True,
                answer=self._told,
                delivery_timeout_ms=self._timeout_ms,
            )
            self._serve(writer.run())
        return writer

    def _told(self, token: int, _offset: object, error: str | None) -> None:
        """Take the outcome of a record, and let consumers see it."""
        where, record, told = self._open.pop(token)
        self._open_bytes -= _size_bytes(record)
        if error is None:
            now_us = self._world.environment.now_us
            self._world.topic_logs.append_record(where, record, now_us)
        told(error)
        self._answered.complete(value=True)


def _size_bytes(record: WrittenRecord) -> int:
    return len(record.key or b"") + len(record.value or b"")
