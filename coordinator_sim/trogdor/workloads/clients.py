"""What a workload needs of the place where it runs: clients of a cluster, a clock, threads, chance.

A workload's threads are generators (`Blocking`): where Java blocks, they yield a `Wait` or call a
client with `yield from`. A process on a host blocks in place; the simulator goes on elsewhere.

Settings have Kafka's names. Each of a workload's clients is used by one thread at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from coordinator_sim.connect.thread import Blocking
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.trogdor.contract import Json
from coordinator_sim.trogdor.topic_specs import PartitionsSpec

Settings = Mapping[str, str | int]
"""Settings of a client by Kafka's names."""
Told = Callable[[str | None], None]
"""Takes the outcome of one record: None for success, else what went wrong."""


class ClientFailed(CoordinatorSimError):
    """A call of a client raised; the text is the exception's message, or its name without one."""


class Interrupted(CoordinatorSimError):
    """The workload is being stopped while a thread of it was in a call."""


class Received(Struct, frozen=True, gc=False):
    """A record that was read.

    Args:
        offset: Its offset.
        timestamp_ms: Its timestamp.
        key: None for a null key, or where the world only counts records.
        value: None as with the key.
    """

    partition: TopicPartition
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


class NotCreated(Struct, frozen=True, gc=False):
    """Why a topic was not created.

    Args:
        error: Name of Kafka's error, such as `TOPIC_ALREADY_EXISTS`; `REQUEST_TIMED_OUT` also where
            no broker answers in time.
        message: What the broker says of it.
    """

    error: str
    message: str


class Consumer(Protocol):
    """A consumer: in a group by `subscribe`, or by itself with `assign`."""

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join the group of the setting `group.id` at the next polls."""
        ...

    def assign(self, partitions: Sequence[TopicPartition]) -> None:
        """Read these partitions, without being a member of a group."""
        ...

    def seek_to_end(self) -> None:
        """Read what comes after the present end of every assigned partition."""
        ...

    def assignment(self) -> Sequence[TopicPartition]:
        """The partitions that it reads at present."""
        ...

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic, in order.

        Raises:
            ClientFailed: there is no such topic, or no broker answers.
        """
        ...

    def poll(self, timeout_ms: int) -> Blocking[Sequence[Received]]:
        """Records, as soon as there are any; none after the timeout.

        Raises:
            ClientFailed: as `KafkaConsumer.poll` does.
            Interrupted: the workload is being stopped.
        """
        ...

    def unsubscribe(self) -> Blocking[None]:
        """Give up all partitions, and leave the group."""
        ...

    def close(self) -> Blocking[None]:
        """Leave the group and close; a second call does nothing."""
        ...


class Producer(Protocol):
    """A producer; one with a `transactional.id` also writes transactions."""

    def partitions_for(self, topic: str) -> Blocking[tuple[TopicPartition, ...]]:
        """All partitions of a topic, in order.

        Raises:
            ClientFailed: there is no such topic, or no broker answers.
        """
        ...

    def send(
        self,
        topic: str,
        partition: int | None,
        key: bytes | None,
        value: bytes | None,
        told: Told,
    ) -> Blocking[None]:
        """Hand a record over; `told` is called once, when it is written or failed.

        It may be called at once: for a record that is too large, or one that was not taken within
        `max.block.ms`. Source: KafkaProducer.doSend, whose ApiExceptions go to the callback.

        Args:
            topic: Where it goes.
            partition: None leaves the choice to the producer.
            key: None for a null key.
            value: None for a null value.
            told: See `Told`.

        Raises:
            ClientFailed: the producer takes no records any more, for example because it is fenced.
            Interrupted: the workload is being stopped.
        """
        ...

    def flush(self) -> Blocking[None]:
        """Wait until every record that was handed over has its outcome."""
        ...

    def init_transactions(self) -> Blocking[None]:
        """Fence older producers of the transactional id.

        Raises:
            ClientFailed: it cannot.
        """
        ...

    def begin_transaction(self) -> None:
        """Begin a transaction.

        Raises:
            ClientFailed: one is open.
        """
        ...

    def end_transaction(self, *, committed: bool) -> Blocking[None]:
        """Commit or abort the transaction.

        Raises:
            ClientFailed: it cannot.
        """
        ...

    def close(self) -> Blocking[None]:
        """Abort an open transaction, wait for all outcomes, close; a second call does nothing."""
        ...


class Admin(Protocol):
    """An admin client."""

    def create_topics(
        self, topics: Mapping[str, PartitionsSpec]
    ) -> Blocking[Mapping[str, NotCreated | None]]:
        """Ask for new topics; the outcome of each is None, or why it was not created.

        Raises:
            ClientFailed: the brokers cannot be asked, whatever the time.
        """
        ...

    def partition_counts(self, topics: Sequence[str]) -> Blocking[Mapping[str, int | None]]:
        """How many partitions each topic has; None for an unknown one.

        Raises:
            ClientFailed: no broker answers.
        """
        ...

    def describe_cluster(self) -> Blocking[int]:
        """The number of brokers that the cluster has.

        Raises:
            ClientFailed: no broker answers.
        """
        ...

    def close(self) -> Blocking[None]:
        """Close it; a second call does nothing."""
        ...


class Clients(Protocol):
    """The place where a workload runs."""

    @property
    def now_ms(self) -> int:
        """The clock of the node."""
        ...

    def consumer(self, settings: Settings) -> Consumer:
        """A new consumer.

        Raises:
            ClientFailed: the settings are refused.
        """
        ...

    def producer(self, settings: Settings) -> Producer:
        """A new producer.

        Raises:
            ClientFailed: the settings are refused.
        """
        ...

    def admin(self, settings: Settings) -> Admin:
        """A new admin client.

        Raises:
            ClientFailed: the settings are refused.
        """
        ...

    def connect(self, settings: Settings, timeout_ms: int) -> Blocking[bool]:
        """Open a connection to one of the bootstrap servers and close it; False when it is refused.

        QUIRK: a connection that is neither open nor refused after the timeout counts as opened.
        Source: ConnectStressor.tryConnect, which looks at exceptions of awaitReady alone.

        Raises:
            ClientFailed: the settings are refused.
        """
        ...

    def start(self, thread: Blocking[None]) -> None:
        """Run a thread of the workload; what it raises is a bug here."""
        ...

    def interrupt(self) -> None:
        """Interrupt every thread where it stands, and start none afterwards."""
        ...

    def draw(self, below: int) -> int:
        """A number from 0 to `below` - 1."""
        ...

    def unique(self) -> str:
        """A text that no other call gives, such as a UUID."""
        ...


class Report(Protocol):
    """Takes what a workload tells: a `Progress` of an agent, or the output of a process."""

    def status(self, value: Json) -> None:
        """The status is another."""
        ...

    def halt(self, error: str = "") -> None:
        """The work is over by itself; empty for no error. Only the first time counts."""
        ...


class Workload(Protocol):
    """A workload over `Clients`, from its start to its stop."""

    def begin(self) -> None:
        """Start its threads."""
        ...

    def end(self) -> Blocking[None]:
        """Stop: its threads are interrupted, and what Kafka's worker closes is closed."""
        ...
