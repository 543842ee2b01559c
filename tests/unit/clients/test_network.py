"""Connections, timeouts and the choice of a node, without any group."""

from coordinator_sim.clients import network
from coordinator_sim.clients.backoff import NO_JITTER
from coordinator_sim.clients.config import GroupConfig
from coordinator_sim.clients.effects import Connect, Disconnect, Effect, Send
from coordinator_sim.clients.generation import NO_GENERATION
from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

NODES = tuple(Node(node_id=n, host="h", port=9092) for n in (1, 2, 3))


class Rig:
    """A network client and what it asked for."""

    def __init__(self) -> None:
        self.out: list[Effect] = []
        self.net = network.NetworkClient(
            GroupConfig(), client_id="c", jitter=NO_JITTER, out=self.out
        )

    def send(self, node_id: int, now_ms: int, timeout_ms: int = 30_000) -> network.PendingRequest:
        """Send a request to a node."""
        pending = network.PendingRequest(
            network.RequestKind.METADATA,
            node_id,
            MetadataRequest(),
            generation=NO_GENERATION,
            future=network.Future(),
        )
        self.net.send(pending, timeout_ms, now_ms)
        return pending

    def take_out(self) -> list[Effect]:
        """The effects since the last look."""
        taken = list(self.out)
        self.out.clear()
        return taken


def test_requests_wait_for_their_connection() -> None:
    """The first request connects; all go out in order when the connection is open."""
    rig = Rig()
    first, second = rig.send(1, 0), rig.send(1, 0)
    assert rig.take_out() == [Connect(1)]

    rig.net.on_connected(1)

    sent = rig.take_out()
    assert [s.correlation_id for s in sent if isinstance(s, Send)] == [0, 1]
    assert rig.net.take(0) is first
    assert rig.net.take(0) is None
    assert rig.net.take(1) is second
    assert rig.net.is_idle()


def test_overdue_request_closes_its_connection() -> None:
    """A request timeout fails everything on that connection, and nothing elsewhere."""
    rig = Rig()
    for node_id in (1, 2):
        rig.send(node_id, 0)
        rig.net.on_connected(node_id)
    late = rig.send(1, 20_000)
    rig.take_out()

    assert rig.net.deadline_ms == 30_000
    assert rig.net.take(1) is not None
    rig.net.expire(30_000)

    assert rig.take_out() == [Disconnect(1)]
    assert [(p is late, error) for p, error in rig.net.failed] == [
        (False, "DisconnectException"),
        (True, "DisconnectException"),
    ]
    assert rig.net.is_unavailable(1, 30_049)
    assert not rig.net.is_unavailable(1, 30_050)


def test_connection_that_does_not_come_up_is_given_up() -> None:
    """After socket.connection.setup.timeout.ms, doubled each time, requests fail."""
    rig = Rig()
    rig.send(1, 0)

    rig.net.expire(10_000)
    assert [error for _, error in rig.net.failed] == ["DisconnectException"]
    rig.send(1, 10_000)
    assert rig.net.deadline_ms == 10_050
    rig.net.expire(10_050)
    rig.take_out()

    assert rig.net.deadline_ms == 10_050 + 20_000


def test_unsent_request_expires_alone() -> None:
    """A request that never got a connection fails with a timeout."""
    rig = Rig()
    rig.send(1, 0)
    rig.net.on_disconnected(1, 0)
    rig.net.failed.clear()
    rig.send(1, 10, timeout_ms=20)

    rig.net.expire(30)

    assert [error for _, error in rig.net.failed] == ["TimeoutException"]


def test_late_news_of_a_closed_connection_is_ignored() -> None:
    """Connected or disconnected twice changes nothing."""
    rig = Rig()
    rig.net.on_connected(1)
    rig.net.on_disconnected(1, 0)
    rig.net.disconnect(1, 0)

    assert rig.take_out() == []
    assert rig.net.deadline_ms == network.FOREVER


def test_least_loaded_node_prefers_idle_then_connecting() -> None:
    """Open connections by requests in flight, then those coming up, then the untried."""
    rig = Rig()
    assert rig.net.least_loaded((), 0) is None
    assert rig.net.least_loaded(NODES, 0) == 1
    rig.send(2, 0)
    assert rig.net.least_loaded(NODES, 0) == 2
    rig.net.on_connected(2)
    rig.send(3, 0)
    rig.net.on_connected(3)
    rig.net.take(1)

    assert rig.net.least_loaded(NODES, 0) == 3


def test_no_node_while_all_wait_to_reconnect() -> None:
    """No node is chosen inside the reconnect backoff; after it the one tried longest ago is."""
    rig = Rig()
    for node_id in (1, 2, 3):
        rig.net.try_connect(node_id, 0)
        rig.net.on_disconnected(node_id, 0)
    assert rig.net.least_loaded(NODES, 10) is None
    assert rig.net.next_retry_at_ms() == 50
    rig.net.try_connect(1, 50)
    rig.net.on_disconnected(1, 50)

    assert rig.net.least_loaded(NODES, 200) == 2


def test_of_nodes_being_connected_the_last_is_taken() -> None:
    """In the order from the drawn offset on, as Kafka goes through them."""
    rig = Rig()
    for node_id in (1, 2):
        rig.net.try_connect(node_id, 5)

    assert rig.net.least_loaded(NODES, 5) == 2


def test_of_nodes_to_be_connected_the_one_tried_longest_ago_is_taken() -> None:
    """However often it failed; who was never tried comes before all others."""
    rig = Rig()
    for at_ms, node_id in ((1_000, 2), (5_000, 2), (20_000, 1)):
        rig.net.try_connect(node_id, at_ms)
        rig.net.on_disconnected(node_id, at_ms)

    assert rig.net.least_loaded(NODES[:2], 40_000) == 2
    assert rig.net.least_loaded(NODES, 40_000) == 3


def test_close_ends_everything() -> None:
    """Open connections are closed, and nothing is due any more."""
    rig = Rig()
    rig.send(1, 0)
    rig.net.on_connected(1)
    rig.send(2, 0)
    rig.take_out()

    rig.net.close()

    assert rig.take_out() == [Disconnect(1), Disconnect(2)]
    assert rig.net.deadline_ms == network.FOREVER
    assert not rig.net.has_pending(1)
    assert not rig.net.has_pending(2)


def test_heartbeat_request_goes_out_again_only_on_an_open_connection() -> None:
    """A request sent again keeps its object and gets a new correlation id."""
    rig = Rig()
    pending = rig.send(1, 0)
    assert rig.net.send_again(pending, 1_000) is None
    rig.net.on_connected(1)
    rig.net.take(0)

    send = rig.net.send_again(pending, 1_000)

    assert send == Send(1, 1, pending.request)
    assert rig.net.deadline_ms == 1_000
