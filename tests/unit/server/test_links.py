"""Links between clients and brokers: cut, slow, narrow, reset, each listener apart; and idle."""

import asyncio
from pathlib import Path

import httpx
import pytest
from msgspec import structs

from coordinator_sim.messages.metadata import MetadataRequest
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.server.properties import listeners_of
from coordinator_sim.server.serving import ServeOptions
from coordinator_sim.trace.events import Event
from tests.unit.server.kafka_client import KafkaClient
from tests.unit.server.test_control import Running, options, play

LINKS = "/v1/links"
VERSION = 12


def two_listeners() -> ServeOptions:
    """One broker with a listener for each of two hosts of clients."""
    near, far = "PLAINTEXT://127.0.0.1:0", "FAR://127.0.0.1:0"
    base = options()
    configs = {"listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,FAR:PLAINTEXT"}
    cluster = structs.replace(base.cluster, given=configs)
    return structs.replace(base, cluster=cluster, listens=listeners_of((1,), f"{near},{far}", ""))


async def clients(server: Running) -> tuple[KafkaClient, KafkaClient]:
    """A client on each listener."""
    near = await KafkaClient.connect(server.ready.listeners["PLAINTEXT"])
    return near, await KafkaClient.connect(server.ready.listeners["FAR"])


async def timed(client: KafkaClient) -> float:
    """How long a question takes, in seconds."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    await client.ask(MetadataRequest(topics=None), VERSION)
    return loop.time() - began


def test_a_cut_link_holds_back_what_its_heal_lets_through() -> None:
    """One listener's client waits until the link is whole; the other's never does."""

    async def story(server: Running) -> None:
        near, far = await clients(server)
        await server.call("PUT", LINKS, {"listener": "far", "cut": True})
        asked = asyncio.create_task(timed(far))
        late = await KafkaClient.connect(server.ready.listeners["FAR"])
        asked_late = asyncio.create_task(timed(late))
        await timed(near)
        await asyncio.sleep(0.2)
        assert not asked.done()
        assert not asked_late.done()

        links = await server.call("PUT", LINKS, {"listener": "FAR"})
        assert isinstance(links, list)
        assert [(each["listener"], each["cut"]) for each in links] == [("FAR", False)]
        assert await asked >= 0.2
        await asked_late
        for client in (near, far, late):
            await client.close()

    play(story, two_listeners())


@pytest.mark.parametrize("way", ["to_broker", "to_clients"])
@pytest.mark.parametrize(
    "slow",
    [
        pytest.param({"latency_ms": 1_000}, id="latency"),
        # Request and answer have more than fifty bytes.
        pytest.param({"kbit_per_s": 1}, id="rate"),
    ],
)
def test_a_slow_link_delays_one_direction(way: str, slow: dict[str, int]) -> None:
    """An answer comes later on that listener alone, and then at once again."""

    async def story(server: Running) -> None:
        near, far = await clients(server)
        await server.call("PUT", LINKS, {"broker": 1, "listener": "FAR", way: slow})
        asked = asyncio.create_task(timed(far))
        await timed(near)
        assert not asked.done()
        assert await asked >= 0.1
        await server.call("PUT", LINKS, {})
        await timed(far)
        assert server.serving.server.links == {}
        await near.close()
        await far.close()

    play(story, two_listeners())


def test_a_reset_ends_the_connections_of_a_link() -> None:
    """The client of the link hears of a reset; the other one goes on."""

    async def story(server: Running) -> None:
        near, far = await clients(server)
        await timed(far)
        found = await server.call("POST", f"{LINKS}/reset", {"listener": "FAR"})
        assert found == {"connections": 1}
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await timed(far)
        await timed(near)
        await near.close()

    play(story, two_listeners())


def test_a_link_that_is_not_there_is_named() -> None:
    """The refusal says which brokers and listeners there are."""

    async def story(server: Running) -> None:
        found = await server.call("PUT", LINKS, {"listener": "elsewhere"}, status=404)
        expected = "there is no broker 1 with a listener ELSEWHERE; brokers are 1, listeners "
        assert found == {"error": f"{expected}PLAINTEXT, FAR"}
        await server.call("PUT", LINKS, {"to_broker": {"latency_ms": -1}}, status=400)

    play(story, two_listeners())


def test_a_mark_is_an_event_of_the_trace(tmp_path: Path) -> None:
    """What an operator marks stands in the trace as a FAULT."""

    async def story(server: Running) -> None:
        await server.call("POST", "/v1/trace/start", {"directory": str(tmp_path / "trace")})
        attrs = {"task": "cut", "kind": "a.B"}
        await server.call("POST", "/v1/trace/mark", {"what": "TaskRunning", "attrs": attrs})
        await server.call("POST", "/v1/trace/stop")
        (event,) = read_run(tmp_path / "trace").events()
        assert (event.event, event.reason_text, event.attrs) == (Event.FAULT, "TaskRunning", attrs)

    play(story)


def test_a_connection_is_kept_longer_than_clients_keep_theirs() -> None:
    """A client that sends just when the server would close an idle connection is answered."""

    async def story(server: Running) -> None:
        url = httpx.URL(server.ready.control)
        reader, writer = await asyncio.open_connection(url.host, url.port)
        for idle_s in (6.0, 0.0):
            writer.write(b"GET /v1/groups HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            assert (await reader.readline()).split()[1] == b"200"
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(reader.read(-1), idle_s)
        writer.close()

    play(story)
