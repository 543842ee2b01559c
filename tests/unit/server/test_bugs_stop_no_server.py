"""What a bug of the cluster leaves of a server: alarms, other connections, one line in the log."""

import asyncio
import logging

import pytest

from coordinator_sim.broker.connection import Connection
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.pending_answer import Output
from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.messages.codec.frames import encode_request
from coordinator_sim.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from coordinator_sim.server.kafka_server import PLAINTEXT, KafkaServer, Listen
from coordinator_sim.server.timekeeper import Timekeeper, VirtualClock, WallClock, steady_wall
from coordinator_sim.server.wire_protocol import WireProtocol

LIMIT_S = 10
PARKED_JOIN = encode_request(
    JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        member_id="",
        protocol_type="consumer",
        protocols=(JoinGroupRequestProtocol("range", b"x"),),
    ),
    3,
    correlation_id=0,
    client_id="test",
)
"""Waits for other members for the three seconds of a group's beginning."""
API_VERSIONS = b"\x00\x12\x00\x00\x00\x00\x00\x01\xff\xff"


class Broken:
    """A cluster whose first deadlines fail.

    Args:
        failures: How many of them.
    """

    def __init__(self, failures: int) -> None:
        self.left = failures
        self.is_met = asyncio.Event()

    def expire(self, _now: Instants) -> None:
        """Fail, or meet the deadline."""
        if self.left:
            self.left -= 1
            raise KeyError("a bug")
        self.is_met.set()

    def next_group_deadline_ms(self) -> int | None:
        """Overdue until it is met."""
        return None if self.is_met.is_set() else 0

    def exact_group_deadline_ms(self) -> int | None:
        """The same."""
        return self.next_group_deadline_ms()

    def next_wall_deadline_ms(self) -> int | None:
        """None."""
        return None


@pytest.mark.parametrize("is_automatic", [False, True])
def test_alarm_goes_on_after_deadlines_that_failed(
    caplog: pytest.LogCaptureFixture, *, is_automatic: bool
) -> None:
    """Deadlines are tried again, after a while and not in a busy loop; each failure is one line."""

    async def story() -> None:
        cluster = Broken(2)
        time = asyncio.get_running_loop().time
        clock = VirtualClock(steady_wall(time), auto=True) if is_automatic else WallClock(time)
        keeper = Timekeeper(cluster, clock)
        keeper.settled()
        async with asyncio.timeout(LIMIT_S):
            await cluster.is_met.wait()
        keeper.stop()

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    assert [record.exc_info for record in caplog.records] == [None, None]


class Wire(asyncio.Transport):
    """A socket that takes what it is given, and says when it is full.

    Args:
        is_slow: Whether the client does not read.
    """

    def __init__(self, *, is_slow: bool = False) -> None:
        super().__init__()
        self._is_slow = is_slow
        self.is_reading_paused = False
        self.answers = 0
        self.protocol: WireProtocol | None = None

    def write(self, _data: object) -> None:
        """One more answer."""
        self.answers += 1
        if self._is_slow and self.protocol is not None:
            self.protocol.pause_writing()

    def is_closing(self) -> bool:
        """Never."""
        return False

    def pause_reading(self) -> None:
        """Nothing more is to come."""
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        """Reading may go on."""
        self.is_reading_paused = False


def framed(frame: bytes) -> bytes:
    """A frame as the socket has it."""
    return len(frame).to_bytes(4, "big") + frame


def served(wire: Wire) -> WireProtocol:
    """A connection of a cluster over that socket; wants a running loop."""
    server = KafkaServer(ClusterSettings(), WallClock(asyncio.get_running_loop().time))
    server.cluster.topics.create_asked_for("__consumer_offsets", server.now())

    def connect(client_host: str, output: Output) -> Connection:
        return Connection(
            server.cluster, 1, number=1, listener=PLAINTEXT, client_host=client_host, output=output
        )

    protocol = wire.protocol = WireProtocol(server, connect)
    protocol.connection_made(wire)
    return protocol


def test_requests_in_packets_of_their_own_are_not_kept_for_ever() -> None:
    """Behind one that waits, a thousand are kept; then the socket is read no more."""

    async def story() -> None:
        wire = Wire()
        protocol = served(wire)
        protocol.data_received(framed(PARKED_JOIN))
        for _ in range(1_000):
            protocol.data_received(framed(API_VERSIONS))
        assert not wire.is_reading_paused
        protocol.data_received(framed(API_VERSIONS))
        assert wire.is_reading_paused
        assert wire.answers == 0

    asyncio.run(story())


def test_requests_of_a_client_that_reads_no_answers_are_not_worked_on() -> None:
    """What came in one packet waits until the answer before it has left."""

    async def story() -> None:
        wire = Wire(is_slow=True)
        protocol = served(wire)
        protocol.data_received(framed(API_VERSIONS) * 3)
        assert wire.answers == 1
        protocol.resume_writing()
        assert wire.answers == 2

    asyncio.run(story())


def test_client_that_reads_again_waits_for_a_broker_that_stands_still() -> None:
    """What waits is worked on when the broker goes on."""

    async def story() -> None:
        wire = Wire(is_slow=True)
        protocol = served(wire)
        protocol.data_received(framed(API_VERSIONS) * 3)
        protocol.hold()
        protocol.resume_writing()
        assert wire.answers == 1
        protocol.release()
        assert wire.answers == 2

    asyncio.run(story())


def test_failing_alarm_leaves_connections_alone(caplog: pytest.LogCaptureFixture) -> None:
    """A client is served before it and after it, over the same connection."""

    async def story() -> None:
        server = KafkaServer(ClusterSettings(), WallClock(asyncio.get_running_loop().time))
        listen = Listen(broker_id=1, host="127.0.0.1", port=0)
        await server.start([listen])
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port_of(listen))

        async def ask() -> None:
            writer.write(framed(API_VERSIONS))
            length = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(length)

        is_met = asyncio.Event()

        def broken(_now: Instants) -> None:
            server.cluster.scheduler.at_wall_ms(0, lambda _later: is_met.set())
            raise KeyError("a bug")

        async with asyncio.timeout(LIMIT_S):
            await ask()
            server.cluster.scheduler.at_wall_ms(0, broken)
            server.settled()
            await is_met.wait()
            await ask()
        writer.close()
        await server.stop()

    with caplog.at_level(logging.WARNING):
        asyncio.run(story())
    (record,) = caplog.records
    assert "deadlines met a bug: KeyError: 'a bug'" in record.getMessage()
