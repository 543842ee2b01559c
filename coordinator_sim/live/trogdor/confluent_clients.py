"""The place of a workload in a process of its own: clients of confluent-kafka, threads, chance.

A thread of the workload blocks in place: the generators of these clients yield nothing, and give up
the lock of the workload's threads while librdkafka waits.
"""

import random
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import suppress
from functools import partial
from threading import Event
from typing import Final, TypeVar
from uuid import uuid4

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_INVALID,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
)
from confluent_kafka import TopicPartition as Assigned
from confluent_kafka.admin import AdminClient, NewTopic

from coordinator_sim.clock import Action
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.live.background import in_background
from coordinator_sim.live.trogdor import workload_place
from coordinator_sim.live.trogdor.client_settings import (
    native_of_admin,
    native_of_consumer,
    native_of_producer,
    whole_number,
)
from coordinator_sim.live.trogdor.workload_place import (
    DEFAULT_TIMEOUT_MS,
    NOBODY_ANSWERS,
    NOT_THERE_YET,
    SLICE_S,
    Errors,
    Log,
    WorkloadPlace,
    is_final,
    text_of,
)
from coordinator_sim.live.trogdor.workload_threads import now_ms
from coordinator_sim.trogdor.topic_specs import PartitionsSpec
from coordinator_sim.trogdor.workloads.clients import (
    ClientFailed,
    NotCreated,
    Received,
    Settings,
    Told,
)

_ANY_PARTITION: Final = -1
_DELIVERIES_S: Final = 0.1
_TRY_AGAIN_MS: Final = 100


class ConfluentProducer:
    """A producer; a thread of its own takes the outcomes of its records.

    Args:
        place: Where it is.
        settings: By Java's names.

    Raises:
        ClientFailed: the settings are refused.
    """

    def __init__(self, place: workload_place.WorkloadPlace, settings: Settings) -> None:
        self._place = place
        self._patience_ms = whole_number(
            settings, "max.block.ms", workload_place.DEFAULT_TIMEOUT_MS
        )
        self._errors = workload_place.Errors(place)
        self._client = place.made(native_of_producer(settings), self._errors, Producer)
        self._is_closed = False
        self._is_in_transaction = False
        in_background("deliveries", self._deliver)

    def _deliver(self) -> None:
        while not self._is_closed:
            self._client.poll(_DELIVERIES_S)

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic, which is waited for.

        Raises:
            ClientFailed: it does not come within `max.block.ms`, or no broker answers.
        """
        yield from ()
        until_ms = now_ms() + self._patience_ms
        while not (found := self._place.partitions(self._client, topic, until_ms)):
            if now_ms() >= until_ms:
                raise ClientFailed(
                    f"Topic {topic} not present in metadata after {self._patience_ms} ms."
                )
            self._place.threads.await_outcome(now_ms() + _TRY_AGAIN_MS)
        return found

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        told: Told,
    ) -> Blocking[None]:
        """Hand a record over; see `workloads/clients.py`.

        Raises:
            ClientFailed: the producer takes no records any more.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        if partition is not None and partition < 0:
            raise ClientFailed(
                f"Invalid partition: {partition}. Partition number should always be non-negative "
                "or null."
            )
        if self._errors.failure is not None:
            told(self._errors.failure)
            return
        until_ms = now_ms() + self._patience_ms
        number = _ANY_PARTITION if partition is None else partition
        delivered = partial(self._delivered, told)
        # Ends because time goes on.
        while True:
            try:
                self._client.produce(topic, value, key, number, on_delivery=delivered)
            except BufferError:
                if now_ms() >= until_ms:
                    told(f"The buffer was full for {self._patience_ms} ms (max.block.ms).")
                    return
                self._place.threads.await_outcome(until_ms)
            except KafkaException as error:
                failure = self._place.failed(error)
                if workload_place.is_final(error.args[0]) or error.args[0].code() == _WRONG_STATE:
                    raise failure from None
                told(str(failure))
                return
            else:
                break
        # Outcomes that are there are taken now, not after a burst of sends.
        self._client.poll(0)

    def _delivered(self, told: Told, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._place.heard(error)
        failure = None if error is None else workload_place.text_of(error)
        self._place.threads.call(partial(told, failure))

    def flush(self) -> Blocking[None]:
        """Wait until every record has its outcome.

        Raises:
            Interrupted: the workload is being stopped.
        """
        yield from ()
        # Ends because each record has an outcome after `delivery.timeout.ms`.
        while self._place.threads.outside(partial(self._client.flush, workload_place.SLICE_S)):
            pass

    def init_transactions(self) -> Blocking[None]:
        """Fence older producers of the transactional id.

        Raises:
            ClientFailed: it cannot within `max.block.ms`.
        """
        yield from ()
        self._patiently(self._client.init_transactions)

    def begin_transaction(self) -> None:
        """Begin a transaction.

        Raises:
            ClientFailed: one is open, or the producer is fenced.
        """
        try:
            self._client.begin_transaction()
        except KafkaException as error:
            raise self._place.failed(error) from None
        self._is_in_transaction = True

    def end_transaction(self, *, committed: bool) -> Blocking[None]:
        """Commit or abort the transaction.

        Raises:
            ClientFailed: it cannot within `max.block.ms`.
        """
        yield from ()
        client = self._client
        self._patiently(client.commit_transaction if committed else client.abort_transaction)
        self._is_in_transaction = False

    def close(self) -> Blocking[None]:
        """Abort an open transaction, wait for all outcomes, and close."""
        if self._is_closed:
            return
        if self._is_in_transaction:
            # Java logs what goes wrong, and closes.
            with suppress(ClientFailed):
                yield from self.end_transaction(committed=False)
        yield from self.flush()
        self._is_closed = True

    def _patiently(self, call: Callable[[float], object]) -> None:
        """Make a call about transactions until it is through; each slice takes the same one up.

        Raises:
            ClientFailed: it fails, or takes longer than `max.block.ms`.
            Interrupted: the workload is being stopped.
        """
        until_ms = now_ms() + self._patience_ms
        while True:
            try:
                self._place.threads.outside(partial(call, workload_place.SLICE_S))
            except KafkaException as error:
                reason = error.args[0]
                may_go_on = reason.retriable() or reason.code() in workload_place.NOBODY_ANSWERS
                if not may_go_on or now_ms() >= until_ms:
                    raise self._place.failed(error) from None
                self._place.threads.await_outcome(now_ms() + _TRY_AGAIN_MS)
            else:
                return


_WRONG_STATE: Final = KafkaError._STATE  # noqa: SLF001 - librdkafka's own errors begin so


_MS_PER_S: Final = 1_000
_MAX_POLL_RECORDS: Final = 500
_CLOSE_S: Final = 30.0
"""Source: KafkaConsumer.DEFAULT_CLOSE_TIMEOUT_MS."""
_BEGINNINGS: Final = {"earliest": OFFSET_BEGINNING}


class ConfluentConsumer:
    """A consumer.

    Args:
        place: Where it is.
        settings: By Java's names.

    Raises:
        ClientFailed: the settings are refused.
    """

    def __init__(self, place: WorkloadPlace, settings: Settings) -> None:
        self._place = place
        self._most = whole_number(settings, "max.poll.records", _MAX_POLL_RECORDS)
        self._patience_ms = whole_number(settings, "default.api.timeout.ms", DEFAULT_TIMEOUT_MS)
        # A consumer without a group has no committed offsets to begin at.
        beginning = _BEGINNINGS.get(str(settings.get("auto.offset.reset")), OFFSET_END)
        self._first_offset = OFFSET_INVALID if "group.id" in settings else beginning
        native = native_of_consumer(settings, f"unused-{uuid4()}")
        self._errors = Errors(place)
        self._client = place.made(native, self._errors, Consumer)
        self._assigned: Sequence[TopicPartition] = ()
        self._is_closed = False

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group at the next polls."""
        self._client.subscribe(list(topics))

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, from what was committed or as `auto.offset.reset` says."""
        self._assigned = partitions
        self._assign_at(self._first_offset)

    def seek_to_end(self) -> None:
        """Read what comes after the present end of the assigned partitions."""
        self._assign_at(OFFSET_END)

    def _assign_at(self, offset: int) -> None:
        self._client.assign([Assigned(*each, offset) for each in self._assigned])

    def assignment(self) -> Sequence[TopicPartition]:
        """The partitions that it reads, in order; none after it was closed."""
        if self._is_closed:
            return ()
        found = self._client.assignment()
        return sorted(TopicPartition(each.topic, each.partition) for each in found)

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic.

        Raises:
            ClientFailed: there is no such topic, or no broker answers.
        """
        yield from ()
        found = self._place.partitions(self._client, topic, now_ms() + self._patience_ms)
        if not found:
            raise ClientFailed(f"there is no topic {topic}")
        return found

    def poll(self, timeout_ms: int) -> Blocking[Sequence[Received]]:
        """Records, as soon as there are any; none after the timeout.

        Raises:
            ClientFailed: reading fails in a way that Java's poll would raise.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        client = self._client
        first = self._place.threads.outside(partial(client.poll, timeout_ms / _MS_PER_S))
        self._errors.check()
        if first is None:
            return ()
        messages = [first]
        if self._most > 1:
            messages += client.consume(self._most - 1, 0)
        received = (self._received(each) for each in messages)
        return [each for each in received if each is not None]

    def _received(self, message: Message) -> Received | None:
        """A message as a record; None for an error that is waited out."""
        error = message.error()
        if error is not None:
            if _is_raised(error):
                raise self._place.failed(KafkaException(error))
            self._place.heard(error)
            return None
        topic, number, offset = message.topic(), message.partition(), message.offset()
        if topic is None or number is None or offset is None:
            return None
        key, value = _bytes(message.key()), _bytes(message.value())
        return Received(TopicPartition(topic, number), offset, message.timestamp()[1], key, value)

    def unsubscribe(self) -> Blocking[None]:
        """Give up all partitions, and leave the group."""
        yield from ()
        if not self._is_closed:
            self._place.threads.outside(self._client.unsubscribe)

    def close(self) -> Blocking[None]:
        """Leave the group and close; without a broker, give up after half a minute."""
        yield from ()
        if not self._is_closed:
            self._is_closed = True
            closed = Event()
            in_background("closes", partial(self._close, closed))
            self._place.threads.outside(partial(closed.wait, _CLOSE_S))

    def _close(self, closed: Event) -> None:
        self._client.close()
        closed.set()


def _is_raised(error: KafkaError) -> bool:
    """Whether a poll of Java's consumer raises for an error.

    Source: KafkaConsumer.poll raises for authorization, authentication, and offsets without a rule;
    it waits for topics, leaders and brokers.
    """
    if error.code() == KafkaError._AUTO_OFFSET_RESET or is_final(error):  # noqa: SLF001 - so named
        return True
    return error.code() > 0 and not error.retriable() and error.code() not in NOT_THERE_YET


def _bytes(part: str | bytes | None) -> bytes | None:
    return part.encode() if isinstance(part, str) else part


T = TypeVar("T")

_REQUEST_TIMEOUT_MS: Final = 30_000
_TIMED_OUT: Final = "REQUEST_TIMED_OUT"
_GAP: Final = NotCreated(
    "INVALID_REPLICA_ASSIGNMENT",
    "partitions should be a consecutive 0-based integer sequence",
)


class ConfluentAdmin:
    """An admin client.

    Args:
        place: Where it is.
        settings: By Java's names.

    Raises:
        ClientFailed: the settings are refused.
    """

    def __init__(self, place: WorkloadPlace, settings: Settings) -> None:
        self._place = place
        patience_ms = whole_number(settings, "default.api.timeout.ms", DEFAULT_TIMEOUT_MS)
        self._patience_s = patience_ms / _MS_PER_S
        request_ms = whole_number(settings, "request.timeout.ms", _REQUEST_TIMEOUT_MS)
        self._request_s = request_ms / _MS_PER_S
        self._errors = Errors(place)
        self._client = place.made(native_of_admin(settings), self._errors, AdminClient)

    def create_topics(
        self, topics: Mapping[str, PartitionsSpec]
    ) -> Blocking[Mapping[str, NotCreated | None]]:
        """Ask for new topics.

        Raises:
            ClientFailed: the request cannot be made of the names.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        outcomes: dict[str, NotCreated | None] = {
            name: _GAP for name, spec in topics.items() if _has_gap(spec)
        }
        wanted = [_new_topic(name, topics[name]) for name in topics if name not in outcomes]
        if not wanted:
            return outcomes
        try:
            asked = self._client.create_topics(
                wanted, operation_timeout=self._request_s, request_timeout=self._patience_s
            )
        except (KafkaException, ValueError, TypeError) as error:
            raise ClientFailed(str(error)) from None
        for name, future in asked.items():
            try:
                self._result(future)
            except KafkaException as error:
                outcomes[name] = _not_created(error.args[0])
            else:
                outcomes[name] = None
        return outcomes

    def partition_counts(self, topics: Sequence[str]) -> Blocking[Mapping[str, int | None]]:
        """How many partitions topics have; None for an unknown one.

        Raises:
            ClientFailed: no broker answers, or a topic is refused.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        collection = TopicCollection(list(topics))
        asked = self._client.describe_topics(collection, request_timeout=self._patience_s)
        counts: dict[str, int | None] = {}
        for name, future in asked.items():
            try:
                counts[name] = len(self._result(future).partitions)
            except KafkaException as error:
                if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise self._place.failed(error) from None
                counts[name] = None
        return counts

    def describe_cluster(self) -> Blocking[int]:
        """The number of brokers.

        Raises:
            ClientFailed: no broker answers.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        asked = self._client.describe_cluster(request_timeout=self._patience_s)
        try:
            return len(self._result(asked).nodes)
        except KafkaException as error:
            raise self._place.failed(error) from None

    def close(self) -> Blocking[None]:
        """Do nothing: librdkafka's admin client goes with its last user."""
        yield from ()

    def _result(self, future: "Future[T]") -> T:
        """The result of a request; what goes wrong on the way is logged.

        Raises:
            ClientFailed: there will be none.
            Interrupted: the workload is being stopped.
            KafkaException: the request fails.
        """
        while not future.done():
            self._place.threads.outside(partial(wait, [future], SLICE_S))
            self._client.poll(0)
            self._errors.check()
        return future.result()


def _has_gap(spec: PartitionsSpec) -> bool:
    """Whether brokers are named for partitions that do not count from 0."""
    named = sorted(spec.partition_assignments)
    return named != list(range(len(named)))


def _new_topic(name: str, spec: PartitionsSpec) -> NewTopic:
    """A topic to ask for. Source: PartitionsSpec.newTopic."""
    config = dict(spec.configs)
    if spec.partition_assignments:
        brokers = [list(spec.partition_assignments[each]) for each in spec.partition_numbers]
        return NewTopic(name, len(brokers), replica_assignment=brokers, config=config)
    replicas = spec.effective_replication_factor
    return NewTopic(name, spec.effective_num_partitions, replicas, config=config)


def _not_created(error: KafkaError) -> NotCreated:
    name = _TIMED_OUT if error.code() in NOBODY_ANSWERS else error.name()
    return NotCreated(name, text_of(error))


Address = tuple[str, int]

_PLAIN: Final = "PLAINTEXT"


class ConfluentClients:
    """The place; made, run and interrupted by the main thread.

    Args:
        log: Takes lines for the operator.
    """

    def __init__(self, log: Log) -> None:
        self._place = WorkloadPlace(log)
        self._addresses: dict[str, list[Address]] = {}
        self._random = random.SystemRandom()

    @property
    def now_ms(self) -> int:
        """The wall clock."""
        return now_ms()

    def consumer(self, settings: Settings) -> ConfluentConsumer:
        """A new consumer.

        Raises:
            ClientFailed: the settings are refused.
        """
        return ConfluentConsumer(self._place, settings)

    def producer(self, settings: Settings) -> ConfluentProducer:
        """A new producer.

        Raises:
            ClientFailed: the settings are refused.
        """
        return ConfluentProducer(self._place, settings)

    def admin(self, settings: Settings) -> ConfluentAdmin:
        """A new admin client.

        Raises:
            ClientFailed: the settings are refused.
        """
        return ConfluentAdmin(self._place, settings)

    def connect(self, settings: Settings, timeout_ms: int) -> Blocking[bool]:
        """Open a connection to one of the bootstrap servers and close it.

        Raises:
            ClientFailed: the connection is to be encrypted or logged in to, or no server is known.
            Interrupted: the workload is being stopped.
        """
        yield from ()
        protocol = str(settings.get("security.protocol", _PLAIN))
        if protocol.upper() != _PLAIN:
            raise ClientFailed(
                f"security.protocol is {protocol}: CONNECT opens plain connections only; give "
                f"{_PLAIN}, or the action FETCH_METADATA"
            )
        servers = self._resolved(str(settings["bootstrap.servers"]))
        address = servers[self.draw(len(servers))]
        connect = partial(_is_connected, address, timeout_ms / _MS_PER_S)
        return self._place.threads.outside(connect)

    def start(self, thread: Blocking[None]) -> None:
        """Run a thread of the workload."""
        self._place.threads.start(thread)

    def interrupt(self) -> None:
        """Stop every thread."""
        self._place.threads.interrupt()

    def draw(self, below: int) -> int:
        """A number from 0 to `below` - 1."""
        return self._random.randrange(below)

    def unique(self) -> str:
        """A random UUID."""
        return str(uuid.uuid4())

    # -- the main thread -----------------------------------------------------------------------

    def call(self, action: Action) -> None:
        """Do something while no thread of the workload runs."""
        self._place.threads.call(action)

    def run(self, work: Blocking[T]) -> T:
        """Run something to its end."""
        return self._place.threads.run(work)

    # -- inside --------------------------------------------------------------------------------

    def _resolved(self, servers: str) -> list[Address]:
        """The addresses of servers, looked up once.

        Raises:
            ClientFailed: there is none.
        """
        if servers not in self._addresses:
            found = [each for server in servers.split(",") for each in _looked_up(server.strip())]
            if not found:
                raise ClientFailed(
                    f"No resolvable bootstrap urls given in bootstrap.servers: {servers!r}"
                )
            self._addresses[servers] = found
        return self._addresses[servers]


def _looked_up(server: str) -> list[Address]:
    """The addresses of `host:port`, with or without a protocol; empty for a malformed one."""
    host, _, port = server.rpartition("://")[2].rpartition(":")
    if not host or not port.isdecimal():
        return []
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
    except (OSError, OverflowError, UnicodeError):
        return []
    return [(str(found[0][4][0]), int(port))]


def _is_connected(address: Address, timeout_s: float) -> bool:
    """Whether a connection is not refused in time."""
    try:
        socket.create_connection(address, timeout_s).close()
    except TimeoutError:
        return True
    except OSError:
        return False
    return True
