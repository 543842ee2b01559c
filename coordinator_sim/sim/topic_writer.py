"""The producers of a worker: one per topic, and the fencible one of a leader.

Source: kafka trunk, clients/.../producer/KafkaProducer.java, internals/Sender.java,
RecordAccumulator.java; the settings are those that Connect gives its producers.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from msgspec import Struct

from coordinator_sim.clients.exceptions import exception_name
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.effects import Produce, ProduceInTransaction
from coordinator_sim.connect.exceptions import JavaException, TimeoutException, thrown
from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.partitioning import (
    TRANSACTIONS_TOPIC,
    partition_for,
    partition_of_key,
)
from coordinator_sim.sim.data_messages import (
    EndTxnRequest,
    EndTxnResponse,
    FindTransactionCoordinatorRequest,
    FindTransactionCoordinatorResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from coordinator_sim.sim.kafka_client import (
    DEFAULT_API_TIMEOUT_MS,
    UNREACHABLE,
    KafkaClient,
    call,
    leader_of,
    partition_count,
)

BATCH_BYTES: Final = 16_384
"""`batch.size`."""
DELIVERY_TIMEOUT_MS: Final = 120_000
"""`delivery.timeout.ms` of a producer for which Connect sets none."""

Answer = Callable[[int, object, str | None], None]
"""Takes a token with a value, or with an error."""


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
        retries: Whether a failed batch is sent again, for ever; else its records fail, and those
            never sent fail after the delivery timeout.
        answer: Takes the offset of each record.
    """

    __slots__ = ("_answer", "_arrived", "_client", "_linger_ms", "_queue", "_retries", "_topic")

    def __init__(
        self, client: KafkaClient, topic: str, *, linger_ms: int, retries: bool, answer: Answer
    ) -> None:
        self._client = client
        self._topic = topic
        self._linger_ms = linger_ms
        self._retries = retries
        self._answer = answer
        self._queue: deque[_Queued] = deque()
        self._arrived: Pending[object] = Pending()

    def produce(self, effect: Produce) -> None:
        """Queue a record."""
        count = partition_count(self._client, self._topic) or 1
        partition = 0 if effect.key is None else partition_of_key(effect.key, count)
        self._queue.append(
            _Queued(effect.token, partition, effect.key, effect.value, self._client.now_ms)
        )
        self._arrived.complete()

    def run(self) -> Blocking[None]:
        """Run the producer's thread."""
        while True:
            if not self._queue:
                self._arrived = Pending()
                yield Wait(self._arrived)
            head = self._queue[0]
            if self._linger_ms and self._client.now_ms < head.queued_ms + self._linger_ms:
                yield Wait(until_ms=head.queued_ms + self._linger_ms)
            yield from self._send(self._batch())

    def _batch(self) -> list[_Queued]:
        """Return the oldest record, with the records of its partition that fit the batch."""
        partition = self._queue[0].partition
        batch: list[_Queued] = []
        left: deque[_Queued] = deque()
        size_bytes = 0
        for record in self._queue:
            size_bytes += len(record.key or b"") + len(record.value or b"")
            is_full = bool(batch) and size_bytes > BATCH_BYTES
            (left if is_full or record.partition != partition else batch).append(record)
        self._queue = left
        return batch

    def _send(self, batch: list[_Queued]) -> Blocking[None]:
        partition = batch[0].partition
        request = ProduceRequest(
            topic=self._topic,
            partition=partition,
            records=tuple((record.key, record.value) for record in batch),
        )
        to_leader = partial(leader_of, self._client, self._topic, partition)
        try:
            if self._retries:
                response = yield from call(
                    self._client, to_leader, request, ProduceResponse, deadline_ms=FOREVER
                )
            else:
                response = yield from self._send_once(to_leader, request, batch[0].queued_ms)
        except JavaException as exception:
            for record in batch:
                self._answer(record.token, None, exception.name)
            return
        for index, record in enumerate(batch):
            self._answer(record.token, response.base_offset + index, None)

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
        if response.error_code is not ErrorCode.NONE:
            raise thrown(exception_name(response.error_code))
        return response


class TransactionalWriter:
    """The fencible producer of one transactional id.

    Args:
        client: Connections of the producer.
        transactional_id: Its id.
        answer: Takes the outcome of each call.
    """

    __slots__ = ("_answer", "_client", "_epoch", "_producer_id", "_transactional_id")

    def __init__(self, client: KafkaClient, transactional_id: str, answer: Answer) -> None:
        self._client = client
        self._transactional_id = transactional_id
        self._answer = answer
        self._producer_id = -1
        self._epoch = -1

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
        self._producer_id, self._epoch = response.producer_id, response.producer_epoch
        self._answer(token, None, None)

    def produce(self, effect: ProduceInTransaction) -> Blocking[None]:
        """Write all records in a transaction, and commit it."""
        try:
            yield from self._produce(effect)
        except JavaException as exception:
            self._answer(effect.token, None, exception.name)
            return
        self._answer(effect.token, None, None)

    def _produce(self, effect: ProduceInTransaction) -> Blocking[None]:
        deadline_ms = self._client.now_ms + DEFAULT_API_TIMEOUT_MS
        count = partition_count(self._client, effect.topic) or 1
        by_partition: dict[int, list[tuple[bytes | None, bytes | None]]] = {}
        for key, value in effect.records:
            by_partition.setdefault(partition_of_key(key, count), []).append((key, value))
        for partition, records in by_partition.items():
            request = ProduceRequest(
                topic=effect.topic,
                partition=partition,
                records=tuple(records),
                transactional_id=self._transactional_id,
                producer_id=self._producer_id,
                producer_epoch=self._epoch,
            )
            yield from call(
                self._client,
                partial(leader_of, self._client, effect.topic, partition),
                request,
                ProduceResponse,
                deadline_ms=deadline_ms,
            )
        end = EndTxnRequest(self._transactional_id, self._producer_id, self._epoch)
        yield from call(
            self._client,
            partial(coordinator_of, self._client, self._transactional_id),
            end,
            EndTxnResponse,
            deadline_ms=deadline_ms,
        )


def init_producer_id(
    client: KafkaClient, transactional_id: str
) -> Blocking[InitProducerIdResponse]:
    """Find the coordinator of a transactional id, and fence the id's previous producer.

    Raises:
        TimeoutException: no success within a minute.
        ClientException: an error that is not retriable.
    """
    deadline_ms = client.now_ms + DEFAULT_API_TIMEOUT_MS
    yield from call(
        client,
        client.any_broker,
        FindTransactionCoordinatorRequest(transactional_id),
        FindTransactionCoordinatorResponse,
        deadline_ms=deadline_ms,
    )
    return (
        yield from call(
            client,
            partial(coordinator_of, client, transactional_id),
            InitProducerIdRequest(transactional_id),
            InitProducerIdResponse,
            deadline_ms=deadline_ms,
        )
    )


def coordinator_of(client: KafkaClient, transactional_id: str) -> int | None:
    """Return the broker that coordinates a transactional id now; None without one."""
    count = partition_count(client, TRANSACTIONS_TOPIC)
    if not count:
        return client.any_broker()
    return leader_of(client, TRANSACTIONS_TOPIC, partition_for(transactional_id, count))
