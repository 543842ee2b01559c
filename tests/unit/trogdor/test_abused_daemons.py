"""A real coordinator among agents that are silent, slow, wrong or gone; an agent and odd work."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from coordinator_sim.live.trogdor import agent_http, host_work
from coordinator_sim.live.trogdor.daemons import serve_coordinator
from coordinator_sim.live.trogdor.host_platform import Allowed, HostPlatform
from coordinator_sim.live.trogdor.host_work import ExternalCommandWork, program_of, work_on
from coordinator_sim.live.trogdor.loop_clock import LoopClock
from coordinator_sim.trogdor import fault_specs
from coordinator_sim.trogdor.agent import Agent, Progress, Work
from coordinator_sim.trogdor.contract import Quirks, StartWork
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import WorkerPhase, WorkerState
from coordinator_sim.trogdor.topology import Topology, topology_of
from coordinator_sim.trogdor.workload_specs import ExternalCommandSpec
from tests.unit.trogdor.lying_agents import NO_OP

PATIENCE_S = 0.5
BOTH = pytest.mark.parametrize("quirks", list(Quirks))
STATUS = b'{"serverStartMs":0}'
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the coordinator wait for half a second where it waits for ten."""
    monkeypatch.setattr(agent_http, "_PATIENCE_S", PATIENCE_S)


class FakeAgents:
    """Listening sockets, each with what it does to a connection."""

    def __init__(self) -> None:
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def listen(self, handler: Handler) -> int:
        """Listen on a port, and return it."""

        def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            self._tasks.add(asyncio.create_task(self._handle(handler, reader, writer)))

        server = await asyncio.start_server(connected, "127.0.0.1", 0, backlog=1_000)
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    async def _handle(
        self, handler: Handler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            await handler(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the coordinator hung up
        finally:
            writer.transport.abort()

    async def stop(self) -> None:
        """End all connections."""
        for server in self._servers:
            server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def response(body: bytes, status: bytes = b"200 OK") -> bytes:
    """An answer."""
    return b"HTTP/1.1 %b\r\ncontent-length: %d\r\n\r\n%b" % (status, len(body), body)


def answering(*said: bytes) -> Handler:
    """An agent that answers its requests with these bytes, the last ones for ever."""
    left = list(said)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Ends when the coordinator hangs up.
        while True:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(left.pop(0) if len(left) > 1 else left[0])
            await writer.drain()

    return handle


async def silent(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    """Answer nothing, ever."""
    while await reader.read(65_536):
        pass


async def dripping(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer a byte at a time, and never come to an end."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n")
    # Ends when the coordinator hangs up.
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(PATIENCE_S / 5)


class Served:
    """A coordinator of this process, and a client of it.

    Attributes:
        told: What it told its operator.
    """

    def __init__(self, client: httpx.AsyncClient, told: list[str]) -> None:
        self._client = client
        self.told = told

    async def create(self, task_id: str, spec: dict[str, Any]) -> None:
        """Create a task."""
        body = {"id": task_id, "spec": spec}
        answer = await self._client.post("/coordinator/task/create", json=body)
        assert answer.status_code == 200, answer.text

    async def post(self, body: bytes) -> httpx.Response:
        """Ask for a task with any bytes."""
        headers = {"content-type": "application/json"}
        return await self._client.post("/coordinator/task/create", content=body, headers=headers)

    async def task(self, task_id: str) -> Any:  # noqa: ANN401 (any JSON)
        """A task."""
        return (await self._client.get(f"/coordinator/tasks/{task_id}")).json()

    async def uptime(self) -> None:
        """Ask something cheap."""
        assert (await self._client.get("/coordinator/uptime")).status_code == 200

    async def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so, for half a minute."""
        for _ in range(1_500):
            if is_so():
                return
            await asyncio.sleep(0.02)
        raise AssertionError(self.told)


@asynccontextmanager
async def serving(agents: dict[str, Any], quirks: Quirks) -> AsyncIterator[Served]:
    """A coordinator of nodes with agents on these ports, or with these settings."""
    nodes = {
        name: each if isinstance(each, dict) else {"trogdor.agent.port": each}
        for name, each in agents.items()
    }
    own = {"trogdor.agent.port": 0, "trogdor.coordinator.port": 0}
    port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    told: list[str] = []
    process = asyncio.create_task(
        serve_coordinator(
            topology_of({**nodes, "own": own}),
            "own",
            quirks=quirks,
            told=told.append,
            ready=port.set_result,
        )
    )
    async with httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{await port}", trust_env=False, timeout=20
    ) as client:
        yield Served(client, told)
        await client.put("/coordinator/shutdown", json={})
    await asyncio.wait_for(process, 20)


def played(story: Callable[[FakeAgents], Awaitable[None]]) -> None:
    """Play a story."""

    async def play() -> None:
        agents = FakeAgents()
        try:
            await asyncio.wait_for(story(agents), 60)
        finally:
            await agents.stop()

    asyncio.run(play())


def on(node: str) -> dict[str, Any]:
    """A task for one node."""
    return {
        "class": "org.apache.kafka.trogdor.workload.ExternalCommandSpec",
        "durationMs": 60_000,
        "commandNode": node,
        "command": ["true"],
    }


def running(worker: str) -> bytes:
    """The status of an agent that runs a worker of the task `t`."""
    return b'{"serverStartMs":0,"workers":{%b}}' % worker.encode()


# -- the coordinator's client ------------------------------------------------------------------


@BOTH
@pytest.mark.usefixtures("impatient")
def test_silent_agents_hold_up_no_other(quirks: Quirks) -> None:
    """A hundred and fifty of them, and one that answers: its task is created at once."""
    asked = []

    async def honest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            asked.append(head.split(b" ")[1])
            if b"POST" in head:
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r")[0])
                await reader.readexactly(length)
            writer.write(response(STATUS))

    async def story(agents: FakeAgents) -> None:
        port = await agents.listen(silent)
        nodes = {f"silent{each}": port for each in range(150)}
        nodes["zzz"] = await agents.listen(honest)
        async with serving(nodes, quirks) as coordinator:
            await asyncio.sleep(1.2)
            await coordinator.create("t", on("zzz"))
            await coordinator.until(lambda: b"/agent/worker/create" in asked)

    played(story)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("handler", [silent, dripping])
def test_an_agent_that_does_not_end_its_answer_is_left_where_that_is_fixed(
    handler: Handler,
) -> None:
    """After the time that a whole answer may take; the next heartbeat asks again."""
    heard = 0

    async def once_then_well(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        heard += 1
        await (handler if heard == 1 else answering(response(STATUS)))(reader, writer)

    async def story(agents: FakeAgents) -> None:
        port = await agents.listen(once_then_well)
        async with serving({"a": port}, Quirks.FIXED) as coordinator:
            await coordinator.until(lambda: len(coordinator.told) == 2)
            url = f"http://localhost:{port}/agent/status"
            assert coordinator.told == [
                f"agent of a: {url}: no answer within {PATIENCE_S:.0f} s",
                "agent of a: answers again",
            ]

    played(story)


@pytest.mark.usefixtures("impatient")
def test_an_agent_that_does_not_answer_is_waited_for_as_in_kafka() -> None:
    """QUIRK: Kafka's client has no timeout: one question, and the node is unheard for ever."""
    heard = 0

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        heard += 1
        await silent(reader, writer)

    async def story(agents: FakeAgents) -> None:
        async with serving({"a": await agents.listen(counted)}, Quirks.KAFKA) as coordinator:
            await coordinator.create("t", on("a"))
            await asyncio.sleep(2.5)
            assert heard == 1
            assert coordinator.told == []
            assert (await coordinator.task("t"))["status"] == "receiving"

    played(story)


WORKER = f'"0":{{"state":"DONE","taskId":"t","spec":{{"class":"{NO_OP}"}}}}'
WRONG = {
    "no HTTP": b"\x00\x01\x02\r\n\r\n",
    "half an answer": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n{}",
    "endless headers": b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000,
    "a redirect": b"HTTP/1.1 302 Found\r\nlocation: /agent/status\r\ncontent-length: 0\r\n\r\n",
    "a page of an error": response(b"<h1>\x1b[31m\n\n no</h1>" * 1_000, b"502 Bad Gateway"),
    "an id of 5000 digits": response(running(WORKER.replace('"0"', f'"{"9" * 5_000}"'))),
    "lists in lists": response(b'{"workers":{"0":' + b"[" * 1_000_000),
    "ten thousand lists": response(running('"0":[' + "[]," * 10_000 + "[]]")),
}


def wrong_twice(wrong: bytes) -> Handler:
    """An agent whose first two answers are wrong, each on a connection of its own."""
    heard = 0

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal heard
        heard += 1
        if heard > 2:
            await answering(response(STATUS))(reader, writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(wrong)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    return handle


@BOTH
def test_a_wrong_answer_is_told_in_a_line_and_asked_for_again(quirks: Quirks) -> None:
    """Once, however often it comes; so is the end of it."""

    async def story(agents: FakeAgents) -> None:
        nodes = {name: await agents.listen(wrong_twice(wrong)) for name, wrong in WRONG.items()}
        async with serving(nodes, quirks) as coordinator:
            told = coordinator.told
            await coordinator.until(lambda: len(told) == 2 * len(WRONG))
            for name in WRONG:
                first, last = (line for line in told if line.startswith(f"agent of {name}: "))
                assert f"agent of {name}: answers again" == last
                assert len(name) + 20 < len(first) < len(name) + 400
                assert first.isprintable()

    played(story)


def test_an_answer_beyond_the_bound_is_not_read() -> None:
    """A gigabyte, says the agent; the coordinator hangs up after 32 MB."""
    sent = 0

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n")
        # Ends when the coordinator hangs up.
        while True:
            writer.write(b" " * 1_000_000)
            await writer.drain()
            sent += 1

    async def story(agents: FakeAgents) -> None:
        async with serving({"a": await agents.listen(endless)}, Quirks.KAFKA) as coordinator:
            await coordinator.until(lambda: bool(coordinator.told))
            assert coordinator.told[0].endswith("the answer has more than 33554432 bytes")
            assert 30 < sent < 60

    played(story)


def test_reading_a_large_answer_holds_up_nobody() -> None:
    """A status of two megabytes takes a second to read; REST is answered meanwhile."""
    worker = WORKER.replace("DONE", "RUNNING")[:-1] + f',"status":[{"[]," * 600_000}[]]}}'
    told_s: list[float] = []

    async def large(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(2):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(response(running(worker)))
            await writer.drain()
            told_s.append(time.monotonic())

    async def story(agents: FakeAgents) -> None:
        async with serving({"a": await agents.listen(large)}, Quirks.KAFKA) as coordinator:
            slowest_s = 0.0
            while len(told_s) < 2:
                began_s = time.monotonic()
                await coordinator.uptime()
                slowest_s = max(slowest_s, time.monotonic() - began_s)
            # The second heartbeat begins when the answer to the first one was read.
            assert slowest_s < (told_s[1] - told_s[0]) / 2

    played(story)


def test_hosts_that_cannot_be_are_told() -> None:
    """Each in a line; its node is asked again and again."""
    hostnames = ("a" * 64 + ".invalid", "a..b", "[", "no such host", "\x00")

    async def story(_agents: FakeAgents) -> None:
        nodes = {f"a{each!r}": {"hostname": each} for each in hostnames}
        async with serving(nodes, Quirks.KAFKA) as coordinator:
            await coordinator.until(lambda: len(coordinator.told) == len(hostnames))
            assert all(line.startswith("agent of a'") for line in coordinator.told)

    played(story)


# -- requests to a daemon ----------------------------------------------------------------------


def test_a_request_of_100_megabytes_is_refused() -> None:
    """413, at once."""

    async def story(_agents: FakeAgents) -> None:
        async with serving({}, Quirks.KAFKA) as coordinator:
            body = b'{"id":"t","spec":"' + b"x" * 100_000_000
            answer = await coordinator.post(body)
            assert answer.status_code == 413
            assert answer.text == "the body has more than 1048576 bytes"

    played(story)


# -- an agent and its host ---------------------------------------------------------------------


async def outcome(spec: TaskSpec, topology: Topology, allowed: Allowed) -> WorkerState:
    """The worker of a spec when its agent has answered, on this host."""
    platform = HostPlatform("a", topology, allowed, lambda _line: None)

    def work_of(start: StartWork, progress: Progress) -> Work:
        return work_on(platform, start, progress)

    agent = Agent(LoopClock(asyncio.get_running_loop()), work_of)
    answered = asyncio.Event()
    agent.create_worker(1, "t", spec, answered.set)
    await asyncio.wait_for(answered.wait(), 10)
    state = agent.workers()[1]
    agent.shut_down()
    return state


NODES = {"a": {}, "b": {"hostname": "b" * 64}}
ODD = {
    "a path with a zero byte": fault_specs.FilesUnreadableFaultSpec(
        node_names=("a",), mount_path="/\x00", duration_ms=10**15
    ),
    "a path with half a pair": fault_specs.FilesUnreadableFaultSpec(
        node_names=("a",), mount_path="/\ud800", duration_ms=10**15
    ),
    "a host that cannot be": fault_specs.NetworkPartitionFaultSpec(
        partitions=(("a",), ("b",)), duration_ms=10**15
    ),
    "a device with a zero byte": fault_specs.DegradedNetworkFaultSpec(
        node_specs={"a": fault_specs.NodeDegradeSpec(network_device="\x00", latency_ms=1)},
        duration_ms=10**15,
    ),
    "a device with half a pair": fault_specs.DegradedNetworkFaultSpec(
        node_specs={"a": fault_specs.NodeDegradeSpec(network_device="\ud800", latency_ms=1)},
        duration_ms=10**15,
    ),
}


@pytest.mark.parametrize("spec", [pytest.param(each, id=name) for name, each in ODD.items()])
def test_work_that_the_host_refuses_ends_with_an_error(spec: TaskSpec) -> None:
    """The request is answered, and the worker is over: it does not start for ever."""
    state = asyncio.run(outcome(spec, topology_of(NODES), Allowed(sudo=True)))

    assert state.state is WorkerPhase.DONE
    assert state.error.startswith("worker.start() exception: ")


def test_programs_beyond_the_most_of_a_node_are_not_started(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each is a process; the worker is over with a line."""
    monkeypatch.setattr(host_work, "MOST_PROGRAMS", 0)
    spec = ExternalCommandSpec(command=("true",), duration_ms=10**15)
    state = asyncio.run(outcome(spec, topology_of(NODES), Allowed(commands=True)))

    assert state.state is WorkerPhase.DONE
    assert state.error.endswith("0 programs run on this node, the most at once")


def test_a_command_that_is_only_told_may_have_any_name() -> None:
    """A line for the operator that can be printed."""
    spec = ODD["a device with half a pair"]
    state = asyncio.run(outcome(spec, topology_of(NODES), Allowed()))
    assert state.state is WorkerPhase.RUNNING


@pytest.mark.parametrize(
    ("command", "workload"),
    [(("cat",), "\ud800"), (("cat", "\x00"), None), (("cat", "\ud800"), None), ((), None)],
)
def test_a_command_with_odd_texts_ends(command: tuple[str, ...], workload: object) -> None:
    """What cannot be said is replaced; what cannot be run is an error."""
    spec = ExternalCommandSpec(
        command_node="a", command=command, workload=workload, duration_ms=10**15
    )

    async def play() -> None:
        platform = HostPlatform("a", topology_of(NODES), Allowed(), lambda _line: None)
        over = asyncio.Event()

        def work_of(start: StartWork, progress: Progress) -> Work:
            return ExternalCommandWork(platform, start.task_id, program_of(spec), progress)

        agent = Agent(LoopClock(asyncio.get_running_loop()), work_of)
        agent.over = lambda _over: over.set()
        answered = asyncio.Event()
        agent.create_worker(1, "t", spec, answered.set)
        await asyncio.wait_for(answered.wait(), 10)
        agent.stop_worker(1)
        await asyncio.wait_for(over.wait(), 10)

    asyncio.run(play())
