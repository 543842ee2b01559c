"""Clients that say nothing, half a request or too much, or do not read: others are served."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from coordinator_sim.connect.effects import AnswerHttp, HttpRequest, HttpResponse
from coordinator_sim.live import http_server
from coordinator_sim.live.http_server import RestServer

PATIENCE_S = 0.8
LARGE = b"x" * 20_000_000
LIMIT = 100_000


class Served:
    """A server that answers every request at once, `/large` with 20 MB and `/later` never.

    Attributes:
        server: The server.
        asked: Targets that came in whole.
    """

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._clients: list[Connection] = []
        self.server = RestServer("127.0.0.1", 0, self._requested, LIMIT)
        self.server.start()

    def _requested(self, exchange: int, request: HttpRequest) -> None:
        self.asked.append(request.target)
        if request.target != "/later":
            body = LARGE if request.target == "/large" else b"{}"
            response = HttpResponse(status=200, body=body)
            self.server.answer(AnswerHttp(exchange=exchange, response=response))

    async def connect(self) -> "Connection":
        """Connect."""
        client = Connection(*await asyncio.open_connection("127.0.0.1", self.server.port))
        self._clients.append(client)
        return client

    async def stop(self) -> None:
        """End the server and all connections."""
        for client in self._clients:
            client.writer.transport.abort()
        await self.server.stop()

    async def healthy(self) -> None:
        """Fail unless a healthy client gets its answer."""
        client = await self.connect()
        await client.say(b"GET /well HTTP/1.1\r\nhost: a\r\n\r\n")
        assert await client.heard(15) == b"HTTP/1.1 200 OK"


class Connection:
    """A client's end of a connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def say(self, text: bytes) -> None:
        """Send bytes."""
        self.writer.write(text)
        await self.writer.drain()

    async def heard(self, count: int) -> bytes:
        """The next bytes."""
        return await asyncio.wait_for(self.reader.readexactly(count), 5)

    async def all_heard(self) -> bytes:
        """Everything until the server ends the connection, in whichever way."""
        heard = bytearray()
        with suppress(ConnectionError):
            while part := await self.reader.read(1 << 20):
                heard += part
        return bytes(heard)

    async def is_closed(self, within_s: float) -> bool:
        """Whether the server closes the connection within a time; what it says is passed over."""
        try:
            await asyncio.wait_for(self.all_heard(), within_s)
        except TimeoutError:
            return False
        return True


@asynccontextmanager
async def serving() -> AsyncIterator[Served]:
    """A server, until the end."""
    served = Served()
    try:
        yield served
    finally:
        await served.stop()


Story = Callable[[Served], Awaitable[None]]


def played(story: Story) -> None:
    """Play a story."""

    async def play() -> None:
        async with serving() as served:
            await asyncio.wait_for(story(served), 30)

    asyncio.run(play())


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "PATIENCE_S", PATIENCE_S)


HALVES = {
    "nothing": b"",
    "half a line": b"GET /st",
    "half the headers": b"GET /status HTTP/1.1\r\nhost: a\r\n",
    "no body": b"POST /create HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n",
    "half a body": b"POST /create HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n{}",
    "half a chunk": b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n9\r\n{}",
}


@pytest.mark.parametrize("half", [pytest.param(each, id=name) for name, each in HALVES.items()])
def test_half_a_request_is_not_waited_for_for_ever(half: bytes) -> None:
    """The connection is closed after a while; meanwhile others are served, and nothing is kept."""

    async def story(served: Served) -> None:
        client = await served.connect()
        await client.say(half)
        await served.healthy()
        assert await client.is_closed(5 * PATIENCE_S)
        await served.healthy()
        assert served.asked == ["/well", "/well"]
        assert served.server._waiting == {}

    played(story)


async def _drip(client: Connection) -> None:
    """Say a long method, a letter at a time."""
    with suppress(ConnectionError):
        # Ends with the connection.
        while True:
            await client.say(b"G")
            await asyncio.sleep(PATIENCE_S / 10)


def test_a_request_byte_by_byte_has_the_same_time() -> None:
    """Time counts from the beginning, not from the last byte."""

    async def story(served: Served) -> None:
        client = await served.connect()
        dripping = asyncio.create_task(_drip(client))
        assert await client.is_closed(5 * PATIENCE_S)
        dripping.cancel()

    played(story)


def test_a_client_that_goes_in_the_middle_leaves_nothing() -> None:
    """Half a body, and the connection ends."""

    async def story(served: Served) -> None:
        for _ in range(20):
            client = await served.connect()
            await client.say(HALVES["half a body"])
            client.writer.transport.abort()
        await asyncio.sleep(PATIENCE_S / 4)
        assert served.server._waiting == {}

    played(story)


def test_a_request_that_has_come_in_is_answered_however_late() -> None:
    """Whoever waits for an answer is not impatient."""

    async def story(served: Served) -> None:
        client = await served.connect()
        await client.say(b"GET /later HTTP/1.1\r\nhost: a\r\n\r\n")
        assert not await client.is_closed(2 * PATIENCE_S)
        served.server.answer(AnswerHttp(exchange=1, response=HttpResponse(status=204)))
        assert (await client.heard(12)) == b"HTTP/1.1 204"

    played(story)


def test_a_client_that_does_not_read_is_left() -> None:
    """20 MB wait for it no longer than it may take to read some of them."""

    async def story(served: Served) -> None:
        client = await served.connect()
        await client.say(b"GET /large HTTP/1.1\r\nhost: a\r\n\r\n")
        await asyncio.sleep(3 * PATIENCE_S)
        assert len(await client.all_heard()) < len(LARGE)

    played(story)


def test_a_client_that_reads_slowly_gets_all() -> None:
    """Longer than the patience in all, but always some."""

    async def story(served: Served) -> None:
        client = await served.connect()
        await client.say(b"GET /large HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")
        began, count = asyncio.get_running_loop().time(), 0
        while part := await client.reader.read(50_000):
            count += len(part)
            if asyncio.get_running_loop().time() - began < 2 * PATIENCE_S:
                assert count < len(LARGE)
                await asyncio.sleep(PATIENCE_S / 50)
        assert count > len(LARGE)

    played(story)


def test_answers_on_one_connection_follow_at_once() -> None:
    """Not each 40 ms after its head, when the client acknowledges that."""

    async def story(served: Served) -> None:
        client = await served.connect()
        began_s = asyncio.get_running_loop().time()
        for _ in range(100):
            await client.say(b"GET /well HTTP/1.1\r\nhost: a\r\n\r\n")
            await asyncio.wait_for(client.reader.readuntil(b"{}"), 5)
        assert asyncio.get_running_loop().time() - began_s < 2

    played(story)


@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_body_beyond_the_limit_is_refused_unread(framing: str) -> None:
    """413 and the limit, long before 100 MB have come; the rest is not waited for."""

    async def story(served: Served) -> None:
        client = await served.connect()
        head = b"POST /create HTTP/1.1\r\nhost: a\r\n"
        if framing == "length":
            await client.say(head + b"content-length: 100000000\r\n\r\n")
            part = b"x" * 1_000_000
        else:
            await client.say(head + b"transfer-encoding: chunked\r\n\r\n")
            part = b"f4240\r\n" + b"x" * 1_000_000 + b"\r\n"
        await client.say(part)
        said = await client.all_heard()
        assert said.startswith(b"HTTP/1.1 413 ")
        assert said.partition(b"\r\n\r\n")[2].startswith(b"the body has more than 100000 by")
        assert served.asked == []

    played(story)


def test_a_body_within_the_limit_is_passed_on() -> None:
    """The largest one."""

    async def story(served: Served) -> None:
        client = await served.connect()
        head = b"POST /create HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % LIMIT
        await client.say(head + b"x" * LIMIT)
        assert await client.heard(15) == b"HTTP/1.1 200 OK"

    played(story)


def test_silent_connections_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of very many, those that have said nothing for a second are closed for new ones."""
    monkeypatch.setattr(http_server, "PATIENCE_S", 60.0)
    monkeypatch.setattr(http_server, "CROWD", 50)

    async def story(served: Served) -> None:
        waiting = await served.connect()
        await waiting.say(b"GET /later HTTP/1.1\r\nhost: a\r\n\r\n")
        silent = [await served.connect() for _ in range(50)]
        await served.healthy()
        await asyncio.sleep(1.1)
        await served.healthy()
        closed = await asyncio.gather(*(each.is_closed(10) for each in silent))
        assert all(closed)
        assert not await waiting.is_closed(0.1)

    played(story)


@pytest.mark.parametrize(
    "said",
    [
        b"\x00\x01\x02\x03\r\n\r\n",
        b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
    ],
)
def test_what_is_no_http_is_refused(said: bytes) -> None:
    """400, and the connection ends."""

    async def story(served: Served) -> None:
        client = await served.connect()
        await client.say(said)
        assert (await client.heard(12)) == b"HTTP/1.1 400"
        assert await client.is_closed(1)
        await served.healthy()

    played(story)


@pytest.mark.parametrize(
    "headers", [b"host: [\r\n", b"host: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n"]
)
def test_odd_headers_do_no_harm(headers: bytes) -> None:
    """The request is answered like any other one."""

    async def story(served: Served) -> None:
        client = await served.connect()
        await client.say(b"GET /well?a=b HTTP/1.1\r\n" + headers + b"\r\n")
        assert await client.heard(15) == b"HTTP/1.1 200 OK"
        assert served.asked == ["/well?a=b"]

    played(story)
