"""ConsumeBench: consumers that read at a rate.

What a ConsumeBench does with the records it reads.

Source: kafka trunk, trogdor/.../trogdor/workload/ConsumeBenchWorker.java;
trogdor/.../trogdor/workload/TimestampRecordProcessor.java.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct

from coordinator_sim.connect.thread import Blocking, Wait
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.contract import Json
from coordinator_sim.trogdor.generator_specs import RecordProcessor, TimestampRecordProcessor
from coordinator_sim.trogdor.java_numbers import as_single, shortest_single
from coordinator_sim.trogdor.rates import THROTTLE_PERIOD_MS, Throttle, per_period
from coordinator_sim.trogdor.string_expander import InvalidName
from coordinator_sim.trogdor.workload_specs import ConsumeBenchSpec
from coordinator_sim.trogdor.workloads.clients import (
    ClientFailed,
    Clients,
    Consumer,
    Received,
    Report,
    Settings,
)
from coordinator_sim.trogdor.workloads.histogram import Histogram
from coordinator_sim.trogdor.workloads.pace import every, throttled

_STAMP_BYTES: Final = 8


class LatencyStatus(Struct, frozen=True, rename="camel"):
    """Latencies from the stamp in a record's value until it was read, in milliseconds."""

    average_latency_ms: float
    p50_latency_ms: int
    p95_latency_ms: int
    p99_latency_ms: int


class StampLatencies:
    """Takes the latencies of records whose values begin with an instant.

    Args:
        spec: Which latencies are told apart.
    """

    def __init__(self, spec: TimestampRecordProcessor) -> None:
        self._spec = spec
        self._histogram = Histogram(spec.bucket_count)

    def process(self, records: Sequence[Received], now_ms: int) -> None:
        """Count the latency of each record; one without a stamp is passed over."""
        low, step = self._spec.histogram_min_ms, self._spec.histogram_step_ms
        for record in records:
            if record.value is None or len(record.value) < _STAMP_BYTES:
                continue
            stamp_ms = int.from_bytes(record.value[:_STAMP_BYTES], "little", signed=True)
            # Java divides towards zero; what is below zero counts as zero either way.
            self._histogram.add(max(0, (now_ms - stamp_ms - low) // step))

    def status(self) -> dict[str, Json]:
        """The latencies so far."""
        low, step = self._spec.histogram_min_ms, self._spec.histogram_step_ms
        summary = self._histogram.summary()
        average = as_single(as_single(summary.average) * step)
        p50, p95, p99 = (value * step + low for value in summary.percentiles)
        found = LatencyStatus(shortest_single(as_single(average + low)), p50, p95, p99)
        status: dict[str, Json] = jackson.tree(found)
        return status


def processor_of(spec: RecordProcessor) -> StampLatencies:
    """What processes records by a spec.

    Raises:
        TypeError: the class of the spec is unknown (a bug here).
    """
    match spec:
        case TimestampRecordProcessor():
            return StampLatencies(spec)
    raise TypeError(f"no record processor for {type(spec).__name__}")


_POLL_MS: Final = 50
_MINUTE_MS: Final = 60_000
_LONGEST_LATENCY_MS: Final = 10_000
_LARGEST_RECORD_BYTES: Final = 2 * 1024 * 1024
_UNLIMITED: Final = 2**31 - 1


class ConsumerStatus(Struct, frozen=True, rename="camel"):
    """What one consumer has read; bytes and latencies are averages of a histogram.

    Args:
        assigned_partitions: Each as `topic-partition`.
        record_processor_status: None without a record processor; it is not written then.
    """

    assigned_partitions: tuple[str, ...]
    total_messages_received: int
    total_bytes_received: int
    average_message_size_bytes: int
    average_latency_ms: float
    p50_latency_ms: int = 0
    p95_latency_ms: int = 0
    p99_latency_ms: int = 0
    record_processor_status: dict[str, Json] | None = None


class _Reader:
    """One consumer, and what it has read.

    Its name in the status is the client id that the worker gives, whatever the spec's settings say.
    """

    def __init__(
        self,
        name: str,
        consumer: Consumer,
        spec: ConsumeBenchSpec,
        processor: StampLatencies | None,
    ) -> None:
        self.name = name
        self.consumer = consumer
        self._processor = processor
        self.is_over = False
        self._latencies = Histogram(_LONGEST_LATENCY_MS)
        self._sizes = Histogram(_LARGEST_RECORD_BYTES)
        rate = spec.target_messages_per_sec
        most = _UNLIMITED if rate <= 0 else per_period(rate, THROTTLE_PERIOD_MS)
        self.throttle = Throttle(most, THROTTLE_PERIOD_MS)

    def process(self, records: Sequence[Received], now_ms: int) -> None:
        """Show a poll's records to the record processor."""
        if self._processor is not None:
            self._processor.process(records, now_ms)

    def count(self, record: Received, elapsed_ms: int) -> None:
        """Count a record of a poll that took so long."""
        self._latencies.add(elapsed_ms)
        self._sizes.add(len(record.key or b"") + len(record.value or b""))

    def status(self) -> ConsumerStatus:
        """What it has read so far."""
        latency, size = self._latencies.summary(), self._sizes.summary()
        p50, p95, p99 = latency.percentiles
        return ConsumerStatus(
            assigned_partitions=tuple(
                f"{topic}-{partition}" for topic, partition in self.consumer.assignment()
            ),
            total_messages_received=latency.count,
            total_bytes_received=int(size.count * size.average),
            average_message_size_bytes=int(size.average),
            average_latency_ms=latency.average,
            p50_latency_ms=p50,
            p95_latency_ms=p95,
            p99_latency_ms=p99,
            record_processor_status=None if self._processor is None else self._processor.status(),
        )


class ConsumeBench:
    """The workload.

    QUIRK: it looks once a minute whether all consumers are done, and only then is over; its status
    is published as seldom. When it is stopped, only its first consumer is closed: the others stay
    members of their group until it evicts them.

    Args:
        task_id: Id of the task.
        spec: What to read.
        clients: Where it runs.
        report: Takes statuses and the end.
    """

    def __init__(
        self, task_id: str, spec: ConsumeBenchSpec, clients: Clients, report: Report
    ) -> None:
        self._task_id = task_id
        self._spec = spec
        self._clients = clients
        self._report = report
        self._statuses: dict[str, Json] = {}
        self._first: Consumer | None = None

    def begin(self) -> None:
        """Start to read."""
        self._clients.start(every(self._clients, _MINUTE_MS, self._publish))
        self._clients.start(self._prepare())

    def end(self) -> Blocking[None]:
        """Stop, and close the first consumer."""
        self._report.halt()
        self._clients.interrupt()
        if self._first is not None:
            yield from _close(self._first)

    def _prepare(self) -> Blocking[None]:
        try:
            readers = yield from self._readers()
        except (ClientFailed, InvalidName) as error:
            self._report.halt(str(error))
            return
        for reader in readers:
            update = partial(self._update, reader)
            self._clients.start(
                every(self._clients, _MINUTE_MS, update, until=partial(_is_over, reader))
            )
            self._clients.start(self._read(reader))
        self._clients.start(self._finish(readers))

    def _readers(self) -> Blocking[list[_Reader]]:
        """Make all consumers, and tell them what to read.

        Source: Prepare.consumeTasks.

        Raises:
            ClientFailed: their settings are refused, or no broker tells a topic's partitions.
            InvalidName: a topic's name is none.
        """
        spec, count = self._spec, self._spec.threads_per_worker
        topics = spec.materialize_topics()
        by_group = not any(topics.values())
        if not by_group and spec.consumer_group and count > 1:
            raise ClientFailed(
                "You may not specify an explicit partition assignment when using multiple "
                "consumers in the same group.Please leave the consumer group unset, specify "
                "topics instead of partitions or use a single consumer."
            )
        first = self._first = self._consumer(0)
        listen: Callable[[Consumer], None]
        if by_group:
            listen = partial(_subscribe, topics=tuple(topics))
        else:
            partitions: list[TopicPartition] = []
            for topic, numbers in topics.items():
                named = tuple(TopicPartition(topic, number) for number in numbers)
                partitions += named or (yield from first.partitions_for(topic))
            listen = partial(_assign, partitions=partitions)
        # All consumers share the record processor, as the spec of Java has only one.
        given = spec.record_processor
        processor = None if given is None else processor_of(given)
        # At least the first consumer, as in Java, whatever the number of threads.
        readers: list[_Reader] = []
        for index in range(max(1, count)):
            consumer = self._consumer(index) if index else first
            readers.append(_Reader(client_id(self._task_id, index), consumer, spec, processor))
            listen(consumer)
        return readers

    def _consumer(self, index: int) -> Consumer:
        unique = self._clients.unique
        group = self._spec.consumer_group or f"consume-bench-{unique()}"
        return self._clients.consumer(consumer_settings(self._task_id, self._spec, index, group))

    def _read(self, reader: _Reader) -> Blocking[None]:
        """Read until there were enough records. Source: ConsumeMessages.call."""
        most, clients, consumed = self._spec.max_messages, self._clients, 0
        began_ms = clients.now_ms
        failure: str | None = None
        try:
            while consumed < most:
                records = yield from reader.consumer.poll(_POLL_MS)
                if not records:
                    continue
                now_ms = clients.now_ms
                reader.process(records, now_ms)
                for record in records:
                    consumed += 1
                    reader.count(record, now_ms - began_ms)
                    if consumed >= most:
                        break
                    yield from throttled(reader.throttle, clients)
                began_ms = clients.now_ms
        except ClientFailed as error:
            failure = str(error)
            self._report.halt(failure)
        self._update(reader)
        if failure is None:
            yield from _close(reader.consumer)
        reader.is_over = True

    def _finish(self, readers: Sequence[_Reader]) -> Blocking[None]:
        """Look once a minute whether all is read. Source: CloseStatusUpdater."""
        while not all(reader.is_over for reader in readers):
            yield Wait(until_ms=self._clients.now_ms + _MINUTE_MS)
        self._publish()
        self._report.halt()

    def _update(self, reader: _Reader) -> None:
        self._statuses[reader.name] = jackson.tree(reader.status())

    def _publish(self) -> None:
        self._report.status(dict(self._statuses))


def client_id(task_id: str, index: int) -> str:
    """The client id of one consumer. Source: ConsumeBenchWorker.Prepare.clientId."""
    return f"consumer.{task_id}-{index}"


def consumer_settings(task_id: str, spec: ConsumeBenchSpec, index: int, group_id: str) -> Settings:
    """Settings of one consumer: the worker's own, then the common ones, then the consumers'."""
    return {
        "bootstrap.servers": spec.bootstrap_servers,
        "client.id": client_id(task_id, index),
        "group.id": group_id,
        "auto.offset.reset": "earliest",
        "max.poll.interval.ms": 100_000,
        **spec.common_client_conf,
        **spec.consumer_conf,
    }


def _subscribe(consumer: Consumer, topics: tuple[str, ...]) -> None:
    consumer.subscribe(topics)


def _assign(consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
    consumer.assign(partitions)


def _close(consumer: Consumer) -> Blocking[None]:
    """Source: ThreadSafeConsumer.close."""
    yield from consumer.unsubscribe()
    yield from consumer.close()


def _is_over(reader: _Reader) -> bool:
    return reader.is_over
