from coordinator_sim.clients.effects import Send
from coordinator_sim.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.network import Connection, Network, ResponseMessage
from coordinator_sim.sim.scenario import Choices, ConstantLatency, TableLatency, UniformLatency
from coordinator_sim.sim.scenario.world import LatencyLaw

LATENCY_US = 100
BEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
OK = HeartbeatResponse()


class Client:
    """Notes what its connections tell it, with the instant."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.seen: list[tuple[int, str]] = []

    def note(self, what: str) -> None:
        """Note it with the instant."""
        self.seen.append((self.environment.now_us, what))

    def connected(self, _connection: Connection) -> None:
        """The connection is open."""
        self.note("connected")

    def disconnected(self, _connection: Connection) -> None:
        """The connection is gone."""
        self.note("disconnected")

    def received(self, _connection: Connection, message: ResponseMessage) -> None:
        """A response arrived."""
        self.note(f"response {message[0]}")


class Server:
    """Notes requests and answers each at once."""

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.seen: list[tuple[int, str]] = []

    def opened(self, _connection: Connection) -> None:
        """A client connected."""
        self.seen.append((self.environment.now_us, "opened"))

    def received(self, connection: Connection, message: Send) -> None:
        """A request arrived."""
        self.seen.append((self.environment.now_us, f"request {message.correlation_id}"))
        connection.respond((message.correlation_id, OK))

    def closed(self, _connection: Connection) -> None:
        """A client is gone."""
        self.seen.append((self.environment.now_us, "closed"))


class Wire:
    """One client and one server on a network, connected at 200 us."""

    def __init__(self, law: LatencyLaw | None = None, *, seed: int = 0) -> None:
        self.environment = Environment()
        self.choices = Choices(seed)
        self.network = Network(self.environment, law or ConstantLatency(LATENCY_US), self.choices)
        self.client = Client(self.environment)
        self.server = Server(self.environment)
        self.network.attach(1, self.server)
        self.connection = self.network.connect("a", 1, self.client)

    def run_until(self, end_us: int) -> None:
        """Let the wire run."""
        self.environment.run_until(end_us)

    def request(self, correlation_id: int) -> None:
        """Send a heartbeat."""
        self.connection.request(Send(1, correlation_id, BEAT))


def test_a_round_trip_takes_two_latencies() -> None:
    """Connecting and asking each take one latency there and one back."""
    wire = Wire()
    wire.run_until(200)
    wire.request(7)
    wire.run_until(1_000)

    assert wire.server.seen == [(100, "opened"), (300, "request 7")]
    assert wire.client.seen == [(200, "connected"), (400, "response 7")]


def test_constant_latency_draws_no_choice() -> None:
    """The dull network leaves the tape empty."""
    wire = Wire()
    wire.run_until(200)
    wire.request(7)
    wire.run_until(1_000)

    assert wire.choices.tape == []


def test_a_connection_stays_first_in_first_out() -> None:
    """However latencies are drawn, nothing overtakes on one connection."""
    wire = Wire(UniformLatency(1, 10_000), seed=3)
    wire.run_until(20_000)
    for correlation_id in range(20):
        wire.request(correlation_id)
    wire.run_until(100_000)

    answers = [what for _, what in wire.client.seen if what.startswith("response")]
    assert answers == [f"response {number}" for number in range(20)]


def test_the_dullest_choice_is_the_smallest_latency() -> None:
    """A tape of zeros gives the first quantile of a table."""
    wire = Wire(TableLatency((50, 900)))
    tape = [
        type(choice)(choice.site, choice.key, choice.use, choice.options, 0)
        for choice in wire.choices.tape
    ]
    dull = Network(Environment(), TableLatency((50, 900)), Choices(0, tape))

    assert dull.latency_us("a", "a>1") == 50


def test_a_stalled_broker_accepts_and_serves_no_records() -> None:
    """Its kernel takes the connection; consumers count it among those out of reach."""
    wire = Wire()
    wire.network.stall(1)
    wire.run_until(200)
    assert wire.client.seen == [(200, "connected")]
    assert not wire.network.reaches("a", 1)
    assert not wire.network.is_whole
    wire.network.go_on(1)

    assert wire.network.reaches("a", 1)
    assert wire.network.is_whole


def test_a_dead_broker_refuses_connections() -> None:
    """An attempt to connect to a broker that is not there ends after a round trip."""
    wire = Wire()
    wire.network.detach(1)
    wire.run_until(1_000)

    assert wire.client.seen == [(200, "disconnected")]


def test_a_crashed_broker_closes_its_connections() -> None:
    """The client learns of it one latency later; what it sent meanwhile is lost."""
    wire = Wire()
    wire.run_until(200)
    wire.request(7)
    wire.network.detach(1)
    wire.run_until(1_000)

    assert wire.client.seen == [(200, "connected"), (300, "disconnected")]


def test_what_was_sent_before_a_close_still_arrives() -> None:
    """A LeaveGroup sent by a client that then closes reaches the broker."""
    wire = Wire()
    wire.run_until(200)
    wire.request(7)
    wire.connection.close()
    wire.run_until(1_000)

    assert wire.server.seen == [(100, "opened"), (300, "request 7"), (300, "closed")]
    assert wire.client.seen == [(200, "connected")]


def test_a_cut_loses_messages_silently_until_it_heals() -> None:
    """A cut tells neither end; when it heals, the connection that lost bytes is reset."""
    wire = Wire()
    wire.run_until(200)
    wire.network.cut("a", None)
    wire.request(7)
    wire.run_until(5_000)
    assert wire.client.seen == [(200, "connected")]

    wire.network.heal("a", None)
    wire.run_until(10_000)

    assert wire.client.seen == [(200, "connected"), (5_100, "disconnected")]
    assert wire.server.seen == [(100, "opened"), (5_000, "closed")]


def test_a_connection_that_lost_nothing_survives_a_cut() -> None:
    """A cut that nobody noticed changes nothing."""
    wire = Wire()
    wire.run_until(200)
    wire.network.cut(None, 1)
    wire.run_until(1_000)
    wire.network.heal(None, 1)
    wire.request(7)
    wire.run_until(2_000)

    assert wire.client.seen[-1] == (1_200, "response 7")


def test_two_cuts_of_one_link_both_have_to_heal() -> None:
    """A member and a broker cut off separately stay apart until both are back."""
    wire = Wire()
    wire.run_until(200)
    wire.network.cut("a", None)
    wire.network.cut(None, 1)
    wire.network.heal("a", None)

    assert wire.connection.is_cut
    wire.network.heal(None, 1)
    assert not wire.connection.is_cut


def test_an_attempt_to_connect_across_a_cut_waits_for_the_heal() -> None:
    """A connection attempt across a cut is not refused, and succeeds when the link is back."""
    wire = Wire()
    wire.run_until(200)
    wire.network.cut("b", 1)
    other = Client(wire.environment)
    wire.network.connect("b", 1, other)
    wire.run_until(5_000)
    wire.network.heal("b", 1)
    wire.run_until(10_000)

    assert other.seen == [(5_200, "connected")]


def test_every_member_has_its_own_address() -> None:
    """Addresses are given in order of arrival and kept."""
    network = Wire().network

    assert network.host_of("a") == "/10.0.0.1"
    assert network.host_of("b") == "/10.0.0.2"
    assert network.host_of("a") == "/10.0.0.1"
