"""HTTP between workers, and from their operator, over the simulated network.

A call opens a connection of its own, as Connect's client does: one round trip to connect, one for
the request and its answer. Effects of faults:

- Address without a listener: the connection is refused after one round trip.
- Death of the server: its open connections break; the caller learns of it one latency later.
- Cut at either end: the attempt to connect is given up after 15 seconds; a message on an open
  connection waits for the end of the cut, as TCP sends it again.

This module knows no resource, and no timeout except that of connecting: the caller limits the time
it waits for an answer.
"""

from collections.abc import Callable
from functools import partial
from typing import Final, Protocol
from urllib.parse import urlsplit

from coordinator_sim.clock import Action
from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.network import Network

CONNECT_TIMEOUT_US: Final = 15_000_000
"""Jetty's HttpClient gives up connecting after 15 s."""
REFUSED: Final = "java.net.ConnectException: Connection refused"
TIMED_OUT: Final = "java.net.SocketTimeoutException: Connect Timeout"
BROKEN: Final = "java.io.EOFException: HttpConnectionOverHTTP input shutdown prematurely"
_RETRY_US: Final = 200_000
"""Wait until a message that met a cut is sent again."""

Answered = Callable[[HttpResponse | None, str | None], None]
"""Takes the answer, or else the name and message of the exception."""


class HttpServer(Protocol):
    """A process that accepts requests."""

    def request_arrived(self, exchange: int, request: HttpRequest) -> None:
        """Answer the request later, by `HttpNetwork.answer`."""
        ...


class _Exchange:
    """One call in progress.

    Args:
        caller: Name of the calling end, for latencies and faults.
        member: Name of the called end.
        address: Host and port.
        answered: Takes the outcome.
    """

    __slots__ = ("address", "answered", "caller", "is_over", "member")

    def __init__(self, caller: str, member: str, address: str, answered: Answered) -> None:
        self.caller = caller
        self.member = member
        self.address = address
        self.answered = answered
        self.is_over = False

    def end(self, response: HttpResponse | None, error: str | None) -> None:
        """Report the outcome to the caller, once."""
        if not self.is_over:
            self.is_over = True
            self.answered(response, error)


class HttpNetwork:
    """All HTTP of one run.

    Args:
        environment: The clock.
        network: The network, for latencies and cuts.
    """

    def __init__(self, environment: Environment, network: Network) -> None:
        self._environment = environment
        self._network = network
        self._servers: dict[str, HttpServer] = {}
        self._members: dict[str, str] = {}
        self._exchanges: dict[int, _Exchange] = {}
        self._next = 1

    # Servers.

    def listen(self, url: str, member: str, server: HttpServer) -> None:
        """Accept requests to this URL from now on.

        Args:
            url: `http://host:port`, with or without a path.
            member: Name of the process, for latencies and faults.
            server: Process that receives the requests.
        """
        address = urlsplit(url).netloc
        self._servers[address] = server
        self._members[address] = member

    def stop_listening(self, url: str) -> None:
        """Refuse connections from now on; accepted requests may still be answered."""
        self._servers.pop(urlsplit(url).netloc, None)

    def gone(self, url: str) -> None:
        """Refuse connections to a dead process, and break those that are open."""
        self.stop_listening(url)
        address = urlsplit(url).netloc
        for number, exchange in list(self._exchanges.items()):
            if exchange.address == address:
                del self._exchanges[number]
                self._back(exchange, partial(exchange.end, None, BROKEN))

    def answer(self, number: int, response: HttpResponse) -> None:
        """Answer a request that arrived under this number; ignored when it is over."""
        exchange = self._exchanges.pop(number, None)
        if exchange is not None:
            self._back(exchange, partial(exchange.end, response, None))

    # Callers.

    def call(self, caller: str, url: str, request: HttpRequest, answered: Answered) -> None:
        """Send a request.

        Args:
            caller: Name of the calling end; of a process, its member's name.
            url: `http://host:port`, without the path.
            request: The request with its path.
            answered: Called once.
        """
        address = urlsplit(url).netloc
        member = self._members.get(address, address)
        exchange = _Exchange(caller, member, address, answered)
        give_up_us = self._environment.now_us + CONNECT_TIMEOUT_US
        connect = partial(self._connect, exchange, request)
        self._later(exchange, (caller, member), connect, give_up_us)

    def _connect(self, exchange: _Exchange, request: HttpRequest) -> None:
        if exchange.address not in self._servers:
            self._back(exchange, partial(exchange.end, None, REFUSED))
        else:
            self._back(exchange, partial(self._send, exchange, request))

    def _send(self, exchange: _Exchange, request: HttpRequest) -> None:
        ends = (exchange.caller, exchange.member)
        self._later(exchange, ends, partial(self._arrive, exchange, request))

    def _arrive(self, exchange: _Exchange, request: HttpRequest) -> None:
        server = self._servers.get(exchange.address)
        if server is None:
            self._back(exchange, partial(exchange.end, None, BROKEN))
            return
        number = self._next
        self._next += 1
        self._exchanges[number] = exchange
        headers = {"host": exchange.address, **request.headers}
        server.request_arrived(
            number,
            HttpRequest(
                method=request.method, target=request.target, headers=headers, body=request.body
            ),
        )

    def _back(self, exchange: _Exchange, action: Action) -> None:
        self._later(exchange, (exchange.member, exchange.caller), action)

    def _later(
        self,
        exchange: _Exchange,
        ends: tuple[str, str],
        action: Action,
        give_up_us: int | None = None,
    ) -> None:
        """Run an action one latency later, or once the ends are no longer cut off."""
        now_us = self._environment.now_us
        is_cut = any(self._network.is_cut_off(end) for end in (exchange.caller, exchange.member))
        if not is_cut:
            sender, receiver = ends
            latency_us = self._network.latency_us(sender, f"{sender}>{receiver}")
            self._environment.call_at(now_us + latency_us, action)
        elif give_up_us is not None and now_us >= give_up_us:
            exchange.end(None, TIMED_OUT)
        else:
            again = partial(self._later, exchange, ends, action, give_up_us)
            self._environment.call_at(now_us + _RETRY_US, again)
