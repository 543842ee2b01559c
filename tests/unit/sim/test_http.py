"""HTTP over the simulated network: what it costs, and how dead, silent and cut off ends show."""

import pytest

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.http import BROKEN, REFUSED, TIMED_OUT, HttpNetwork
from coordinator_sim.sim.network import Network
from coordinator_sim.sim.scenario.choices import Choices
from coordinator_sim.sim.scenario.world import ConstantLatency

URL = "http://w1:8083"
GET = HttpRequest(method="GET", target="/")
OK = HttpResponse(status=200)


class Server:
    """Takes requests in, and answers those it is told to."""

    def __init__(self, http: HttpNetwork, *, answers: bool = True) -> None:
        self.http = http
        self.answers = answers
        self.arrived: list[tuple[int, HttpRequest]] = []

    def request_arrived(self, exchange: int, request: HttpRequest) -> None:
        """Keep it, and answer it perhaps."""
        self.arrived.append((exchange, request))
        if self.answers:
            self.http.answer(exchange, OK)


class Wires:
    """A network with a latency of 100 us, and what callers heard."""

    def __init__(self) -> None:
        self.environment = Environment()
        choices = Choices(0)
        self.network = Network(self.environment, ConstantLatency(us=100), choices)
        self.http = HttpNetwork(self.environment, self.network)
        self.heard: list[tuple[int, HttpResponse | None, str | None]] = []

    def call(self, caller: str = "w2") -> None:
        """Send a request to w1."""
        self.http.call(caller, URL, GET, self._hear)

    def run(self, until_us: int) -> None:
        """Let time pass."""
        self.environment.run_until(until_us)

    def _hear(self, response: HttpResponse | None, error: str | None) -> None:
        self.heard.append((self.environment.now_us, response, error))


@pytest.fixture
def wires() -> Wires:
    """A fresh network."""
    return Wires()


def test_a_call_takes_two_round_trips(wires: Wires) -> None:
    """One to connect, one for request and answer; the host is named in the request."""
    server = Server(wires.http)
    wires.http.listen(URL + "/", "w1", server)
    wires.call()
    wires.run(1_000)
    assert wires.heard == [(400, OK, None)]
    assert server.arrived[0][1].headers == {"host": "w1:8083"}


def test_where_nobody_listens_the_connection_is_refused(wires: Wires) -> None:
    """After one round trip, whether the process is dead or not up yet."""
    wires.call()
    wires.run(1_000)
    assert wires.heard == [(200, None, REFUSED)]


def test_a_server_that_stops_listening_still_answers(wires: Wires) -> None:
    """What has come in is answered, what comes later is refused."""
    server = Server(wires.http, answers=False)
    wires.http.listen(URL, "w1", server)
    wires.call()
    wires.run(300)
    wires.http.stop_listening(URL)
    wires.call()
    wires.http.answer(server.arrived[0][0], OK)
    wires.run(1_000)
    assert wires.heard == [(400, OK, None), (500, None, REFUSED)]


def test_the_death_of_a_server_breaks_its_connections(wires: Wires) -> None:
    """The caller hears of it one latency later, and of a late answer nothing."""
    server = Server(wires.http, answers=False)
    wires.http.listen(URL, "w1", server)
    wires.call()
    wires.run(1_000)
    wires.http.gone(URL)
    wires.http.answer(server.arrived[0][0], OK)
    wires.run(2_000)
    assert wires.heard == [(1_100, None, BROKEN)]


def test_a_request_on_its_way_to_a_dying_server_breaks(wires: Wires) -> None:
    """The connection was open; nobody takes the request in."""
    server = Server(wires.http)
    wires.http.listen(URL, "w1", server)
    wires.call()
    wires.run(250)
    wires.http.gone(URL)
    wires.run(1_000)
    assert wires.heard == [(400, None, BROKEN)]
    assert server.arrived == []


@pytest.mark.parametrize("end", ["w1", "w2"])
def test_a_connection_to_or_from_a_cut_off_end_is_given_up(wires: Wires, end: str) -> None:
    """After the 15 seconds of the client."""
    wires.http.listen(URL, "w1", Server(wires.http))
    wires.network.cut(end, None)
    wires.call()
    wires.run(20_000_000)
    assert wires.heard == [(15_000_000, None, TIMED_OUT)]


def test_a_cut_holds_up_what_is_under_way(wires: Wires) -> None:
    """The answer arrives when the cut is over."""
    server = Server(wires.http, answers=False)
    wires.http.listen(URL, "w1", server)
    wires.call()
    wires.run(1_000)
    wires.network.cut("w1", None)
    wires.http.answer(server.arrived[0][0], OK)
    wires.run(1_000_000)
    assert wires.heard == []
    wires.network.heal("w1", None)
    wires.run(2_000_000)
    ((at_us, response, error),) = wires.heard
    assert 1_000_000 < at_us <= 1_300_000
    assert (response, error) == (OK, None)


def test_a_cut_from_one_broker_leaves_workers_alone(wires: Wires) -> None:
    """Only an end that is cut off from everybody has no HTTP."""
    wires.http.listen(URL, "w1", Server(wires.http))
    wires.network.cut("w1", 2)
    wires.call()
    wires.run(1_000)
    assert wires.heard == [(400, OK, None)]
