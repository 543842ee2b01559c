"""Trogdor: what a task, a heartbeat and an agent cost, in virtual time and over loopback.

In virtual time a coordinator and all agents are in one process, so each figure holds both sides:
REST, JSON and machines, no sockets. An agent keeps the workers of tasks that are over until it ends
and tells them all at each heartbeat, as Kafka's does, so that a heartbeat costs something for each
task that its node has ever run.
"""

import gc
import json
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from time import process_time
from typing import Any, Final

from benchmarks.servers import Server, line_of, started
from coordinator_sim.errors import InvariantViolation
from coordinator_sim_conformance.trogdor_cases.processes import OWN_DAEMONS, free_port
from coordinator_sim_conformance.trogdor_cases.trogdor import Setup
from coordinator_sim_conformance.trogdor_cases.virtual import VirtualTrogdor

TASKS: Final = (1_000, 10_000)
TASKS_A_NODE: Final = 10
AGENTS: Final = (100, 1_000)
BEATS: Final = 20
DONE_ON_ONE_NODE: Final = (0, 1_000, 10_000)
LOOPBACK_TASKS: Final = 300
LOOPBACK_S: Final = 10
ROUNDS: Final = 3
_DURATION_MS: Final = 2_000
_BEAT_MS: Final = 1_000
_STOPPED: Final = "org.apache.kafka.trogdor.fault.ProcessStopFaultSpec"
_NO_OP: Final = "org.apache.kafka.trogdor.task.NoOpTaskSpec"
_PLATFORM: Final = "org.apache.kafka.trogdor.basic.BasicPlatform"
_LATEST_S: Final = 60.0


def main() -> None:
    """Print all figures."""
    _tasks()
    _beats()
    _done_workers()
    _memory()
    _loopback()


# -- in virtual time ---------------------------------------------------------------------------


def world_of(agent_count: int) -> VirtualTrogdor:
    """A coordinator and agents that do nothing yet."""
    return VirtualTrogdor(Setup(agents=tuple(_node(each) for each in range(agent_count))))


def run_tasks(world: VirtualTrogdor, task_count: int, agent_count: int) -> None:
    """Create tasks, each on one agent, and let them end.

    Raises:
        InvariantViolation: one of them does not.
    """
    for each in range(task_count):
        spec = {"class": _STOPPED, "startMs": 0, "durationMs": _DURATION_MS}
        body = {"id": f"task-{each}", "spec": {**spec, "nodeNames": [_node(each % agent_count)]}}
        world.coordinator("POST", "/coordinator/task/create", body)
    world.at(world.now_ms + _DURATION_MS + 2 * _BEAT_MS)
    done = world.coordinator("GET", "/coordinator/tasks?state=DONE").body["tasks"]
    if len(done) != task_count:
        raise InvariantViolation(f"{len(done)} of {task_count} tasks are done")


def task_us(task_count: int) -> float:
    """CPU-microseconds of a task: created over REST, run on an agent, done, listed."""
    agent_count = task_count // TASKS_A_NODE
    world = world_of(agent_count)
    began = process_time()
    run_tasks(world, task_count, agent_count)
    return (process_time() - began) / task_count * 1e6


def beat_us(world: VirtualTrogdor, agent_count: int) -> float:
    """CPU-microseconds of a heartbeat of one agent."""
    world.at(world.now_ms + _BEAT_MS)
    began = process_time()
    world.at(world.now_ms + BEATS * _BEAT_MS)
    return (process_time() - began) / BEATS / agent_count * 1e6


def node_with_done_workers(count: int) -> VirtualTrogdor:
    """One agent that has run so many tasks. They waited for it, so that it was asked once."""
    world = world_of(1)
    world.kill_agent(_node(0))
    for each in range(count):
        body = {"id": f"task-{each}", "spec": {"class": _NO_OP, "durationMs": _DURATION_MS}}
        world.coordinator("POST", "/coordinator/task/create", body)
    world.start_agent(_node(0))
    world.at(_DURATION_MS + 3 * _BEAT_MS)
    return world


def _tasks() -> None:
    few, many = (_least(task_us, count) for count in TASKS)
    print(
        f"one task, created, run, done, listed: {few:.0f} us at {TASKS[0]:,} tasks, {many:.0f} us "
        f"at {TASKS[1]:,}, {TASKS_A_NODE} to an agent; ratio {many / few:.2f} (linear: 1)"
    )


def _beats() -> None:
    few, many = (_least(lambda count: beat_us(world_of(count), count), each) for each in AGENTS)
    print(
        f"heartbeat of an idle agent: {few:.1f} us at {AGENTS[0]} agents, {many:.1f} us at "
        f"{AGENTS[1]:,}; ratio {many / few:.2f} (linear: 1)"
    )


def _done_workers() -> None:
    for count in DONE_ON_ONE_NODE:
        world = node_with_done_workers(count)
        beat = min(beat_us(world, 1) for _ in range(ROUNDS))
        status = json.dumps(world.agent(_node(0), "GET", "/agent/status").body)
        floor = _least(lambda text: _once_us(lambda: json.loads(text)), status)
        each = f", {beat / count:.2f} us a worker" if count else ""
        print(
            f"heartbeat of a node with {count:>6,} tasks done: {beat:>8,.0f} us{each}; json.loads "
            f"of its {len(status) / 1e3:,.0f} kB: {floor:,.0f} us; ratio {beat / floor:.2f}"
        )


def _memory() -> None:
    """Objects alone, as tracemalloc counts them, of coordinator and agents together."""
    gc.collect()
    tracemalloc.start()
    world = world_of(AGENTS[1])
    world.at(2 * _BEAT_MS)
    gc.collect()
    agents, _ = tracemalloc.get_traced_memory()
    run_tasks(world, TASKS[1], AGENTS[1])
    gc.collect()
    whole, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    print(
        f"memory (tracemalloc, both sides): {agents / AGENTS[1] / 1e3:.1f} kB an agent, "
        f"{(whole - agents) / TASKS[1] / 1e3:.1f} kB a task that is done"
    )


def _node(number: int) -> str:
    return f"node{number:04}"


def _least(measure: Callable[[Any], float], argument: object) -> float:
    """The least of three runs, the collector resting, so that a busy machine is not in it."""
    gc.collect()
    gc.disable()
    try:
        return min(measure(argument) for _ in range(ROUNDS))
    finally:
        gc.enable()


def _once_us(call: Callable[[], object]) -> float:
    began = process_time()
    call()
    return (process_time() - began) * 1e6


# -- over loopback -----------------------------------------------------------------------------


class Daemon:
    """A coordinator or an agent, and one connection to it.

    Attributes:
        server: Its process.
    """

    def __init__(self, server: Server, port: int) -> None:
        self.server = server
        self._connection = HTTPConnection("127.0.0.1", port, timeout=_LATEST_S)

    def ask(self, method: str, target: str, body: object = None) -> Any:  # noqa: ANN401 (JSON)
        """The JSON of an answer.

        Raises:
            InvariantViolation: the answer is a refusal.
        """
        told = None if body is None else json.dumps(body)
        headers = {"content-type": "application/json"}
        self._connection.request(method, target, told, headers)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != 200:  # noqa: PLR2004 (OK)
            raise InvariantViolation(f"{method} {target}: {answer.status} {said[:200]!r}")
        return json.loads(said)

    def cost(self, work: Callable[[], None]) -> tuple[float, float]:
        """CPU-seconds of the process, and seconds, while something is done."""
        cpu_s, began = self.server.cpu_s(), time.monotonic()
        work()
        return self.server.cpu_s() - cpu_s, time.monotonic() - began


@contextmanager
def daemons(folder: Path) -> Iterator[tuple[Daemon, Daemon]]:
    """A coordinator and an agent of this host, each a process."""
    ports = {"coordinator": free_port(), "agent": free_port()}
    nodes = {
        "node1": {
            "trogdor.coordinator.port": ports["coordinator"],
            "trogdor.agent.port": ports["agent"],
        }
    }
    config = folder / "trogdor.json"
    config.write_text(json.dumps({"platform": _PLATFORM, "nodes": nodes}), encoding="utf-8")
    commands = {"agent": OWN_DAEMONS.agent, "coordinator": OWN_DAEMONS.coordinator}
    with ExitStack() as stack:
        found = {}
        for name, command in commands.items():
            process = stack.enter_context(started([*command, "-c", str(config), "-n", "node1"]))
            line_of(process)
            found[name] = Daemon(Server(name, f"127.0.0.1:{ports[name]}", process.pid), ports[name])
        yield found["coordinator"], found["agent"]


def _loopback() -> None:
    with tempfile.TemporaryDirectory() as folder, daemons(Path(folder)) as (coordinator, agent):

        def create() -> None:
            for each in range(LOOPBACK_TASKS):
                spec = {"class": _NO_OP, "startMs": 0, "durationMs": _DURATION_MS}
                body = {"id": f"task-{each}", "spec": spec}
                coordinator.ask("POST", "/coordinator/task/create", body)

        def ask() -> None:
            for _ in range(LOOPBACK_TASKS):
                coordinator.ask("GET", "/coordinator/uptime")

        def finish() -> None:
            latest_s = time.monotonic() + _LATEST_S
            while len(coordinator.ask("GET", "/coordinator/tasks?state=DONE").get("tasks", ())) < (
                LOOPBACK_TASKS
            ):
                if time.monotonic() > latest_s:
                    raise InvariantViolation("the tasks do not end")
                time.sleep(0.1)

        def rest() -> None:
            time.sleep(LOOPBACK_S)

        ask()
        _, uptime_s = coordinator.cost(ask)
        create_cpu_s, create_s = coordinator.cost(create)
        finish()
        idle = [each.cost(rest)[0] / LOOPBACK_S for each in (coordinator, agent)]
        print(
            f"over loopback, one client, one agent: {LOOPBACK_TASKS / create_s:,.0f} createTask a "
            f"second ({create_cpu_s / LOOPBACK_TASKS * 1e6:,.0f} CPU-us of the coordinator each, "
            f"heartbeats among it); GET /coordinator/uptime {LOOPBACK_TASKS / uptime_s:,.0f} a "
            f"second; ratio {uptime_s / create_s:.2f}"
        )
        print(
            f"afterwards, {LOOPBACK_TASKS} tasks done: {idle[0] * 1e3:.1f} CPU-ms of the "
            f"coordinator and {idle[1] * 1e3:.1f} of the agent a second"
        )


if __name__ == "__main__":
    main()
