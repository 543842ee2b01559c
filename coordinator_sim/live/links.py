"""The connections of one client, by its port's node ids.

A coordinator's connection is node `2147483647 - id`, apart from the same broker's other one.
Addresses come from the bootstrap and from every Metadata and FindCoordinator answer since.
"""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from coordinator_sim.clients.effects import COORDINATOR_NODE_OFFSET, Send
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.live.connection import BrokerConnection, FrameSeen, InFlight
from coordinator_sim.messages.find_coordinator import FindCoordinatorResponse
from coordinator_sim.messages.metadata import MetadataResponse
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from coordinator_sim.messages.requests import Response


class LinksOwner(Protocol):
    """Callbacks to the owner of the connections: the loop around a port."""

    def connected(self, node_id: int) -> None:
        """Handle an open connection with agreed versions."""
        ...

    def disconnected(self, node_id: int, reason: str) -> None:
        """Handle a connection that is gone or failed to open; `reason` is for people."""
        ...

    def received(self, sent: InFlight, response: Response) -> None:
        """Handle an answer."""
        ...

    def surprised(self, node_id: int) -> None:
        """Handle an answer that is not the one to the oldest request of its connection."""
        ...

    def seen(self, frame: FrameSeen) -> None:
        """Handle a frame that was sent or received."""
        ...


class Links:
    """The connections of one client.

    Args:
        bootstrap: Brokers to ask first.
        client_id: Client id in requests.
        owner: Receives the events of the connections.
    """

    def __init__(self, bootstrap: Iterable[Node], *, client_id: str, owner: LinksOwner) -> None:
        self._client_id = client_id
        self._owner = owner
        self._addresses = {node.node_id: (node.host, node.port) for node in bootstrap}
        self._open: dict[int, BrokerConnection] = {}
        self._opening: dict[int, asyncio.Task[None]] = {}
        self._opened_count = 0

    def address_of(self, node_id: int) -> tuple[str, int] | None:
        """Return the address of a node, as far as the client knows; None otherwise."""
        address = self._addresses.get(node_id)
        if address is None:
            address = self._addresses.get(COORDINATOR_NODE_OFFSET - node_id)
        return address

    def connect(self, node_id: int) -> None:
        """Open a connection; `connected` or `disconnected` follows, never at once."""
        connection = BrokerConnection(
            node_id, number=self._opened_count, client_id=self._client_id, listener=self
        )
        self._opened_count += 1
        self._open[node_id] = connection
        task = asyncio.get_running_loop().create_task(self._connect(connection))
        self._opening[node_id] = task
        task.add_done_callback(lambda done: self._forget(node_id, done))

    def disconnect(self, node_id: int) -> None:
        """Close a connection; no further event of it follows."""
        task = self._opening.pop(node_id, None)
        if task is not None:
            task.cancel()
        connection = self._open.pop(node_id, None)
        if connection is not None:
            connection.close()

    def send(self, effect: Send) -> None:
        """Send a request; dropped if its connection was just lost, as its failure follows.

        Raises:
            UnsupportedVersion: broker and client have no common version.
        """
        connection = self._open.get(effect.node_id)
        if connection is not None:
            connection.send(effect.correlation_id, effect.request)

    def close(self) -> None:
        """Close them all."""
        for node_id in tuple(self._open):
            self.disconnect(node_id)

    # ConnectionListener.

    def ready(self, connection: BrokerConnection) -> None:
        """Pass on that a connection is ready."""
        if self._open.get(connection.node_id) is connection:
            self._owner.connected(connection.node_id)

    def answered(self, connection: BrokerConnection, sent: InFlight, response: Response) -> None:
        """Learn addresses from the answer, and pass it on."""
        if self._open.get(connection.node_id) is connection:
            self._learn(response)
            self._owner.received(sent, response)

    def surprised(self, connection: BrokerConnection) -> None:
        """Pass on that an answer came out of its turn."""
        if self._open.get(connection.node_id) is connection:
            self._owner.surprised(connection.node_id)

    def lost(self, connection: BrokerConnection, reason: str) -> None:
        """Forget the connection and pass on that it is gone."""
        if self._open.get(connection.node_id) is connection:
            del self._open[connection.node_id]
            self._owner.disconnected(connection.node_id, reason)

    def seen(self, frame: FrameSeen) -> None:
        """Pass on a frame that was sent or received."""
        self._owner.seen(frame)

    async def _connect(self, connection: BrokerConnection) -> None:
        address = self.address_of(connection.node_id)
        if address is None:
            self.lost(connection, f"no address of node {connection.node_id} is known")
            return
        connection.address = address
        try:
            await asyncio.get_running_loop().create_connection(lambda: connection, *address)
        except OSError as error:
            self.lost(connection, error.strerror or str(error))

    def _forget(self, node_id: int, task: asyncio.Task[None]) -> None:
        if self._opening.get(node_id) is task:
            del self._opening[node_id]
        if not task.cancelled():
            task.result()  # an exception here is a bug, and must not be lost

    def _learn(self, response: Response) -> None:
        if isinstance(response, MetadataResponse):
            for node in response.brokers:
                self._addresses[node.node_id] = (node.host, node.port)
        elif isinstance(response, FindCoordinatorResponse):
            for found in response.coordinators:
                if found.error_code is ErrorCode.NONE:
                    self._addresses[found.node_id] = (found.host, found.port)
