"""The processes of Trogdor: a coordinator, an agent, and an agent that runs one task and ends.

DEVIATION: Kafka's daemons answer everybody who reaches them. Here a page of another site in a
browser gets no answer, and off the loopback address callers need a token (see `HttpGuard`).
"""

import asyncio
import os
import random
import resource
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from msgspec.structs import replace

from coordinator_sim.connect.effects import AnswerHttp, HttpRequest, HttpResponse
from coordinator_sim.errors import ConfigError
from coordinator_sim.listening import LOOPBACK, HttpGuard
from coordinator_sim.live.http_server import LARGEST_BODY, RestServer
from coordinator_sim.live.trogdor.agent_http import AgentHttp
from coordinator_sim.live.trogdor.host_platform import Allowed, HostPlatform, Told
from coordinator_sim.live.trogdor.host_work import work_on
from coordinator_sim.live.trogdor.loop_clock import LoopClock
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import Agent
from coordinator_sim.trogdor.contract import Quirks, WorkerOver
from coordinator_sim.trogdor.coordinator_driver import CoordinatorDriver
from coordinator_sim.trogdor.rest import AgentRest, CoordinatorRest, Rest, refused
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import WorkerState
from coordinator_sim.trogdor.targets import InvalidSpec, check_spec, target_nodes
from coordinator_sim.trogdor.topology import Node, Topology

EXEC_WORKER_ID: Final = 1
EXEC_TASK_ID: Final = "task0"
"""Worker and task of an agent that runs one task. Source: Agent.EXEC_WORKER_ID, EXEC_TASK_ID."""
LARGEST_REQUEST: Final = 1 << 20
"""Bytes of the largest request to a coordinator.

An agent reads larger ones: what the coordinator sends on has every field of a spec in it.
"""
_LAST_WORDS_S: Final = 0.1
"""How long the answer to a shutdown has to leave."""
_STOP_PATIENCE_S: Final = 20.0
"""How long the work of an agent that ends has to stop: below the 30 s after which Kubernetes kills.

DEVIATION: Kafka's agent waits for its workers without a bound.
"""


class RestProcess:
    """REST on a socket until the process is told to end.

    Args:
        node: The node.
        port: Its port; 0 for any that is free.
        largest_body: See `RestServer`.
        make: Makes the resources, given what to call when the process is to end.
        token: Token that callers must send; empty for none.

    Raises:
        ConfigError: the port is not available, or the node is on no loopback address and there is
            no token.
    """

    def __init__(
        self,
        node: Node,
        port: int,
        largest_body: int,
        make: Callable[[Callable[[], None]], Rest],
        *,
        token: str = "",
    ) -> None:
        self._guard = HttpGuard(node.hostname, token, server=f"Trogdor's node {node.name}")
        self._ended = asyncio.Event()
        self._rest = make(self._ended.set)
        self._server = RestServer(_interface(node), port, self._requested, largest_body)

    @property
    def port(self) -> int:
        """The port that it listens on."""
        return self._server.port

    async def run(self, ready: Callable[[int], None]) -> None:
        """Serve until a request or `end` ends it; `ready` is told the port."""
        self.start()
        ready(self.port)
        await self._ended.wait()
        await asyncio.sleep(_LAST_WORDS_S)
        await self.stop()

    def end(self) -> None:
        """Have `run` come to its end."""
        self._ended.set()

    def start(self) -> None:
        """Begin to serve."""
        self._server.start()

    async def stop(self) -> None:
        """Serve no more."""
        await self._server.stop()

    def _requested(self, exchange: int, request: HttpRequest) -> None:
        refusal = self._guard.refusal(request.headers)
        if refusal is None:
            self._rest.handle(request, partial(self._answer, exchange))
        else:
            self._answer(exchange, refused(*refusal))

    def _answer(self, exchange: int, response: HttpResponse) -> None:
        self._server.answer(AnswerHttp(exchange=exchange, response=response))


async def serve_coordinator(
    topology: Topology,
    name: str,
    *,
    quirks: Quirks,
    told: Told,
    ready: Callable[[int], None],
    token: str = "",
) -> None:
    """Be the coordinator on a node until it is told to end.

    Args:
        topology: The nodes.
        name: Its node.
        quirks: See `Quirks`.
        told: Takes what goes wrong between it and agents.
        ready: Takes the port.
        token: Token of its callers, and of its agents; empty for none.

    Raises:
        ConfigError: there is no such node, its port is not available, or it is on no loopback
            address and there is no token.
    """
    node = _node(topology, name)
    _allow_many_connections()
    agents = AgentHttp(topology, quirks, told, token)
    driver = CoordinatorDriver(
        LoopClock(asyncio.get_running_loop()),
        topology,
        agents.call,
        # Below half of all ids, and unlike those of a coordinator before this one.
        first_worker_id=random.SystemRandom().randrange(2**62),
        quirks=quirks,
    )
    process = RestProcess(
        node, node.coordinator_port, LARGEST_REQUEST, partial(CoordinatorRest, driver), token=token
    )
    with _ending(process.end, told) as begin_to_end:
        await process.run(ready)
        begin_to_end()
        driver.shut_down(stop_agents=False)
        await agents.close()


async def serve_agent(
    topology: Topology,
    name: str,
    *,
    quirks: Quirks,
    allowed: Allowed,
    told: Told,
    ready: Callable[[int], None],
) -> None:
    """Be the agent of a node until it is told to end, and its work is undone or out of time.

    Raises:
        ConfigError: there is no such node, its port is not available, or it is on no loopback
            address and there is no token.
    """
    node = _node(topology, name)
    platform = HostPlatform(name, topology, allowed, told)
    agent = _agent(platform, quirks)
    process = RestProcess(
        node, node.agent_port, LARGEST_BODY, partial(AgentRest, agent), token=allowed.token
    )
    with _ending(process.end, told, platform.processes) as begin_to_end:
        await process.run(ready)
        begin_to_end()
        await quieted(agent)


async def run_task(
    topology: Topology, name: str, spec: TaskSpec, *, allowed: Allowed, say: Told
) -> bool:
    """Run one task on a node and return whether it succeeded; `say` takes what Trogdor prints.

    Source: Agent.exec.

    Raises:
        ConfigError: there is no such node.
    """
    _node(topology, name)
    platform = HostPlatform(name, topology, allowed, say)
    agent = _agent(platform, Quirks.KAFKA)
    rebased = replace(spec, start_ms=max(agent.now_ms, spec.start_ms))
    try:
        check_spec(rebased)
        nodes = target_nodes(rebased, topology)
    except InvalidSpec as error:
        say(f"Unable to create the task controller.\n{error}")
        return False
    if name not in nodes:
        say(
            "This task is not configured to run on this node.  It runs on node(s): "
            f"{', '.join(sorted(nodes))}, whereas this node is {name}"
        )
        return False
    loop = asyncio.get_running_loop()
    over: asyncio.Future[WorkerOver] = loop.create_future()
    agent.over = over.set_result
    # A task that is interrupted undoes what it did, as the shutdown hook of Kafka's agent has it.
    with _ending(agent.shut_down, say, platform.processes):
        agent.create_worker(EXEC_WORKER_ID, EXEC_TASK_ID, rebased, lambda: None)
        say(f"Waiting for completion of task:{jackson.pretty(rebased)}")
        failure = (await over).error
    if agent.manager.is_shut_down:
        say("The task was stopped before its end.")
        return False
    state: WorkerState = agent.workers()[EXEC_WORKER_ID]
    status = jackson.pretty(state.status)
    if failure:
        say(f"Task failed with status {status} and error {failure}")
    else:
        say(f"Task succeeded with status {status}")
    return not failure


def _allow_many_connections() -> None:
    """Let this process have as many files as it may: each agent takes one.

    Source: HotSpot, option MaxFDLimit, which is on.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


@contextmanager
def _ending(
    call: Callable[[], None], told: Told, processes: Iterable[int] = ()
) -> Iterator[Callable[[], None]]:
    """Have Ctrl-C and SIGTERM make a call in place of ending the process, which then ends in time.

    The end is a thread's, not the loop's: a loop that a system call holds makes no calls.

    Args:
        call: Made on the loop.
        told: Takes a line when the time is over.
        processes: Ids of processes that are killed then.

    Yields:
        What begins the end without a signal.
    """
    loop = asyncio.get_running_loop()
    is_over = threading.Event()
    timer = threading.Thread(
        target=_end_in_time, args=(is_over, told, processes), name="end in time", daemon=True
    )

    def begin(*_signal: object) -> None:
        if timer.ident is None:
            timer.start()
        loop.call_soon_threadsafe(call)

    handlers = {each: signal.signal(each, begin) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield begin
    finally:
        is_over.set()
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _end_in_time(is_over: threading.Event, told: Told, processes: Iterable[int]) -> None:
    if is_over.wait(_STOP_PATIENCE_S):
        return
    told(f"ended with work that had not stopped after {_STOP_PATIENCE_S:g} s")
    for pid in tuple(processes):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    os._exit(1)


def _agent(platform: HostPlatform, quirks: Quirks) -> Agent:
    clock = LoopClock(asyncio.get_running_loop())
    return Agent(clock, partial(work_on, platform), quirks)


async def quieted(agent: Agent) -> None:
    """Stop all work, and wait until it is over."""
    quiet = asyncio.Event()

    def over(_over: WorkerOver) -> None:
        if agent.manager.is_quiet:
            quiet.set()

    agent.over = over
    agent.shut_down()
    if not agent.manager.is_quiet:
        await quiet.wait()


def _node(topology: Topology, name: str) -> Node:
    node = topology.nodes.get(name)
    if node is None:
        known = ", ".join(sorted(topology.nodes)) or "no node"
        raise ConfigError(f"there is no node {name!r}; the configuration has {known}")
    return node


def _interface(node: Node) -> str:
    """The interface to bind for a node: loopback if it is on this host only, otherwise all."""
    if node.hostname not in LOOPBACK:
        return ""
    return "127.0.0.1" if node.hostname == "localhost" else node.hostname
