"""The data plane of all brokers on the network: requests for topics, records and transactions.

A fetch without data waits until something is appended. So a record reaches its readers one latency
after it was written, without empty answers in between.
"""

from functools import partial
from typing import Final, cast

from coordinator_sim.clients.effects import Send
from coordinator_sim.messages.requests import Response
from coordinator_sim.sim.data_messages import DataRequest, FetchRequest
from coordinator_sim.sim.data_service import DataService
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.network import Connection

_US_PER_MS: Final = 1_000


class DataBrokers:
    """The server's end of every connection for data.

    Requests of one connection are answered in order, one at a time.

    Args:
        service: Computes the answers.
        environment: The clock.
    """

    __slots__ = ("_environment", "_fetches", "service")

    def __init__(self, service: DataService, environment: Environment) -> None:
        self.service = service
        self._environment = environment
        self._fetches: dict[Connection, Send] = {}

    def opened(self, connection: Connection) -> None:
        """Do nothing: a connection without requests has no state."""

    def received(self, connection: Connection, message: Send) -> None:
        """Answer now, or keep a fetch until there is data for it.

        The next request replaces a kept fetch: its client no longer waits for it.
        """
        if self._fetches.pop(connection, None) is not None:
            connection.answering = None
        if connection.answering is not None:
            connection.waiting.append(message)
            return
        self._answer(connection, message)
        self._wake_fetches()

    def closed(self, connection: Connection) -> None:
        """Forget the waiting requests of a closed connection."""
        connection.waiting.clear()
        self._fetches.pop(connection, None)

    def compact_every(self, topics: tuple[str, ...], every_us: int) -> None:
        """Compact these topics periodically, as far as they exist by then."""
        at_us = self._environment.now_us + every_us
        self._environment.call_at(at_us, partial(self._compact, topics, every_us))

    def _compact(self, topics: tuple[str, ...], every_us: int) -> None:
        for topic in topics:
            self.service.compact(topic)
        self.compact_every(topics, every_us)

    def _answer(self, connection: Connection, message: Send) -> None:
        # Data messages travel as the network's; the service knows their types.
        request = cast("DataRequest", message.request)
        now_ms = self._environment.now_us // _US_PER_MS
        response = self.service.handle(connection.broker_id, request, now_ms)
        if response is None:
            connection.answering = message
            self._fetches[connection] = message
            return
        connection.answering = None
        if connection.is_server_open:
            connection.respond((message.correlation_id, cast("Response", response)))
        if connection.waiting:
            self.received(connection, connection.waiting.pop(0))

    def _wake_fetches(self) -> None:
        """Retry the fetches of partitions that were appended to."""
        touched = self.service.touched
        if not touched:
            return
        places = dict.fromkeys(touched)
        touched.clear()
        for connection, message in list(self._fetches.items()):
            fetch = cast("FetchRequest", message.request)
            if not connection.is_server_open:
                del self._fetches[connection]
            elif any(p.topic == fetch.topic and p.partition in fetch.positions for p in places):
                del self._fetches[connection]
                self._answer(connection, message)
