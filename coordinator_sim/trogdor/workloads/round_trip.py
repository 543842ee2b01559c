"""RoundTrip: a producer that writes numbered records, and a consumer that reads each of them.

Source: kafka 4.3, trogdor/.../trogdor/workload/RoundTripWorkerBase.java, RoundTripWorker.java.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import cycle
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.generator_specs import SequentialPayloadGenerator
from coordinator_sim.trogdor.payloads import payloads_of
from coordinator_sim.trogdor.rates import THROTTLE_PERIOD_MS, Throttle, per_period
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.string_expander import InvalidName
from coordinator_sim.trogdor.workload_specs import RoundTripWorkloadSpec
from coordinator_sim.trogdor.workloads.clients import (
    ClientFailed,
    Clients,
    Consumer,
    Producer,
    Received,
    Report,
    Settings,
)
from coordinator_sim.trogdor.workloads.pace import every, throttled
from coordinator_sim.trogdor.workloads.sent_records import STATUS_PERIOD_MS
from coordinator_sim.trogdor.workloads.topics import partitions_of, prepare_topics

_POLL_MS: Final = 50
_REQUEST_TIMEOUT_MS: Final = 105_000
_INT_BYTES: Final = 4


class RoundTripStatus(Struct, frozen=True, rename="camel"):
    """How many different records were sent, and received."""

    total_unique_sent: int
    total_received: int


class _ToSend:
    """The numbers that are still to be sent. Source: ToSendTracker."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.frontier = 0
        self._failed: deque[int] = deque()

    def failed(self, index: int) -> None:
        """Send a number once more."""
        self._failed.append(index)

    def next(self) -> tuple[int, bool] | None:
        """The next number, and whether it is sent for the first time; None when all were sent."""
        if self._failed:
            return self._failed.popleft(), False
        if self.frontier >= self._count:
            return None
        self.frontier += 1
        return self.frontier - 1, True


class RoundTrip:
    """The workload.

    QUIRK: a record that fails after the last was sent is never sent again; the workload waits for
    it until it is stopped.

    Args:
        task_id: Id of the task; the clients are named after it.
        spec: What to write and read.
        clients: Where it runs.
        report: Takes statuses and the end.
    """

    def __init__(
        self, task_id: str, spec: RoundTripWorkloadSpec, clients: Clients, report: Report
    ) -> None:
        self._task_id = task_id
        self._spec = spec
        self._clients = clients
        self._report = report
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._to_send = _ToSend(spec.max_messages)
        self._to_receive: set[int] = set()
        self._received = 0
        self._unacked = spec.max_messages
        self._acked: Pending[None] = Pending()

    def begin(self) -> None:
        """Make the topics, then write and read."""
        self._clients.start(self._prepare())

    def end(self) -> Blocking[None]:
        """Stop, and close both clients."""
        self._report.halt()
        self._clients.interrupt()
        if self._consumer is not None:
            yield from self._consumer.close()
        if self._producer is not None:
            yield from self._producer.close()

    def _prepare(self) -> Blocking[None]:
        try:
            yield from self._start_both()
        except (ClientFailed, InvalidName) as error:
            self._report.halt(str(error))

    def _start_both(self) -> Blocking[None]:
        """Make the topics and both clients. Source: Prepare.run.

        Raises:
            ClientFailed: the spec asks for nothing, or a topic or a client cannot be made.
            InvalidName: a topic's name has a range that cannot be.
        """
        spec, clients = self._spec, self._clients
        if spec.target_messages_per_sec <= 0:
            raise ClientFailed("Can't have targetMessagesPerSec <= 0.")
        topics = spec.active_topics.materialize()
        if not topics:
            raise ClientFailed("You must specify at least one active topic.")
        yield from prepare_topics(clients, self._report, spec, topics)
        partitions = partitions_of(topics)
        producer = self._producer = clients.producer(producer_settings(self._task_id, spec))
        clients.start(self._send_all(producer, partitions))
        consumer = self._consumer = clients.consumer(consumer_settings(self._task_id, spec))
        consumer.assign(partitions)
        clients.start(self._receive_all(consumer))
        clients.start(every(clients, STATUS_PERIOD_MS, self._publish, first_ms=0))

    def _publish(self) -> None:
        status = RoundTripStatus(self._to_send.frontier, self._received)
        self._report.status(jackson.tree(status))

    def _send_all(self, producer: Producer, partitions: Sequence[TopicPartition]) -> Blocking[None]:
        """Send each number until it does not fail. Source: ProducerRunnable.run."""
        clients, turns = self._clients, cycle(partitions)
        keys = payloads_of(SequentialPayloadGenerator(size=_INT_BYTES))
        values = payloads_of(self._spec.value_generator)
        most = per_period(self._spec.target_messages_per_sec, THROTTLE_PERIOD_MS)
        throttle = Throttle(most, THROTTLE_PERIOD_MS)
        try:
            while (chosen := self._to_send.next()) is not None:
                yield from throttled(throttle, clients)
                index, is_first = chosen
                if is_first:
                    self._to_receive.add(index)
                topic, partition = next(turns)
                now_ms = clients.now_ms
                key, value = keys.payload(index, now_ms), values.payload(index, now_ms)
                told = partial(self._told, index)
                yield from producer.send(topic, partition, key, value, told)
        except (ClientFailed, TrogdorRefusal) as error:
            self._report.halt(str(error))

    def _told(self, index: int, failure: str | None) -> None:
        if failure is not None:
            self._to_send.failed(index)
            return
        self._unacked -= 1
        if self._unacked <= 0:
            self._acked.complete()

    def _receive_all(self, consumer: Consumer) -> Blocking[None]:
        """Read until each number has come, and end the workload. Source: ConsumerRunnable.run."""
        try:
            # QUIRK: with nothing to receive it never ends: it is a record that ends it.
            while not 0 < self._spec.max_messages <= self._received:
                self._count((yield from consumer.poll(_POLL_MS)))
        except ClientFailed as error:
            self._report.halt(str(error))
            return
        if self._unacked > 0:
            yield Wait(self._acked)
        self._publish()
        self._report.halt()

    def _count(self, records: Sequence[Received]) -> None:
        """Count the numbers that come for the first time.

        Raises:
            ClientFailed: a record has no number.
        """
        for record in records:
            index = _index_of(record.key)
            if index in self._to_receive:
                self._to_receive.remove(index)
                self._received += 1


def _index_of(key: bytes | None) -> int:
    """The number in a record's key.

    Raises:
        ClientFailed: there is none; the text is the name of Java's exception.
    """
    if key is None:
        raise ClientFailed("java.lang.NullPointerException")
    if len(key) < _INT_BYTES:
        raise ClientFailed("java.nio.BufferUnderflowException")
    return int.from_bytes(key[:_INT_BYTES], "little", signed=True)


def producer_settings(task_id: str, spec: RoundTripWorkloadSpec) -> Settings:
    """Settings of the producer: the worker's own, then the common ones, then the producer's."""
    return {
        "bootstrap.servers": spec.bootstrap_servers,
        "batch.size": 16 * 1024,
        "buffer.memory": 4 * 16 * 1024,
        "max.block.ms": 1_000,
        "client.id": f"producer.{task_id}",
        "acks": "all",
        "request.timeout.ms": _REQUEST_TIMEOUT_MS,
        **spec.common_client_conf,
        **spec.producer_conf,
    }


def consumer_settings(task_id: str, spec: RoundTripWorkloadSpec) -> Settings:
    """Settings of the consumer, as for the producer; but the group is always the worker's."""
    return {
        "bootstrap.servers": spec.bootstrap_servers,
        "client.id": f"consumer.{task_id}",
        "auto.offset.reset": "earliest",
        "request.timeout.ms": _REQUEST_TIMEOUT_MS,
        "max.poll.interval.ms": 100_000,
        **spec.common_client_conf,
        **spec.consumer_conf,
        "group.id": f"round-trip-consumer-group-{task_id}",
    }
