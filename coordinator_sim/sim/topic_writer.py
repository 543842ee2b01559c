"""The producers of a worker: one per topic, and the fencible one of a leader.

Source: kafka trunk, clients/.../producer/KafkaProducer.java, internals/Sender.java,
RecordAccumulator.java; the settings are those that Connect gives its producers.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, cast

from msgspec import Struct

from coordinator_sim.clients.exceptions import exception_name
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.effects import Produce, ProduceInTransaction
from coordinator_sim.connect.exceptions import JavaException, TimeoutException, thrown
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import partition_of_key
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from coordinator_sim.messages.end_txn import EndTxnRequest, EndTxnResponse
from coordinator_sim.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from coordinator_sim.sim.kafka_client import (
    DEFAULT_API_TIMEOUT_MS,
    UNREACHABLE,
    KafkaClient,
    ask,
    leader_of,
    partition_count,
)
from coordinator_sim.sim.topic_admin import coordinator_of, init_producer_id

BATCH_BYTES: Final = 16_384
"""`batch.size`."""
DELIVERY_TIMEOUT_MS: Final = 120_000
"""`delivery.timeout.ms` of a producer for which Connect sets none."""

_ALL_IN_SYNC: Final = -1
"""`acks=all`."""
_REQUEST_TIMEOUT_MS: Final = 30_000
"""`request.timeout.ms`."""

Answer = Callable[[int, object, str | None], None]
"""Takes a token with a value, or with an error."""
KeyValue = tuple[bytes | None, bytes | None]


class _Queued(Struct, frozen=True, gc=False):
    """A record that is not written yet, and its partition."""

    token: int
    partition: int
    key: bytes | None
    value: bytes | None
    queued_ms: int


class TopicWriter:
    """The producer of one topic: `acks=all`, one request in flight, not idempotent.

    Args:
        client: The producer's connections.
        topic: Topic to write.
        linger_ms: `linger.ms`.
        retries: Whether a failed batch is sent again; else its records fail.
        answer: Takes the offset of each record.
        delivery_timeout_ms: How long a batch is tried; None for ever with retries, and for the
            default without.
    """

    __slots__ = (
        "_answer",
        "_arrived",
        "_client",
        "_delivery_timeout_ms",
        "_flushed",
        "_linger_ms",
        "_queue",
        "_retries",
        "_topic",
    )

    def __init__(
        self,
        client: KafkaClient,
        topic: str,
        *,
        linger_ms: int,
        retries: bool,
        answer: Answer,
        delivery_timeout_ms: int | None = None,
    ) -> None:
        self._client = client
        self._delivery_timeout_ms = delivery_timeout_ms
        self._topic = topic
        self._linger_ms = linger_ms
        self._retries = retries
        self._answer = answer
        self._queue: deque[_Queued] = deque()
        self._arrived: Pending[object] = Pending()
        self._flushed: Pending[object] = Pending()

    def flush(self) -> None:
        """Send what is queued without lingering."""
        self._flushed.complete()

    def produce(self, effect: Produce) -> None:
        """Queue a record for the partition of its key."""
        count = partition_count(self._client, self._topic) or 1
        partition = 0 if effect.key is None else partition_of_key(effect.key, count)
        self.queue(effect.token, partition, effect.key, effect.value)

    def queue(self, token: int, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Queue a record for a partition."""
        self._queue.append(_Queued(token, partition, key, value, self._client.now_ms))
        self._arrived.complete()

    def run(self) -> Blocking[None]:
        """Run the producer's thread."""
        while True:
            if not self._queue:
                self._arrived, self._flushed = Pending(), Pending()
                yield Wait(self._arrived)
            head = self._queue[0]
            if self._linger_ms and self._client.now_ms < head.queued_ms + self._linger_ms:
                yield Wait(self._flushed, until_ms=head.queued_ms + self._linger_ms)
            yield from self._send(self._batch())

    def _batch(self) -> list[_Queued]:
        """Return the oldest record, with the records of its partition that fit the batch."""
        partition = self._queue[0].partition
        batch: list[_Queued] = []
        left: deque[_Queued] = deque()
        size_bytes = 0
        for record in self._queue:
            size_bytes += _size_bytes(record.key, record.value)
            is_full = bool(batch) and size_bytes > BATCH_BYTES
            (left if is_full or record.partition != partition else batch).append(record)
        self._queue = left
        return batch

    def _send(self, batch: list[_Queued]) -> Blocking[None]:
        partition = batch[0].partition
        data = _encoded([(record.key, record.value) for record in batch], self._client.now_ms)
        request = _produce_request(self._topic, partition, data)
        to_leader = partial(leader_of, self._client, self._topic, partition)
        try:
            if self._retries:
                response = yield from ask(
                    self._client,
                    to_leader,
                    request,
                    ProduceResponse,
                    errors_of=_produce_errors,
                    deadline_ms=self._deadline_ms(batch[0].queued_ms),
                )
            else:
                response = yield from self._send_once(to_leader, request, batch[0].queued_ms)
        except JavaException as exception:
            for record in batch:
                self._answer(record.token, None, exception.name)
            return
        for index, record in enumerate(batch):
            self._answer(record.token, _produced(response).base_offset + index, None)

    def _deadline_ms(self, queued_ms: int) -> int:
        timeout_ms = self._delivery_timeout_ms
        return FOREVER if timeout_ms is None else queued_ms + timeout_ms

    def _send_once(
        self, to_leader: Callable[[], int | None], request: ProduceRequest, queued_ms: int
    ) -> Blocking[ProduceResponse]:
        """Send a batch once, when its leader can be reached (`retries=0`)."""
        deadline_ms = queued_ms + DELIVERY_TIMEOUT_MS
        while True:
            leader_id = to_leader()
            if leader_id is not None:
                pending = self._client.request(leader_id, request)
                yield Wait(pending, until_ms=deadline_ms)
                if pending.error != UNREACHABLE:
                    break
            if self._client.now_ms >= deadline_ms:
                raise TimeoutException
            pause_ms = self._client.backoff_ms(0)
            yield Wait(until_ms=min(deadline_ms, self._client.now_ms + pause_ms))
        if not pending.done:
            raise TimeoutException
        if pending.error is not None:
            raise thrown(exception_name(ErrorCode.NETWORK_EXCEPTION))
        response = cast("ProduceResponse", pending.result())
        (error,) = _produce_errors(response)
        if error is not ErrorCode.NONE:
            raise thrown(exception_name(error))
        return response


class TransactionalWriter:
    """The fencible producer of one transactional id.

    DEVIATION: it writes one batch after the other, where Java's has up to five requests in flight.

    Args:
        client: Connections of the producer.
        transactional_id: Its id.
        answer: Takes the outcome of each call.
    """

    __slots__ = ("_answer", "_client", "_epoch", "_producer_id", "_sequences", "_transactional_id")

    def __init__(self, client: KafkaClient, transactional_id: str, answer: Answer) -> None:
        self._client = client
        self._transactional_id = transactional_id
        self._answer = answer
        self._producer_id = -1
        self._epoch = -1
        self._sequences: dict[int, int] = {}

    def close(self) -> None:
        """Close the connections without waiting."""
        self._client.close()

    def init_transactions(self, token: int) -> Blocking[None]:
        """Become the producer of the id, fencing older ones."""
        try:
            response = yield from init_producer_id(self._client, self._transactional_id)
        except JavaException as exception:
            self._answer(token, None, exception.name)
            return
        self._take_epoch(response.producer_id, response.producer_epoch)
        self._answer(token, None, None)

    def produce(self, effect: ProduceInTransaction) -> Blocking[None]:
        """Write all records in a transaction, and commit it."""
        try:
            yield from self._produce(effect)
        except JavaException as exception:
            self._answer(effect.token, None, exception.name)
            return
        self._answer(effect.token, None, None)

    def _take_epoch(self, producer_id: int, epoch: int) -> None:
        """Go on under this epoch, with which sequences begin anew."""
        if epoch != self._epoch or producer_id != self._producer_id:
            self._sequences.clear()
        self._producer_id, self._epoch = producer_id, epoch

    def _produce(self, effect: ProduceInTransaction) -> Blocking[None]:
        deadline_ms = self._client.now_ms + DEFAULT_API_TIMEOUT_MS
        count = partition_count(self._client, effect.topic) or 1
        by_partition: dict[int, list[KeyValue]] = {}
        for key, value in effect.records:
            by_partition.setdefault(partition_of_key(key, count), []).append((key, value))
        if not self._client.world.adds_partitions:
            yield from self._add_partitions(effect.topic, tuple(by_partition), deadline_ms)
        for partition, records in by_partition.items():
            for batch in _batches(records):
                yield from self._append(effect.topic, partition, batch, deadline_ms)
        response = yield from ask(
            self._client,
            self._coordinator,
            EndTxnRequest(self._transactional_id, self._producer_id, self._epoch, committed=True),
            EndTxnResponse,
            errors_of=lambda answer: (answer.error_code,),
            deadline_ms=deadline_ms,
        )
        if response.producer_epoch >= 0:
            self._take_epoch(response.producer_id, response.producer_epoch)

    def _append(
        self, topic: str, partition: int, records: Sequence[KeyValue], deadline_ms: int
    ) -> Blocking[None]:
        """Write one batch of the transaction."""
        sequence = self._sequences.get(partition, 0)
        data = _encoded(
            records,
            self._client.now_ms,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            transactional=True,
        )
        yield from ask(
            self._client,
            partial(leader_of, self._client, topic, partition),
            _produce_request(topic, partition, data, self._transactional_id),
            ProduceResponse,
            errors_of=_produce_errors,
            deadline_ms=deadline_ms,
        )
        self._sequences[partition] = sequence + len(records)

    def _add_partitions(
        self, topic: str, partitions: tuple[int, ...], deadline_ms: int
    ) -> Blocking[None]:
        """Add partitions to the transaction, where Produce does not do so."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=(AddPartitionsToTxnTopic(topic, partitions),),
        )
        yield from ask(
            self._client,
            self._coordinator,
            request,
            AddPartitionsToTxnResponse,
            errors_of=lambda answer: (
                each.partition_error_code
                for result in answer.results_by_topic_v3_and_below
                for each in result.results_by_partition
            ),
            deadline_ms=deadline_ms,
        )

    def _coordinator(self) -> int | None:
        return coordinator_of(self._client, self._transactional_id)


def _batches(records: Iterable[KeyValue]) -> Iterator[list[KeyValue]]:
    """Records in batches of at most BATCH_BYTES, or of one record."""
    batch: list[KeyValue] = []
    size_bytes = 0
    for key, value in records:
        size_bytes += _size_bytes(key, value)
        if batch and size_bytes > BATCH_BYTES:
            yield batch
            batch, size_bytes = [], _size_bytes(key, value)
        batch.append((key, value))
    yield batch


def _size_bytes(key: bytes | None, value: bytes | None) -> int:
    return len(key or b"") + len(value or b"")


def _encoded(records: Iterable[KeyValue], now_ms: int, **settings: object) -> bytes:
    """A batch as its producer sends it; `settings` are fields of RecordBatch."""
    written = tuple(
        Record(offset=index, timestamp_ms=now_ms, key=key, value=value)
        for index, (key, value) in enumerate(records)
    )
    return encode_record_batch(batch_of(written, **settings))


def _produce_request(
    topic: str, partition: int, data: bytes, transactional_id: str | None = None
) -> ProduceRequest:
    return ProduceRequest(
        transactional_id=transactional_id,
        acks=_ALL_IN_SYNC,
        timeout_ms=_REQUEST_TIMEOUT_MS,
        topic_data=(
            TopicProduceData(topic, partition_data=(PartitionProduceData(partition, data),)),
        ),
    )


def _produced(response: ProduceResponse) -> PartitionProduceResponse:
    """The answer for the one partition that was written to."""
    return response.responses[0].partition_responses[0]


def _produce_errors(response: ProduceResponse) -> tuple[ErrorCode, ...]:
    return (_produced(response).error_code,)
