"""A task file run for real on one host: a served cluster, a coordinator, an agent for each node.

The cluster is a `serve` of its own, which records a trace. Every node has a listener that its
clients connect by, so that faults of the network can hit one node and not another. When a task
begins and ends is marked in the trace.

The faults of Trogdor's agents on nodes of a served cluster: its links and brokers, no kernel.

An agent's commands are those that Kafka's agents run. Here `iptables` and `tc` act on the links
between the listener of a node and the brokers of another one, and `jcmd` and `kill` know the
brokers of a node as Java processes.
"""

import asyncio
import contextlib
import secrets
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import httpx
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import ConfigError
from coordinator_sim.live.http_server import LARGEST_BODY
from coordinator_sim.live.trogdor.agent_http import AgentHttp
from coordinator_sim.live.trogdor.daemons import RestProcess, quieted
from coordinator_sim.live.trogdor.host_platform import Allowed, HostPlatform, Told
from coordinator_sim.live.trogdor.host_work import work_on
from coordinator_sim.live.trogdor.loop_clock import LoopClock
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import Agent
from coordinator_sim.trogdor.contract import Quirks, WorkerOver
from coordinator_sim.trogdor.coordinator_driver import CoordinatorDriver
from coordinator_sim.trogdor.fault_work import Argv, Output
from coordinator_sim.trogdor.plan import Operation, Plan, PlannedMember
from coordinator_sim.trogdor.rest import AgentRest
from coordinator_sim.trogdor.specs import TaskSpec, class_of
from coordinator_sim.trogdor.states import TaskPhase, TaskState, WorkerState
from coordinator_sim.trogdor.targets import target_nodes
from coordinator_sim.trogdor.topology import AGENT_PORT, Node, Topology
from coordinator_sim.trogdor.workload_specs import ExternalCommandSpec

_FIRST_PID: Final = 1 << 40
"""Process ids of brokers, far above those of a host."""
_SIGNALS: Final = {"-SIGSTOP": "pause", "-SIGCONT": "resume"}

Place = tuple[tuple[int, ...], str]
"""What a node has: its brokers, and the listener that its clients connect by."""


class ServedNetwork:
    """The links and brokers of a served cluster.

    Args:
        control: URL of its control surface.
        places: What each node has.
    """

    def __init__(self, control: str, places: Mapping[str, Place]) -> None:
        self.places = places
        self._client = httpx.AsyncClient(base_url=control, trust_env=False)
        self._cuts: Counter[tuple[int, str]] = Counter()
        self._slow: dict[str, dict[str, int]] = {}

    async def close(self) -> None:
        """Close its connections."""
        await self._client.aclose()

    async def call(self, method: str, path: str, body: Any = None) -> str:  # noqa: ANN401 - JSON
        """Ask the control surface; an empty text, or why it was refused."""
        try:
            answer = await self._client.request(method, path, json=body)
        except httpx.HTTPError as error:
            return f"{path}: {error or type(error).__name__}"
        return str(answer.json()["error"]) if answer.is_error else ""

    async def cut(self, node: str, clients_of: str, *, count: int) -> str:
        """Cut the clients of a node off from the brokers of another, once more or once less."""
        brokers, _ = self.places[node]
        _, listener = self.places[clients_of]
        for broker in brokers:
            self._cuts[broker, listener] += count
        return await self._apply([(broker, listener) for broker in brokers])

    async def slow_down(self, node: str, way: Mapping[str, int] | None) -> str:
        """Let what leaves a node be late and narrow, or as fast as ever."""
        if way is None:
            self._slow.pop(node, None)
        else:
            self._slow[node] = {**self._slow.get(node, {}), **way}
        brokers, listener = self.places[node]
        links = [(broker, other) for broker in brokers for _, other in self.places.values()]
        links += [(broker, listener) for own, _ in self.places.values() for broker in own]
        return await self._apply(list(dict.fromkeys(links)))

    async def signal(self, broker: int, name: str) -> str:
        """Stop a broker's process or let it go on."""
        return await self.call("POST", f"/v1/brokers/{broker}/{_SIGNALS[name]}")

    async def _apply(self, links: list[tuple[int, str]]) -> str:
        """Tell the cluster what these links let through now."""
        of_broker = {each: node for node, (own, _) in self.places.items() for each in own}
        of_listener = {listener: node for node, (_, listener) in self.places.items()}
        for broker, listener in links:
            body = {
                "broker": broker,
                "listener": listener,
                "cut": self._cuts[broker, listener] > 0,
                "to_clients": self._slow.get(of_broker[broker], {}),
                "to_broker": self._slow.get(of_listener[listener], {}),
            }
            failure = await self.call("PUT", "/v1/links", body)
            if failure:
                return failure
        return ""


class ServedPlatform(HostPlatform):
    """A node of a served cluster.

    Args:
        node: Its name.
        topology: All nodes.
        network: See `ServedNetwork`.
        told: See `Told`.
    """

    def __init__(self, node: str, topology: Topology, network: ServedNetwork, told: Told) -> None:
        super().__init__(node, topology, Allowed(commands=True), told)
        self._network = network
        self._brokers, _ = network.places[node]

    def devices(self) -> list[str]:
        """One device: the links of the node."""
        return ["served0"]

    async def _run(self, argv: Argv, output: Output) -> None:
        act = self._acts.get(argv[:2] if argv[0] == "sudo" else argv[:1])
        if act is not None:
            failure = await act(self, argv)
            if failure is not None:
                output(None if failure else "", failure)
                return
        await super()._run(argv, output)

    async def _iptables(self, argv: Argv) -> str | None:
        count = 1 if argv[2] == "-A" else -1
        return await self._network.cut(self.node, argv[-1], count=count)

    async def _tc(self, argv: Argv) -> str | None:
        if argv[3] == "del":
            return await self._network.slow_down(self.node, None)
        said = dict(pairwise(argv))
        way: dict[str, int] = {}
        if "delay" in said:
            way["latency_ms"] = int(said["delay"].removesuffix("ms"))
        if "rate" in said:
            way["kbit_per_s"] = int(said["rate"].removesuffix("kbit"))
        return await self._network.slow_down(self.node, way)

    async def _kill(self, argv: Argv) -> str | None:
        broker = int(argv[2]) - _FIRST_PID
        if broker not in self._brokers:
            return None
        return await self._network.signal(broker, argv[1])

    def _without_running(self, argv: Argv) -> str | None:
        if argv[0] != "jcmd":
            return super()._without_running(argv)
        brokers = [f"{_FIRST_PID + each} kafka.Kafka broker-{each}" for each in self._brokers]
        return "\n".join([*brokers, super()._without_running(argv) or ""])

    _acts: Final = {
        ("sudo", "iptables"): _iptables,
        ("sudo", "tc"): _tc,
        ("kill",): _kill,
    }


LEAD_MS: Final = 1_000
"""From the start of the agents to the beginning of the plan."""
_LOOK_S: Final = 0.05
_LATE_MS: Final = 15_000
"""How long after the plan's end tasks may take to stop."""
_HOST: Final = "127.0.0.1"
_FIRST: Final = "PLAINTEXT"

Say = Callable[[str], None]
"""Takes a line about what happens."""


class Served(Struct, frozen=True):
    """A served cluster."""

    control: str
    listeners: dict[str, str]


class Rehearsal:
    """One run.

    Args:
        plan: What to run.
        trace: Directory that the trace goes to.
        overwrite: Whether an earlier trace there is replaced.
        say: See `Say`.
        allow_commands: Whether the plan's ExternalCommands are run.

    Raises:
        ConfigError: the plan has ExternalCommands that are not allowed.
    """

    def __init__(
        self, plan: Plan, trace: Path, *, overwrite: bool, say: Say, allow_commands: bool = False
    ) -> None:
        commands = [task for task in plan.tasks if isinstance(task.spec, ExternalCommandSpec)]
        if commands and not allow_commands:
            raise ConfigError(
                f"task {commands[0].id} of {plan.name} runs a command on this host: allow it with "
                "--allow-commands"
            )
        self._plan = plan
        # The agents run commands for this process alone.
        self._token = secrets.token_urlsafe()
        self._trace = trace
        self._overwrite = overwrite
        self._say = say
        self._listeners = {node: f"NODE{number}" for number, node in enumerate(plan.nodes, 1)}
        self._kinds = {task.id: class_of(task.spec) for task in plan.tasks}
        self._kinds |= {member.id: member.kind for member in plan.members}
        self._kinds |= {operation.id: operation.kind for operation in plan.operations}
        self._failed: list[str] = []
        self._running: set[str] = set()
        self._done: set[str] = set()
        self._ended: dict[str, dict[str, WorkerState]] = {}
        self._began_s = 0.0

    async def run(self) -> list[str]:
        """Run the plan to its end; return the tasks that failed or did not end.

        Raises:
            ConfigError: the cluster cannot be served.
        """
        async with self._serving() as served:
            places = {n: (own, self._listeners[n]) for n, own in self._plan.nodes.items()}
            network = ServedNetwork(served.control, places)
            try:
                return await self._play(served, network)
            finally:
                await network.close()

    async def _play(self, served: Served, network: ServedNetwork) -> list[str]:
        topology, agents = self._agents(network)
        for _, process in agents:
            process.start()
        loop = asyncio.get_running_loop()
        calls = AgentHttp(topology, Quirks.FIXED, self._say, self._token)
        driver = CoordinatorDriver(LoopClock(loop), topology, calls.call, quirks=Quirks.FIXED)
        base_ms = driver.now_ms + LEAD_MS
        self._began_s = loop.time() + LEAD_MS / 1_000
        for task in self._plan.tasks:
            driver.create_task(task.id, self._rebased(task.spec, base_ms, served))
        for member in self._plan.members:
            driver.create_task(member.id, self._command(member, base_ms, served))
        operations: list[asyncio.Task[None]] = []
        try:
            await self._record(network)
            operations += [
                loop.create_task(self._operate(each, network)) for each in self._plan.operations
            ]
            await self._follow(driver, topology, network)
            await asyncio.gather(*operations)
        finally:
            for operation in operations:
                operation.cancel()
            driver.shut_down(stop_agents=False)
            await calls.close()
            for agent, process in agents:
                await quieted(agent)
                await process.stop()
        return list(dict.fromkeys(self._failed))

    # -- the parts -----------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def _serving(self) -> AsyncIterator[Served]:
        """A served cluster, until the end of the block."""
        plan = self._plan
        names = [_FIRST, *self._listeners.values()]
        options = {
            "--brokers": str(plan.brokers),
            "--profile": plan.profile,
            "--listeners": ",".join(f"{name}://{_HOST}:0" for name in names),
        }
        if plan.topics:
            options["--topics"] = ",".join(f"{n}:{count}" for n, count in plan.topics.items())
        protocols = ",".join(f"{name}:{_FIRST}" for name in names)
        settings = {**plan.broker_settings, "listener.security.protocol.map": protocols}
        command = [sys.executable, "-m", "coordinator_sim", "serve"]
        command += [word for option in options.items() for word in option]
        for name, value in settings.items():
            command += ["--set", f"{name}={value}"]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        if process.stdout is None:
            raise ConfigError("serve has no output")
        try:
            line = await process.stdout.readline()
            if not line:
                raise ConfigError("the cluster was not served; see above")
            yield msgspec.json.decode(line, type=Served)
        finally:
            if process.returncode is None:
                process.send_signal(signal.SIGTERM)
            await process.wait()

    def _agents(self, network: ServedNetwork) -> tuple[Topology, list[tuple[Agent, RestProcess]]]:
        """An agent for each node, on a port of its own, and where they are."""
        clock = LoopClock(asyncio.get_running_loop())
        nodes: dict[str, Node] = {}
        topology = Topology(nodes)
        found: list[tuple[Agent, RestProcess]] = []
        for name in network.places:
            platform = ServedPlatform(name, topology, network, self._say)
            agent = Agent(clock, partial(work_on, platform), Quirks.FIXED)
            agent.over = partial(self._worker_over, name, agent)
            bare = Node(name, _HOST, frozenset(), {})
            rest = partial(_agent_rest, agent)
            process = RestProcess(bare, 0, LARGEST_BODY, rest, token=self._token)
            nodes[name] = replace(bare, config={AGENT_PORT: str(process.port)})
            found.append((agent, process))
        return topology, found

    def _rebased(self, spec: TaskSpec, base_ms: int, served: Served) -> TaskSpec:
        """A spec whose times are those of today, and whose clients know the brokers."""
        changed: dict[str, Any] = {"start_ms": base_ms + spec.start_ms}
        if "bootstrap_servers" in spec.__struct_fields__:
            nodes = sorted(target_nodes(spec, Topology({})))
            listener = self._listeners[nodes[0]] if len(nodes) == 1 else _FIRST
            changed["bootstrap_servers"] = served.listeners[listener]
        return replace(spec, **changed)

    def _command(self, member: PlannedMember, base_ms: int, served: Served) -> ExternalCommandSpec:
        """The command that is a member of a group."""
        brokers = served.listeners[self._listeners[member.node]]
        command = (sys.executable, "-m", "coordinator_sim", "member", "--bootstrap", brokers)
        return ExternalCommandSpec(
            start_ms=base_ms + member.start_ms,
            duration_ms=member.duration_ms,
            command_node=member.node,
            command=(*command, *member.words),
        )

    # -- while it runs -------------------------------------------------------------------------

    async def _follow(
        self, driver: CoordinatorDriver, topology: Topology, network: ServedNetwork
    ) -> None:
        """Mark what the tasks do, until all are done or the plan is long over."""
        loop = asyncio.get_running_loop()
        ends_s = self._began_s + (self._plan.duration_ms + _LATE_MS) / 1_000
        states = driver.machine.tasks()
        counts = {task: len(target_nodes(each.spec, topology)) for task, each in states.items()}
        while loop.time() < ends_s:
            states = driver.machine.tasks()
            for task_id, state in states.items():
                await self._mark_task(task_id, state, counts[task_id], network)
            if all(state.state is TaskPhase.DONE for state in states.values()):
                return
            await asyncio.sleep(_LOOK_S)
        late = [task for task, each in states.items() if each.state is not TaskPhase.DONE]
        self._failed += late
        self._say(f"not over at the end of the plan: {', '.join(late)}")

    def _worker_over(self, node: str, agent: Agent, over: WorkerOver) -> None:
        """Note the end of a worker, which the coordinator hears of at its next heartbeat."""
        state = agent.workers()[over.worker_id]
        self._ended.setdefault(state.task_id, {})[node] = state

    async def _record(self, network: ServedNetwork) -> None:
        """Record a trace, whose first event is the beginning of the plan.

        Raises:
            ConfigError: there cannot be one there.
        """
        name = f"{self._plan.name}, for real"
        directory = str(self._trace.resolve())
        wanted = {"directory": directory, "overwrite": self._overwrite, "name": name}
        refusal = await network.call("POST", "/v1/trace/start", wanted)
        if refusal:
            raise ConfigError(refusal)
        await self._until(0)
        await network.call("POST", "/v1/trace/mark", {"what": "PlanBegins"})

    async def _mark_task(
        self, task_id: str, state: TaskState, worker_count: int, network: ServedNetwork
    ) -> None:
        """Mark a task that runs, and one whose workers are all over."""
        if task_id not in self._running and state.state is not TaskPhase.PENDING:
            self._running.add(task_id)
            await self._mark(network, "TaskRunning", task_id)
        ended = self._ended.get(task_id, {})
        is_over = len(ended) == worker_count or state.state is TaskPhase.DONE
        if task_id in self._done or not is_over:
            return
        self._done.add(task_id)
        statuses = {node: each.status for node, each in sorted(ended.items())}
        status = next(iter(statuses.values()), None) if len(statuses) == 1 else statuses
        more = {"status": jackson.text(status)} if status else {}
        error = next((each.error for each in ended.values() if each.error), state.error)
        await self._mark_done(network, task_id, error, **more)

    async def _operate(self, operation: Operation, network: ServedNetwork) -> None:
        """Do what the operator of the cluster does."""
        await self._until(operation.start_ms)
        await self._mark(network, "TaskRunning", operation.id)
        failures: list[str] = []
        for each in operation.calls:
            await self._until(each.at_ms)
            failures.append(await network.call(each.method, each.path, each.body))
        await self._until(operation.end_ms)
        await self._mark_done(network, operation.id, "; ".join(filter(None, failures)))

    async def _until(self, at_ms: int) -> None:
        delay_s = self._began_s + at_ms / 1_000 - asyncio.get_running_loop().time()
        await asyncio.sleep(max(0.0, delay_s))

    async def _mark_done(
        self, network: ServedNetwork, task_id: str, error: str, **more: str
    ) -> None:
        if error:
            self._failed.append(task_id)
            more["error"] = error
        await self._mark(network, "TaskDone", task_id, **more)

    async def _mark(self, network: ServedNetwork, what: str, task_id: str, **more: str) -> None:
        kind = self._kinds[task_id]
        passed_s = asyncio.get_running_loop().time() - self._began_s
        said = " ".join(f"{name}={value}" for name, value in more.items())
        self._say(f"{passed_s:10.3f}  {what:12}  {task_id}  {kind}  {said}".rstrip())
        attrs = {"task": task_id, "kind": kind, **more}
        failure = await network.call("POST", "/v1/trace/mark", {"what": what, "attrs": attrs})
        if failure:
            self._failed.append(task_id)
            self._say(failure)


def _agent_rest(agent: Agent, _end: Callable[[], None]) -> AgentRest:
    """The resources of an agent; a shutdown request ends its work, the run ends the agent."""
    return AgentRest(agent, lambda: None)
