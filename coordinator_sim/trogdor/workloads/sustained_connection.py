"""SustainedConnection: clients that stay connected, and are used now and then.

Source: kafka trunk, trogdor/.../trogdor/workload/SustainedConnectionWorker.java.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import cycle
from types import MappingProxyType
from typing import Any, Final, Generic, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.connect.thread import Blocking, Pending, Wait
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.payloads import PayloadIterator
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.workload_specs import SustainedConnectionSpec
from coordinator_sim.trogdor.workloads.clients import (
    Admin,
    ClientFailed,
    Clients,
    Consumer,
    Producer,
    Report,
    Settings,
)
from coordinator_sim.trogdor.workloads.pace import every

_STATUS_PERIOD_MS: Final = 5_000
_BACKOFF_MS: Final = 10
_POLL_MS: Final = 50
NO_SETTINGS: Final[Settings] = MappingProxyType({})


class SustainedStatus(Struct, frozen=True, rename="camel"):
    """How many clients of each kind are connected, and how often one failed.

    Args:
        total_aborted_threads: 0; Kafka's threads abort by bugs alone.
        updated_ms: When this was so.
    """

    total_producer_connections: int
    total_producer_failed_connections: int
    total_consumer_connections: int
    total_consumer_failed_connections: int
    total_metadata_connections: int
    total_metadata_failed_connections: int
    total_aborted_threads: int
    updated_ms: int


class _Tally:
    """Connections of one kind."""

    def __init__(self) -> None:
        self.open = 0
        self.failed = 0


class _Client(Protocol):
    """What every kind of client has."""

    def close(self) -> Blocking[None]: ...


C = TypeVar("C", bound=_Client)


class _Connection(ABC, Generic[C]):
    """A client that is replaced by a new one after a failure. Source: ClaimableConnection."""

    def __init__(self, spec: SustainedConnectionSpec, clients: Clients, tally: _Tally) -> None:
        self._spec = spec
        self._clients = clients
        self._tally = tally
        self._next_ms = 0
        self._is_used = False
        self._client: C | None = None

    @abstractmethod
    def _make(self) -> C:
        """A new client.

        Raises:
            ClientFailed: its settings are refused.
        """

    def _set_up(self, client: C) -> Blocking[None]:
        """Make a new client ready to be used; by default it is.

        Raises:
            ClientFailed: that fails.
        """
        del client
        yield from ()

    @abstractmethod
    def _use(self, client: C) -> Blocking[None]:
        """Use the client.

        Raises:
            ClientFailed: that fails.
            TrogdorRefusal: there is nothing to send.
        """

    def claim(self) -> bool:
        """Whether it is its turn to be used; then it is nobody else's until it was used."""
        if self._is_used or self._clients.now_ms <= self._next_ms:
            return False
        self._is_used = True
        return True

    def refresh(self) -> Blocking[None]:
        """Use the client, and make it if there is none; close it when that fails."""
        try:
            if self._client is None:
                self._tally.open += 1
                self._client = self._make()
                yield from self._set_up(self._client)
            yield from self._use(self._client)
        except (ClientFailed, TrogdorRefusal):
            yield from self.close()
            self._tally.open -= 1
            self._tally.failed += 1
        self._next_ms = self._clients.now_ms + self._spec.refresh_rate_ms
        self._is_used = False

    def close(self) -> Blocking[None]:
        """Close the client."""
        client, self._client = self._client, None
        if client is not None:
            yield from client.close()

    def _settings(self, specific: Settings, own: Settings = NO_SETTINGS) -> Settings:
        """The worker's own settings, then the common ones, then those of this kind of client."""
        servers = {"bootstrap.servers": self._spec.bootstrap_servers}
        return {**servers, **own, **self._spec.common_client_conf, **specific}


class _MetadataConnection(_Connection[Admin]):
    """An admin client that asks for the brokers."""

    def _make(self) -> Admin:
        return self._clients.admin(self._settings(NO_SETTINGS))

    def _use(self, client: Admin) -> Blocking[None]:
        yield from client.describe_cluster()


class _ProducerConnection(_Connection[Producer]):
    """A producer that writes a record to the partitions in turn, in an order of its own."""

    def __init__(self, spec: SustainedConnectionSpec, clients: Clients, tally: _Tally) -> None:
        super().__init__(spec, clients, tally)
        self._keys = PayloadIterator(spec.key_generator)
        self._values = PayloadIterator(spec.value_generator)
        self._turns: Iterator[TopicPartition] = iter(())

    def _make(self) -> Producer:
        return self._clients.producer(self._settings(self._spec.producer_conf))

    def _set_up(self, client: Producer) -> Blocking[None]:
        partitions = yield from client.partitions_for(self._spec.topic_name)
        self._turns = cycle(self._shuffled(partitions))

    def _use(self, client: Producer) -> Blocking[None]:
        partition, now_ms = next(self._turns), self._clients.now_ms
        key, value = self._keys.next(now_ms), self._values.next(now_ms)
        outcome: Pending[None] = Pending()

        def told(failure: str | None) -> None:
            outcome.complete(error=failure)

        yield from client.send(*partition, key, value, told)
        if not outcome.done:
            yield Wait(outcome)
        if outcome.error is not None:
            raise ClientFailed(outcome.error)

    def _shuffled(self, partitions: Sequence[TopicPartition]) -> list[TopicPartition]:
        """The partitions in a drawn order. Source: java.util.Collections.shuffle."""
        drawn = list(partitions)
        for last in range(len(drawn) - 1, 0, -1):
            other = self._clients.draw(last + 1)
            drawn[last], drawn[other] = drawn[other], drawn[last]
        return drawn


class _ConsumerConnection(_Connection[Consumer]):
    """A consumer without a group that reads the end of one partition."""

    def _make(self) -> Consumer:
        own: Settings = {
            "auto.offset.reset": "latest",
            "max.poll.records": 1,
            "fetch.max.bytes": 1024,
        }
        return self._clients.consumer(self._settings(self._spec.consumer_conf, own))

    def _set_up(self, client: Consumer) -> Blocking[None]:
        partitions = yield from client.partitions_for(self._spec.topic_name)
        client.assign([partitions[self._clients.draw(len(partitions))]])

    def _use(self, client: Consumer) -> Blocking[None]:
        client.seek_to_end()
        yield from client.poll(_POLL_MS)


class SustainedConnection:
    """The workload; it goes on until it is stopped.

    Without generators of keys and values each use of a producer fails, and is counted.

    Args:
        _task_id: Id of the task; nothing is named after it.
        spec: Which clients to keep.
        clients: Where it runs.
        report: Takes statuses and the end.
    """

    def __init__(
        self, _task_id: str, spec: SustainedConnectionSpec, clients: Clients, report: Report
    ) -> None:
        self._spec = spec
        self._clients = clients
        self._report = report
        self._is_over = False
        self._producers, self._consumers, self._admins = _Tally(), _Tally(), _Tally()
        kinds: tuple[tuple[type[_Connection[Any]], int, _Tally], ...] = (
            (_ProducerConnection, spec.producer_connection_count, self._producers),
            (_ConsumerConnection, spec.consumer_connection_count, self._consumers),
            (_MetadataConnection, spec.metadata_connection_count, self._admins),
        )
        self._connections = [
            kind(spec, clients, tally) for kind, count, tally in kinds for _ in range(count)
        ]

    def begin(self) -> None:
        """Start to connect."""
        self._clients.start(every(self._clients, _STATUS_PERIOD_MS, self._publish, first_ms=0))
        for _ in range(self._spec.num_threads):
            self._clients.start(self._maintain())

    def end(self) -> Blocking[None]:
        """Tell the last status, stop, and close all clients."""
        self._publish()
        self._is_over = True
        self._report.halt()
        self._clients.interrupt()
        for connection in self._connections:
            yield from connection.close()

    def _maintain(self) -> Blocking[None]:
        """Use the connections whose turn it is. Source: MaintainLoop.run."""
        while not self._is_over:
            due = next((each for each in self._connections if each.claim()), None)
            if due is None:
                yield Wait(until_ms=self._clients.now_ms + _BACKOFF_MS)
            else:
                yield from due.refresh()

    def _publish(self) -> None:
        status = SustainedStatus(
            self._producers.open,
            self._producers.failed,
            self._consumers.open,
            self._consumers.failed,
            self._admins.open,
            self._admins.failed,
            0,
            self._clients.now_ms,
        )
        self._report.status(jackson.tree(status))
