"""A Connect worker's topic effects, done by librdkafka: admin, producers, readers of logs.

Every call blocks in a thread of its own; answers are given on the loop's thread. An effect is
answered once; errors carry the names of Kafka's exceptions.

The reader of one log: a thread reads all partitions of a topic from the beginning, for ever.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Assigned
from confluent_kafka import TopicPartition as Position
from confluent_kafka.admin import (
    AdminClient,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from coordinator_sim.clients.exceptions import DISCONNECT, KAFKA, TIMEOUT, exception_name
from coordinator_sim.connect import effects
from coordinator_sim.connect.effects import (
    AlterGroupOffsets,
    DeleteGroup,
    DeleteGroupOffsets,
    Fetched,
    ListGroupOffsets,
    TopicRecord,
)
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.live.background import InOrder, in_background, in_thread

MAX_RECORDS: Final = 500
"""Default of `max.poll.records`."""

_WAIT_S: Final = 0.2
_STOP_S: Final = 2.0
_METADATA_S: Final = 30.0


class TopicLogReader:
    """One consumer without a group.

    Args:
        topic: Topic to read.
        settings: Settings of librdkafka: brokers, client id, isolation.
        hand_over: Called in the reader's thread with the records read.
        failed: Called there once, when the topic can no longer be read.
    """

    def __init__(
        self,
        topic: str,
        settings: Mapping[str, object],
        hand_over: Callable[[Fetched], object],
        failed: Callable[[DataError], object],
    ) -> None:
        self._topic = topic
        self._hand_over = hand_over
        self._failed = failed
        self._stopped = threading.Event()
        # librdkafka requires a group id even where it neither joins nor commits.
        self._consumer = Consumer(
            {
                **settings,
                "group.id": f"{settings['client.id']}-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 100,
            }
        )
        self._thread = threading.Thread(target=self._read, name=f"reads {topic}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """Stop reading; returns when the consumer is closed, or after a time limit."""
        self._stopped.set()
        self._thread.join(_STOP_S)

    def _read(self) -> None:
        try:
            self._read_on()
        except KafkaException as error:
            self._failed(DataError(f"{self._topic}: {error.args[0].str()}"))
        except DataError as error:
            self._failed(error)
        self._consumer.close()

    def _read_on(self) -> None:
        found = self._consumer.list_topics(self._topic, _METADATA_S).topics[self._topic]
        self._consumer.assign(
            [Assigned(self._topic, number, OFFSET_BEGINNING) for number in found.partitions]
        )
        while not self._stopped.is_set():
            first = self._consumer.poll(_WAIT_S)
            if first is not None:
                messages = [first, *self._consumer.consume(MAX_RECORDS - 1, 0)]
                self._hand_over(fetched_of(self._topic, messages))


def fetched_of(topic: str, messages: list[Message]) -> Fetched:
    """Return the records of one poll; the end of a partition gives a position past markers.

    Raises:
        DataError: the topic cannot be read.
    """
    records: list[TopicRecord] = []
    positions: dict[int, int] = {}
    for message in messages:
        error, partition, offset = message.error(), message.partition(), message.offset()
        if error is not None and error.name() != "_PARTITION_EOF":
            if error.retriable() or error.code() < 0:
                continue
            raise DataError(f"{topic}: {error.str()}")
        if partition is None or offset is None:
            continue
        if error is not None:
            positions[partition] = offset
            continue
        positions[partition] = offset + 1
        records.append(
            TopicRecord(
                partition=partition,
                offset=offset,
                key=_bytes(message.key()),
                value=_bytes(message.value()),
                timestamp_ms=message.timestamp()[1],
            )
        )
    return Fetched(topic=topic, records=tuple(records), positions=positions)


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


GroupEffect = ListGroupOffsets | AlterGroupOffsets | DeleteGroupOffsets | DeleteGroup
"""Effects carried out here."""

_TIMEOUT_S: Final = 60.0
"""`default.api.timeout.ms` of the admin client."""
_RETRY_BACKOFF_S: Final = 0.1
_RETRIED: Final = (
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
)


def carry_out_for_group(admin: AdminClient, effect: GroupEffect) -> object:
    """Carry an effect out and wait; return the value that its docstring names.

    DEVIATION: single offsets are not deleted, for librdkafka's Python client has no such call; the
    request fails as on a broker without it.

    Raises:
        KafkaException: the group refuses, or cannot be asked.
    """
    deadline_s = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            return _carry_out(admin, effect)
        except KafkaException as error:
            # Java's admin client retries these by itself.
            if error.args[0].code() not in _RETRIED or time.monotonic() >= deadline_s:
                raise
        time.sleep(_RETRY_BACKOFF_S)


def _carry_out(admin: AdminClient, effect: GroupEffect) -> object:
    group_id = effect.group_id
    match effect:
        case ListGroupOffsets():
            wanted = ConsumerGroupTopicPartitions(group_id)
            found = admin.list_consumer_group_offsets([wanted])[group_id].result()
            return {
                TopicPartition(each.topic, each.partition): each.offset
                for each in found.topic_partitions or ()
                if each.offset >= 0
            }
        case AlterGroupOffsets(offsets=offsets):
            positions = [Position(*each, offset) for each, offset in offsets.items()]
            altered = ConsumerGroupTopicPartitions(group_id, positions)
            result = admin.alter_consumer_group_offsets([altered])[group_id].result()
            for each in result.topic_partitions or ():
                if each.error is not None:
                    raise KafkaException(each.error)
        case DeleteGroup():
            admin.delete_consumer_groups([group_id])[group_id].result()
        case DeleteGroupOffsets():
            raise KafkaException(KafkaError(KafkaError.UNSUPPORTED_VERSION))
    return None


DataEffect = (
    effects.DescribeCluster
    | effects.CreateTopic
    | effects.DescribeTopic
    | effects.StartReading
    | effects.StopReading
    | effects.ListEndOffsets
    | effects.Produce
    | effects.InitTransactions
    | effects.ProduceInTransaction
    | effects.FenceProducers
    | GroupEffect
)
"""Effects that are carried out here."""

PRODUCER_FENCED: Final = "ProducerFencedException"
UNKNOWN_TOPIC: Final = "UnknownTopicOrPartitionException"

_LOGGER: Final = logging.getLogger(__name__)
_LOGGER.addHandler(logging.NullHandler())
"""`default.api.timeout.ms` of the admin client."""
_POLL_S: Final = 0.1
_LEADERLESS: Final = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
)
_TRANSACTION_TIMEOUT_MS: Final = 10_000
"""Timeout of the leader's producer (KafkaConfigBackingStore.fencableProducerProps)."""
_NAMED_ERRORS: Final = {
    "_TIMED_OUT": TIMEOUT,
    "_MSG_TIMED_OUT": TIMEOUT,
    "_ALL_BROKERS_DOWN": TIMEOUT,
    "_TRANSPORT": DISCONNECT,
    "_FENCED": PRODUCER_FENCED,
    "INVALID_PRODUCER_EPOCH": PRODUCER_FENCED,
    "_UNKNOWN_TOPIC": UNKNOWN_TOPIC,
    "_UNKNOWN_PARTITION": UNKNOWN_TOPIC,
}
"""librdkafka's own errors, and one with another meaning in its producer than from a broker."""


Written = Callable[[int | None, str | None], object]
"""Called with a record's offset, or with the name of an error."""


class DataListener(Protocol):
    """Callbacks to a worker's loop, on the loop's thread alone."""

    def answered(self, token: int, value: object, error: str | None) -> None:
        """Handle the answer to the effect with this token."""
        ...

    def fetched(self, fetched: effects.Fetched) -> None:
        """Handle records of a topic that is read."""
        ...

    def failed(self, error: DataError) -> None:
        """Handle a topic that can no longer be read."""
        ...


class DataPlane:
    """The topics of one worker.

    Args:
        bootstrap: `bootstrap.servers`.
        client_id: Prefix of its clients' ids.
        listener: Receives the answers.
        loop: Event loop on which answers are given.
    """

    def __init__(
        self,
        bootstrap: str,
        *,
        client_id: str,
        listener: DataListener,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._bootstrap = bootstrap
        self._client_id = client_id
        self._listener = listener
        self._loop = loop
        self._admin = AdminClient(self._settings("shared-admin"))
        self._producer = Producer(self._producer_settings("producer"))
        self._transactional: dict[str, tuple[Producer, InOrder]] = {}
        self._readers: dict[str, TopicLogReader] = {}
        self._is_closed = False
        self._delivering = threading.Thread(target=self._deliver, name="deliveries", daemon=True)
        self._delivering.start()

    def carry_out(self, effect: DataEffect) -> None:  # noqa: C901 - one case an effect
        """Begin to carry out an effect."""
        match effect:
            case effects.DescribeCluster(token=token):
                self._ask(token, self._cluster_id)
            case effects.CreateTopic(token=token):
                self._ask(token, partial(self._create, effect))
            case effects.DescribeTopic(token=token, topic=topic):
                self._ask(token, partial(self._partition_count, topic))
            case effects.ListEndOffsets(token=token):
                self._ask(token, partial(self._patient_end_offsets, effect))
            case effects.StartReading():
                self._start_reading(effect)
            case effects.StopReading(topic=topic):
                self._stop_reading(topic)
            case effects.Produce():
                self._produce(effect)
            case effects.InitTransactions(token=token, transactional_id=transactional_id):
                self._init_transactions(token, transactional_id)
            case effects.ProduceInTransaction():
                self._produce_in_transaction(effect)
            case effects.FenceProducers(token=token, transactional_ids=ids):
                self._ask(token, partial(self._fence, ids))
            case _:
                self._ask(effect.token, partial(carry_out_for_group, self._admin, effect))

    def close(self) -> None:
        """Close every client; open questions stay unanswered. Blocks a moment."""
        self._is_closed = True
        for reader in self._readers.values():
            reader.stop()
        self._readers.clear()
        self._delivering.join()
        self._producer.flush(1)
        for _, thread in self._transactional.values():
            thread.end()

    # Questions, each in a thread.

    def _ask(self, token: int, work: Callable[[], object], thread: InOrder | None = None) -> None:
        question = partial(self._work, token, work)
        if thread is None:
            in_background("asks", question)
        else:
            thread.submit(question)

    def _work(self, token: int, work: Callable[[], object]) -> None:
        try:
            value = work()
        except KafkaException as error:
            self._answer(token, None, error_name(error.args[0]))
        else:
            self._answer(token, value, None)

    def _answer(self, token: int, value: object, error: str | None) -> None:
        self._on_loop(self._listener.answered, token, value, error)

    def _on_loop(self, action: Callable[..., object], *arguments: object) -> None:
        if not self._is_closed:
            self._loop.call_soon_threadsafe(action, *arguments)

    def _cluster_id(self) -> str:
        described = self._admin.describe_cluster(request_timeout=_TIMEOUT_S).result()
        return str(described.cluster_id)

    def _create(self, effect: effects.CreateTopic) -> bool:
        topic = NewTopic(
            effect.topic, effect.partitions, effect.replication_factor, config=effect.configs
        )
        created = self._admin.create_topics([topic], operation_timeout=_TIMEOUT_S)
        try:
            created[effect.topic].result()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
            return False
        return True

    def _partition_count(self, name: str) -> int:
        """Ask with the admin client, which creates no topic."""
        asked = self._admin.describe_topics(TopicCollection([name]), request_timeout=_TIMEOUT_S)
        try:
            return len(asked[name].result().partitions)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return 0
            raise

    def _end_offsets(self, effect: effects.ListEndOffsets) -> dict[int, int]:
        level = (
            IsolationLevel.READ_COMMITTED
            if effect.read_committed
            else IsolationLevel.READ_UNCOMMITTED
        )
        asked = {
            Assigned(effect.topic, partition): OffsetSpec.latest()
            for partition in range(self._partition_count(effect.topic))
        }
        found = self._admin.list_offsets(asked, isolation_level=level, request_timeout=_TIMEOUT_S)
        return {each.partition: future.result().offset for each, future in found.items()}

    def _patient_end_offsets(self, effect: effects.ListEndOffsets) -> dict[int, int]:
        """Retry while leaders are elected, as Java's admin client does by itself."""
        deadline_s = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                return self._end_offsets(effect)
            except KafkaException as error:
                is_over = self._is_closed or time.monotonic() >= deadline_s
                if is_over or error.args[0].code() not in _LEADERLESS:
                    raise
            time.sleep(_RETRY_BACKOFF_S)

    def topic_setting(self, token: int, topic: str, name: str) -> None:
        """Look up one setting of a topic; the value is empty when it has none of that name."""
        self._ask(token, partial(self._topic_setting, topic, name))

    def _topic_setting(self, topic: str, name: str) -> str:
        resource = ConfigResource(ResourceType.TOPIC, topic)
        asked = self._admin.describe_configs([resource], request_timeout=_TIMEOUT_S)
        entry = asked[resource].result().get(name)
        return "" if entry is None else str(entry.value)

    # Readers.

    def _start_reading(self, effect: effects.StartReading) -> None:
        settings = {
            **self._settings(effect.topic),
            "isolation.level": "read_committed" if effect.read_committed else "read_uncommitted",
        }
        reader = TopicLogReader(
            effect.topic,
            settings,
            lambda fetched: self._loop.call_soon_threadsafe(self._hand_over, fetched),
            lambda error: self._loop.call_soon_threadsafe(self._listener.failed, error),
        )
        self._readers[effect.topic] = reader
        reader.start()

    def _hand_over(self, fetched: effects.Fetched) -> None:
        if fetched.topic in self._readers:
            self._listener.fetched(fetched)

    def _stop_reading(self, topic: str) -> None:
        reader = self._readers.pop(topic, None)
        if reader is not None:
            in_background("stops reading", reader.stop)

    # Producers.

    def _produce(self, effect: effects.Produce) -> None:
        self.write(
            effect.topic,
            effect.key,
            effect.value,
            lambda offset, error: self._listener.answered(effect.token, offset, error),
        )

    def write(self, topic: str, key: bytes | None, value: bytes | None, written: Written) -> None:
        """Write one record; `written` is called on the loop with its offset, or an error."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self._on_loop(written, message.offset(), None)
            else:
                self._on_loop(written, None, error_name(error))

        self._producer.produce(topic, value=value, key=key, on_delivery=delivered)

    async def end_offsets(self, topic: str) -> dict[int, int]:
        """Return partition -> end offset.

        Raises:
            DataError: the offsets are not available.
        """
        effect = effects.ListEndOffsets(0, topic)
        try:
            return await in_thread(partial(self._patient_end_offsets, effect))
        except KafkaException as error:
            raise DataError(f"{topic}: {error.args[0].str()}") from None

    def _deliver(self) -> None:
        """Serve the producer's callbacks until it is closed."""
        while not self._is_closed:
            self._producer.poll(_POLL_S)

    def _init_transactions(self, token: int, transactional_id: str) -> None:
        producer = Producer(self._transactional_settings(transactional_id))
        thread = InOrder(transactional_id)
        self._transactional[transactional_id] = (producer, thread)
        self._ask(token, partial(producer.init_transactions, _TIMEOUT_S), thread)

    def _produce_in_transaction(self, effect: effects.ProduceInTransaction) -> None:
        producer, thread = self._transactional[effect.transactional_id]
        self._ask(effect.token, partial(write_in_transaction, producer, effect), thread)

    def producer_of(self, transactional_id: str) -> Producer | None:
        """Return the producer of a transactional id initialised here, or None."""
        producer, _ = self._transactional.get(transactional_id, (None, None))
        return producer

    def task_producer(self, task: str, overrides: Mapping[str, str]) -> Producer:
        """Return a new producer of a task's records. Source: Worker.baseProducerConfigs.

        Raises:
            KafkaException: librdkafka does not know an override.
        """
        settings = self._producer_settings("")
        own = {"client.id": f"connector-producer-{task}", **overrides}
        return Producer({**settings, **own})

    def close_producer(self, transactional_id: str) -> None:
        """Forget the producer of a transactional id."""
        _, thread = self._transactional.pop(transactional_id, (None, None))
        if thread is not None:
            thread.end()

    def _fence(self, transactional_ids: tuple[str, ...]) -> None:
        """Initialise a producer for each id once, so that its coordinator raises the epoch."""
        for transactional_id in transactional_ids:
            Producer(self._transactional_settings(transactional_id)).init_transactions(_TIMEOUT_S)

    def _settings(self, purpose: str) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._bootstrap,
            "client.id": f"{self._client_id}{purpose}",
            "logger": _LOGGER,
        }

    def _producer_settings(self, purpose: str) -> dict[str, Any]:
        """Return the settings of the stores' producers: acks=all, one in flight, Java's hash."""
        return {
            **self._settings(purpose),
            "acks": "all",
            "enable.idempotence": False,
            "max.in.flight.requests.per.connection": 1,
            "linger.ms": 0,
            "partitioner": "murmur2_random",
        }

    def _transactional_settings(self, transactional_id: str) -> dict[str, Any]:
        return {
            **self._settings(transactional_id),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
            "linger.ms": 0,
            "partitioner": "murmur2_random",
        }


def write_in_transaction(producer: Producer, effect: effects.ProduceInTransaction) -> None:
    """Begin, write all, commit; an abortable failure is aborted before it is raised.

    Raises:
        KafkaException: the transaction failed; fenced producers say so.
    """
    producer.begin_transaction()
    try:
        for key, value in effect.records:
            producer.produce(effect.topic, value=value, key=key)
        producer.commit_transaction(_TIMEOUT_S)
    except KafkaException as error:
        if error.args[0].txn_requires_abort():
            producer.abort_transaction(_TIMEOUT_S)
        raise


def error_name(error: KafkaError) -> str:
    """Return the name of Kafka's exception for an error of librdkafka."""
    name = error.name()
    known = _NAMED_ERRORS.get(name)
    if known is not None:
        return known
    if error.code() < 0:
        return KAFKA
    try:
        return exception_name(ErrorCode(error.code()))
    except ValueError:
        return "".join(word.capitalize() for word in name.split("_")) + "Exception"
