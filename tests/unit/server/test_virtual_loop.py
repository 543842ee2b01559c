"""An asyncio loop whose time is virtual and whose network is memory."""

import asyncio
import inspect
import itertools
import subprocess
import sys
import time
from asyncio import base_events
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest

from coordinator_sim.errors import ConfigError
from coordinator_sim.server.virtual_loop import INSIDE, LATENCY_US, VirtualDeadlock, VirtualLoop

T = TypeVar("T")


def in_virtual_time(main: Coroutine[Any, Any, T], latency_us: int = LATENCY_US) -> T:
    """The result of `main` on a virtual loop."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(latency_us=latency_us)) as runner:
        return runner.run(main)


def loop_now() -> VirtualLoop:
    """The loop that runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


class Echo(asyncio.Protocol):
    """Sends back what it gets, and notes what happens to it."""

    def __init__(self) -> None:
        self.heard: list[object] = []
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Send it back."""
        self.heard.append(data)
        self.transport.write(data)

    def eof_received(self) -> bool:
        """Close too."""
        self.heard.append("end")
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Note why."""
        self.heard.append(exc)


async def echo_server() -> tuple[Echo, int]:
    """One echo behind a listener, and the port."""
    echo = Echo()
    server = await loop_now().create_server(lambda: echo, "127.0.0.1", 0)
    return echo, server.sockets[0].getsockname()[1]


def test_a_virtual_year_takes_no_time() -> None:
    """Where nothing is ready, time jumps to the next timer, exactly."""

    async def main() -> float:
        await asyncio.sleep(365 * 86_400)
        return loop_now().time()

    before = time.perf_counter()
    assert in_virtual_time(main()) == pytest.approx(365 * 86_400, abs=1e-5)
    assert time.perf_counter() - before < 1


def test_a_timer_never_rings_before_its_instant() -> None:
    """`call_at` rounds up to whole microseconds, whatever the float says."""

    async def main() -> None:
        loop = loop_now()
        for tenths in range(1, 200):
            when = loop.time() + tenths * 0.1 + tenths * 1e-9
            done = loop.create_future()
            loop.call_at(when, done.set_result, None)
            await done
            assert when <= loop.time() < when + 3e-6

    in_virtual_time(main())


def test_who_asks_the_clock_again_and_again_gets_there() -> None:
    """A pass with something ready costs a microsecond, so that a spinning client ends."""

    async def main() -> int:
        loop = loop_now()
        deadline, passes = loop.time() + 0.0005, 0
        while not loop.time() > deadline:
            await asyncio.sleep(max(0, deadline - loop.time()))
            passes += 1
        return passes

    assert in_virtual_time(main()) < 10


def test_waiting_for_ever_is_an_error_that_names_who_waits() -> None:
    """No timer and nothing ready: real asyncio would hang."""

    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait(), name="forgotten")

    with pytest.raises(VirtualDeadlock, match=r"for ever.*forgotten in Event\.wait"):
        in_virtual_time(main())


def test_bytes_arrive_in_order_after_the_latency() -> None:
    """Bytes arrive in order, and a round trip takes the latency twice."""

    async def main() -> None:
        _, port = await echo_server()
        reader, writer = await asyncio.open_connection("localhost", port)
        before_us = loop_now().now_us
        for part in (b"one ", b"two ", b"three"):
            writer.write(part)
        assert await reader.readexactly(13) == b"one two three"
        assert 2_000 <= loop_now().now_us - before_us < 2_010
        writer.close()
        await writer.wait_closed()

    in_virtual_time(main(), latency_us=1_000)


def test_an_end_is_heard_behind_the_last_byte() -> None:
    """A closed side has sent everything; the other sees the end, and closes too."""

    async def main() -> None:
        echo, port = await echo_server()
        _, writer = await asyncio.open_connection("localhost", port)
        writer.write(b"last")
        writer.close()
        await asyncio.sleep(1)
        assert echo.heard == [b"last", "end", None]
        assert echo.transport.is_closing()

    in_virtual_time(main())


def test_who_writes_to_a_side_that_is_gone_is_reset() -> None:
    """A writer is reset as TCP resets it; and a side that aborts resets the other at once."""

    async def main() -> None:
        echo, port = await echo_server()
        client = Echo()
        transport, _ = await loop_now().create_connection(lambda: client, "localhost", port)
        transport.abort()
        echo.transport.write(b"too late")
        await asyncio.sleep(1)
        assert [type(each) for each in echo.heard] == [ConnectionResetError]
        assert client.heard == [None]

    in_virtual_time(main())


def test_a_reader_that_pauses_stops_its_writer() -> None:
    """Above the high water the writer waits in `drain` until the reader goes on."""

    async def main() -> None:
        echo, port = await echo_server()
        _, writer = await asyncio.open_connection("localhost", port)
        await asyncio.sleep(0.01)
        echo.transport.pause_reading()
        writer.write(bytes(100_000))
        drained = asyncio.create_task(writer.drain())
        await asyncio.sleep(60)
        assert not drained.done()
        assert echo.heard == []
        echo.transport.resume_reading()
        await drained
        assert b"".join(each for each in echo.heard if isinstance(each, bytes)) == bytes(100_000)
        writer.close()

    in_virtual_time(main())


def test_a_side_that_closes_without_reading_resets_the_other() -> None:
    """A writer that waits for it hears of it."""

    async def main() -> None:
        echo, port = await echo_server()
        _, writer = await asyncio.open_connection("localhost", port)
        await asyncio.sleep(0.01)
        echo.transport.pause_reading()
        writer.write(bytes(100_000))
        drained = asyncio.create_task(writer.drain())
        await asyncio.sleep(1)
        echo.transport.close()
        with pytest.raises(ConnectionResetError):
            await drained

    in_virtual_time(main())


def test_a_protocol_that_raises_loses_its_connection_alone() -> None:
    """The loop goes on, and its exception handler is told."""

    class Raises(Echo):
        """Likes no bytes."""

        def data_received(self, data: bytes) -> None:
            """Fail."""
            raise ValueError(data)

    async def main() -> list[str]:
        told: list[str] = []
        loop = loop_now()
        loop.set_exception_handler(lambda _loop, context: told.append(str(context["exception"])))
        server = await loop.create_server(Raises, "h", 9)
        reader, writer = await asyncio.open_connection("h", 9)
        writer.write(b"bad")
        with pytest.raises(ConnectionResetError):
            await reader.read()
        server.close()
        return told

    assert in_virtual_time(main()) == ["b'bad'"]


def test_nobody_listens_there() -> None:
    """A port without listener, or whose listener closed, refuses."""

    async def main() -> None:
        loop = loop_now()
        server = await loop.create_server(Echo, "kafka-1", 9092)
        assert server.is_serving()
        with pytest.raises(OSError, match="in use"):
            await loop.create_server(Echo, "kafka-1", 9092)
        server.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("kafka-1", 9092)

    in_virtual_time(main())


def test_what_virtual_time_cannot_do_is_refused_in_one_line() -> None:
    """TLS, names and real sockets."""

    async def main() -> None:
        loop = loop_now()
        with pytest.raises(ConfigError, match="no TLS"):
            await loop.create_connection(Echo, "h", 1, ssl=True)
        with pytest.raises(ConfigError, match="resolves no names"):
            await loop.getaddrinfo("example.org", 80)
        with pytest.raises(ConfigError, match="no sockets"):
            await loop.create_server(Echo, sock=object())

    in_virtual_time(main())


def test_an_executor_is_this_thread() -> None:
    """A thread would take real time; what it raises is its future's."""

    async def main() -> None:
        assert await asyncio.to_thread(sum, [1, 2]) == 3
        with pytest.raises(ZeroDivisionError):
            await asyncio.to_thread(divmod, 1, 0)

    in_virtual_time(main())


_ORDERS = """
import asyncio
from coordinator_sim.server.virtual_loop import VirtualLoop

junk = [object() for _ in range(int(__import__("sys").argv[1]))]

async def main():
    tasks = {asyncio.create_task(asyncio.sleep(0), name=str(n)): n for n in range(50)}
    done, _ = await asyncio.wait(tasks)
    futures = {asyncio.get_running_loop().create_future() for n in range(50)}
    print([tasks[task] for task in done], [hash(each) for each in futures])

with asyncio.Runner(loop_factory=VirtualLoop) as runner:
    runner.run(main())
"""


def test_sets_of_tasks_have_one_order_in_every_process() -> None:
    """By their addresses, as asyncio has it, a client that iterates such sets would differ."""
    runs = [
        subprocess.run(
            [sys.executable, "-c", _ORDERS, str(junk)], capture_output=True, text=True, check=True
        ).stdout
        for junk in (0, 12_345)
    ]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", INSIDE)
def test_this_python_has_what_the_loop_relies_on(name: str) -> None:
    """Each private name that this loop gives or reads is used by asyncio's own loop."""
    assert f"self.{name}" in inspect.getsource(base_events.BaseEventLoop)


def test_timers_are_handles_in_a_heap_by_their_instant() -> None:
    """What is at the head of `_scheduled` is due first: the instant that time jumps to."""
    loop = VirtualLoop()
    instants = [3.0, 1.0, 2.0]
    for when in instants:
        loop.call_at(when, lambda: None)
    heads = itertools.islice(loop._scheduled, 1)
    assert [handle.when() for handle in heads] == [1.0]
    loop.close()


@pytest.mark.parametrize("seconds", [float("inf"), 1e300, 1e17])
def test_timer_behind_the_end_of_time_never_comes(seconds: float) -> None:
    """Time neither jumps there nor breaks: whoever waits for it alone waits for ever."""

    async def story() -> None:
        sleeping = asyncio.create_task(asyncio.sleep(seconds))
        await asyncio.sleep(1)
        assert not sleeping.done()
        await sleeping

    with pytest.raises(VirtualDeadlock, match=r"stands at 1\.\d+ s for ever"):
        in_virtual_time(story())


def test_timer_at_no_number_is_refused() -> None:
    """A timer at NaN would never be in order with the others."""

    async def story() -> None:
        with pytest.raises(ValueError, match="nan"):
            loop_now().call_later(float("nan"), print)

    in_virtual_time(story())


@pytest.mark.parametrize("limit_s", [float("inf"), float("nan"), -1, 0, 1e308])
def test_limit_out_of_bounds_is_refused(limit_s: float) -> None:
    """The message has the value and the bounds; no half-made loop is left."""
    with pytest.raises(ConfigError, match=f"limit_s={limit_s}: give above 0".replace("+", ".")):
        VirtualLoop(limit_s=limit_s)
