"""The network: connections between members and brokers, their latency and their faults.

A connection is first in, first out in both directions. Requests travel as the `Send` effects of the
ports. Effects of faults:

- Cut: messages sent while a link is cut are lost silently; those already under way arrive. When
  the cut heals, every connection that lost something is reset: both ends see it closed one
  latency later, as TCP cannot skip bytes. A connection that lost nothing lives on. Attempts to
  connect wait for the heal, unless the client gives up earlier.
- Stalled broker: it accepts connections, and answers when it goes on.
- Dead broker: its connections close one latency later, and attempts to connect are refused.
- Closing end: what was sent before the close still arrives, then the other end sees the close.
- Lost response: the connection stays, and the client waits until its request times out.
- Delayed response: it arrives later by the given time, and so does everything behind it.
- Degraded end: what it sends is late, each message by a time of its own; `degradation`.
- Doubled or overtaken response: it arrives twice, or behind the next one of its connection.

Latency laws as functions of choices, in integers.

Choice 0 is the smallest latency of a law.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol, assert_never

from msgspec import Struct

from coordinator_sim.clients.effects import Send
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.requests import Response
from coordinator_sim.sim.degradation import Degradations, End
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.scenario.choices import Choices
from coordinator_sim.sim.scenario.quantiles import drawer
from coordinator_sim.sim.scenario.world import (
    ConstantLatency,
    LatencyLaw,
    TableLatency,
    UniformLatency,
)

DrawLatency = Callable[[], int]
"""Returns the one-way latency in microseconds of the next message in a direction."""


def latency_drawer(law: LatencyLaw, choices: Choices, direction: str) -> DrawLatency:
    """Return a function that draws latencies of the law for a direction; constant draws nothing."""
    match law:
        case ConstantLatency(us=us):
            return lambda: us
        case UniformLatency(low_us=low_us, high_us=high_us):
            choose = choices.drawer("latency", direction, high_us - low_us + 1)
            return lambda: low_us + choose()
        case TableLatency(quantiles_us=quantiles):
            return drawer(quantiles, choices, "latency", direction)
        case _:
            assert_never(law)


ResponseMessage = tuple[int, Response]
"""A response in transit: the correlation id of its request, and the response."""


class _Signal(Struct, frozen=True, gc=False):
    """A message of the connection itself."""

    name: str


_OPEN: Final = _Signal("open")
_CLOSE: Final = _Signal("close")


class ClientEnd(Protocol):
    """The member's side of a connection."""

    def connected(self, connection: "Connection") -> None:
        """Handle the broker's accepting the connection."""
        ...

    def disconnected(self, connection: "Connection") -> None:
        """Handle a connection that is gone, or was refused."""
        ...

    def received(self, connection: "Connection", message: ResponseMessage) -> None:
        """Handle a response."""
        ...


class ServerEnd(Protocol):
    """The broker's side of its connections."""

    def opened(self, connection: "Connection") -> None:
        """Handle a connection that the broker accepted."""
        ...

    def received(self, connection: "Connection", message: Send) -> None:
        """Handle a request."""
        ...

    def closed(self, connection: "Connection") -> None:
        """Handle a connection that the client closed, or that was reset."""
        ...


class Connection:
    """One connection from a member to a broker; made by `Network.connect`.

    Args:
        network: The network it belongs to.
        member: Name of the member, for faults.
        broker_id: The broker it leads to.
        client: The member's side.
        host: Member on whose machine the client runs, and with which it is cut off; None where it
            is the member.
    """

    __slots__ = (
        "_call_at",
        "_clear_at_client_us",
        "_clear_at_server_us",
        "_clock",
        "_constant_down_us",
        "_constant_up_us",
        "_down",
        "_draw_down_us",
        "_draw_up_us",
        "_network",
        "_up",
        "answering",
        "api_versions",
        "broker_id",
        "client",
        "client_host",
        "host",
        "is_client_open",
        "is_cut",
        "is_lossy",
        "is_server_open",
        "member",
        "node_id",
        "open_requests",
        "server",
        "waiting",
    )

    def __init__(
        self,
        network: "Network",
        member: str,
        *,
        broker_id: int,
        client: ClientEnd,
        host: str | None = None,
    ) -> None:
        self._network = network
        self._clock = network.environment
        self._call_at = network.environment.call_at
        # Short lists, not deques: a thousand idle connections share the CPU's cache.
        self._up: list[Send | _Signal] = []
        self._down: list[ResponseMessage | _Signal] = []
        self._clear_at_server_us = 0
        self._clear_at_client_us = 0
        self.member = member
        self.broker_id = broker_id
        self.client = client
        self.server: ServerEnd | None = None
        self.node_id = broker_id
        """Node id of the broker's end, as the client knows it."""
        self.open_requests: list[int] = []
        """For the client: correlation ids in the order in which it expects answers."""
        self.host = host = member if host is None else host
        self.client_host = network.host_of(host)
        self.api_versions: Mapping[ApiKey, int] = {}
        """API versions of the client where they are not a broker's newest."""
        self.is_client_open = True
        self.is_server_open = False
        self.renew_latencies()
        self.is_cut = network.is_cut(host, broker_id)
        self.is_lossy = False
        self.answering: Send | None = None
        """For the broker: the request being answered; nothing more is read meanwhile."""
        self.waiting: list[Send] = []
        """For the broker: requests that arrived meanwhile. Bounded by clients' open requests."""

    def renew_latencies(self) -> None:
        """Send from now on as late as the network's laws and degradations want it."""
        network, degradations = self._network, self._network.degradations
        up, down = f"{self.member}>{self.broker_id}", f"{self.broker_id}>{self.member}"
        self._draw_up_us = network.drawer(self.host, up)
        self._draw_down_us = network.drawer(self.broker_id, down)
        constant_us = network.constant_us
        self._constant_up_us = None if degradations.is_late(self.host) else constant_us
        self._constant_down_us = None if degradations.is_late(self.broker_id) else constant_us

    @property
    def is_quiet(self) -> bool:
        """Whether it is open and nothing is on its way, held back or unanswered."""
        return (
            self.is_client_open
            and self.is_server_open
            and not (self.is_cut or self.is_lossy)
            and not (self._up or self._down or self.waiting or self.open_requests)
            and self.answering is None
            and self._clear_at_client_us <= self._clock.now_us
        )

    def open(self) -> None:
        """Ask the broker to accept."""
        self.request(_OPEN)

    def request(self, message: Send | _Signal) -> None:
        """Send a request."""
        if self.is_cut:
            self.is_lossy = True
            return
        latency_us = self._constant_up_us
        at_us = self._clock.now_us + (self._draw_up_us() if latency_us is None else latency_us)
        if at_us < self._clear_at_server_us:  # noqa: PLR1730 - hot, max() is a call
            at_us = self._clear_at_server_us
        self._clear_at_server_us = at_us
        self._up.append(message)
        self._call_at(at_us, self._deliver_to_server)

    def respond(self, message: ResponseMessage | _Signal) -> None:
        """Send a response; lost when the other end is gone."""
        if self.is_cut:
            self.is_lossy = True
            return
        latency_us = self._constant_down_us
        at_us = self._clock.now_us + (self._draw_down_us() if latency_us is None else latency_us)
        if at_us < self._clear_at_client_us:  # noqa: PLR1730 - hot, max() is a call
            at_us = self._clear_at_client_us
        self._clear_at_client_us = at_us
        self._down.append(message)
        self._call_at(at_us, self._deliver_to_client)

    def hold_back(self, for_us: int) -> None:
        """Delay everything sent from now on: it arrives at the member after the given time."""
        at_us = self._clock.now_us + for_us
        self._clear_at_client_us = max(self._clear_at_client_us, at_us)

    def close(self) -> None:
        """Close the member's end; what it sent before still arrives."""
        if self.is_client_open:
            self.is_client_open = False
            self.request(_CLOSE)
            self._network.forget(self)

    def close_by_server(self) -> None:
        """Close the broker's end; what it sent before still arrives."""
        if self.is_server_open:
            self.is_server_open = False
            self.respond(_CLOSE)

    def reset(self) -> None:
        """Drop the connection at both ends, at the client's end one latency later."""
        self.is_lossy = False
        if self.is_server_open:
            self.is_server_open = False
            if self.server is not None:
                self.server.closed(self)
        self.respond(_CLOSE)

    def _deliver_to_server(self) -> None:
        message = self._up.pop(0)
        if type(message) is Send:
            if self.is_server_open and self.server is not None:
                self.server.received(self, message)
        elif message is _OPEN:
            self._accept()
        elif self.is_server_open:
            self.is_server_open = False
            if self.server is not None:
                self.server.closed(self)

    def _accept(self) -> None:
        self.server = server = self._network.server_of(self.broker_id)
        self.is_server_open = server is not None
        if server is None:
            self.respond(_CLOSE)
        else:
            server.opened(self)
            self.respond(_OPEN)

    def _deliver_to_client(self) -> None:
        message = self._down.pop(0)
        if not self.is_client_open:
            return
        if type(message) is tuple:
            self.client.received(self, message)
        elif message is _OPEN:
            self.client.connected(self)
        else:
            self.is_client_open = False
            self._network.forget(self)
            self.client.disconnected(self)


class Network:
    """All connections of a run, and their faults.

    Args:
        environment: The clock.
        law: One-way latency of every message.
        choices: Source of drawn latencies; a constant law draws none.
    """

    def __init__(self, environment: Environment, law: LatencyLaw, choices: Choices) -> None:
        self.environment = environment
        self.constant_us = law.us if isinstance(law, ConstantLatency) else None
        self._law = law
        self._choices = choices
        self.degradations = Degradations(choices)
        """Ends that send late; changed by `degrade` and `restore` alone."""
        self._servers: dict[int, ServerEnd] = {}
        self._connections: dict[Connection, None] = {}
        self._dead_count = 0
        self._stalled: dict[int, None] = {}
        self._cuts: list[tuple[str | None, int | None]] = []
        self._hosts: dict[str, str] = {}

    def attach(self, broker_id: int, server: ServerEnd) -> None:
        """Let a broker accept connections, also again after `detach`."""
        self._servers[broker_id] = server
        self._dead_count = max(0, self._dead_count - 1)

    def detach(self, broker_id: int) -> None:
        """Remove a dead broker: its connections close, and new ones are refused."""
        if self._servers.pop(broker_id, None) is not None:
            self._dead_count += 1
        self._stalled.pop(broker_id, None)
        for connection in list(self._connections):
            if connection.broker_id == broker_id:
                connection.close_by_server()

    def stall(self, broker_id: int) -> None:
        """Know that a broker's process stands still: its kernel takes what comes, and no more."""
        self._stalled[broker_id] = None

    def go_on(self, broker_id: int) -> None:
        """End what `stall` began."""
        self._stalled.pop(broker_id, None)

    def connect(
        self,
        member: str,
        broker_id: int,
        client: ClientEnd,
        *,
        host: str | None = None,
    ) -> Connection:
        """Start to open a connection; the client's end is told the outcome.

        See `Connection` for `host`.
        """
        connection = Connection(self, member, broker_id=broker_id, client=client, host=host)
        self._connections[connection] = None
        connection.open()
        return connection

    def cut(self, member: str | None, broker_id: int | None) -> None:
        """Cut a member off, a broker off, or the link between the two."""
        self._cuts.append((member, broker_id))
        self._renew_cuts()

    def heal(self, member: str | None, broker_id: int | None) -> None:
        """End one such cut; connections that lost messages and are free of cuts are reset."""
        self._cuts.remove((member, broker_id))
        self._renew_cuts()

    def is_cut(self, member: str, broker_id: int) -> bool:
        """Whether messages between the two are lost at present."""
        return any(
            cut_member in (None, member) and cut_broker in (None, broker_id)
            for cut_member, cut_broker in self._cuts
        )

    def latency_us(self, sender: End, direction: str) -> int:
        """Draw the latency of the next message of a sender in a direction."""
        return self.drawer(sender, direction)()

    def drawer(self, sender: End, direction: str) -> DrawLatency:
        """Return what draws a sender's latencies in a direction, until a degradation changes."""
        draw_us = latency_drawer(self._law, self._choices, direction)
        if not self.degradations.is_late(sender):
            return draw_us
        return lambda: draw_us() + self.degradations.delay_us(sender, direction)

    def degrade(self, end: End, latency_ms: int) -> None:
        """Delay everything that a member's machine or a broker sends from now on."""
        self.degradations.begin(end, latency_ms)
        self._renew_latencies(end)

    def restore(self, end: End, latency_ms: int) -> None:
        """End one degradation; what was sent before arrives before what is sent from now on."""
        self.degradations.finish(end, latency_ms)
        self._renew_latencies(end)

    @property
    def is_whole(self) -> bool:
        """Whether every broker lives and goes on, and no member is cut off from any."""
        return not self._cuts and not self._dead_count and not self._stalled

    @property
    def is_exact(self) -> bool:
        """Whether it is whole, and every message takes the same time and arrives once."""
        is_constant = self.constant_us is not None and not self.degradations.is_on
        return is_constant and self.is_whole

    def reaches(self, member: str, broker_id: int) -> bool:
        """Whether the broker lives and goes on, and messages between the two arrive at present."""
        is_going = broker_id in self._servers and broker_id not in self._stalled
        return is_going and not self.is_cut(member, broker_id)

    def is_cut_off(self, member: str) -> bool:
        """Whether a member is cut off from all brokers, not only from single ones."""
        return (member, None) in self._cuts

    def server_of(self, broker_id: int) -> ServerEnd | None:
        """Return the broker's side, or None when it is dead."""
        return self._servers.get(broker_id)

    def host_of(self, member: str) -> str:
        """Return the member's address as Java prints it; numbered in order of arrival."""
        host = self._hosts.get(member)
        if host is None:
            number = len(self._hosts) + 1
            host = f"/10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
            self._hosts[member] = host
        return host

    def forget(self, connection: Connection) -> None:
        """Drop a connection that its client no longer has."""
        self._connections.pop(connection, None)

    def _renew_latencies(self, end: End) -> None:
        for connection in self._connections:
            if end in (connection.host, connection.broker_id):
                connection.renew_latencies()

    def _renew_cuts(self) -> None:
        for connection in list(self._connections):
            was_cut = connection.is_cut
            connection.is_cut = self.is_cut(connection.host, connection.broker_id)
            if was_cut and not connection.is_cut and connection.is_lossy:
                self._recover(connection)

    def _recover(self, connection: Connection) -> None:
        if connection.server is None and not connection.is_server_open:
            connection.is_lossy = False
            connection.open()
        else:
            connection.reset()
