"""Trogdor in virtual time: the three machines behind REST, without latency or chance."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Final

import msgspec

from coordinator_sim.clock import Action
from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.environment import Environment
from coordinator_sim.sim.runner import Simulation
from coordinator_sim.sim.scenario.scenario import Scenario
from coordinator_sim.sim.scenario.world import TopicSpec
from coordinator_sim.sim.workload_agents import WorkloadProcess
from coordinator_sim.trace.recorder import NullRecorder
from coordinator_sim.trogdor.agent import Agent, Progress, Work, WorkFailed
from coordinator_sim.trogdor.agent_calls import AgentAnswers, request_of
from coordinator_sim.trogdor.contract import AgentCall, Failed, GetStatus, Quirks, StartWork
from coordinator_sim.trogdor.coordinator_driver import CoordinatorDriver, Respond
from coordinator_sim.trogdor.fault_work import Argv, Output
from coordinator_sim.trogdor.rest import AgentRest, CoordinatorRest, Rest
from coordinator_sim.trogdor.topology import Topology, topology_of
from coordinator_sim.trogdor.virtual_work import virtual_work
from coordinator_sim_conformance.targets.target import Unsupported
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Member, Reply, Setup, Topic

_LONG_MS: Final = 7 * 24 * 3_600_000


class VirtualCluster:
    """A cluster of one broker.

    Args:
        topics: Its topics, with their records.
    """

    bootstrap: Final = "broker-1:9092"

    def __init__(self, topics: Mapping[str, Topic]) -> None:
        scenario = Scenario(
            name="cluster",
            title="",
            story="",
            duration_ms=_LONG_MS,
            brokers=1,
            broker_settings={"group.initial.rebalance.delay.ms": "0"},
            topics=tuple(
                TopicSpec(name=name, partitions=topic.partitions, records_per_s=0)
                for name, topic in topics.items()
            ),
        )
        self._world = Simulation(scenario, recorder=NullRecorder()).world
        for name, topic in topics.items():
            self._world.topic_logs.append(TopicPartition(name, 0), topic.records, 0)

    @property
    def environment(self) -> Environment:
        """The clock of everything."""
        return self._world.environment

    def members(self, group_id: str) -> list[Member]:
        """The members of a group, by client id."""
        living = self._world.cluster.groups.living.values()
        groups = [each.coordinator.group(group_id) for each in living]
        return sorted(
            (
                Member(
                    client_id=member.client_id,
                    session_timeout_ms=member.session_timeout_ms,
                    rebalance_timeout_ms=member.rebalance_timeout_ms,
                )
                for group in groups
                if group is not None
                for member in group.ordered()
            ),
            key=lambda member: member.client_id,
        )

    def work(self, start: StartWork, progress: Progress) -> WorkloadProcess:
        """The work of a workload."""
        return WorkloadProcess(self._world, f"{start.task_id}-{start.worker_id}", start, progress)


_US_PER_MS: Final = 1_000
_AGENT_PORT: Final = "8888"
_LATE_MS: Final = 3_600_000


class SkewedClock:
    """The clock of a process, ahead of the environment's by a constant.

    Attributes:
        is_stopped: Whether the process has died: nothing is called any more.
    """

    def __init__(self, environment: Environment, skew_ms: int) -> None:
        self._environment = environment
        self._skew_us = skew_ms * _US_PER_MS
        self.is_stopped = False

    @property
    def now_us(self) -> int:
        """The present."""
        return self._environment.now_us + self._skew_us

    def call_at(self, at_us: int, action: Action) -> None:
        """Call the action at the instant of this clock."""
        at_us = max(at_us - self._skew_us, self._environment.now_us)
        self._environment.call_at(at_us, partial(self._call, action))

    def _call(self, action: Action) -> None:
        if not self.is_stopped:
            action()


class VirtualNode:
    """The host of an agent: commands are noted and succeed, files are in memory."""

    def __init__(
        self, node: str, topology: Topology, setup: Setup, files: dict[str, bytes]
    ) -> None:
        self.node = node
        self.topology = topology
        self.ran: list[str] = []
        self._outputs = setup.command_outputs
        self._files = files

    def run(self, argv: Argv, output: Output) -> None:
        """Note a command, and tell the output that the case gives it."""
        self.ran.append(" ".join(argv))
        output(self._outputs.get(argv[0], ""), "")

    def address_of(self, hostname: str) -> str:
        """The address of a host: all are this one."""
        return "127.0.0.1" if hostname == "localhost" else hostname

    def devices(self) -> list[str]:
        """One device."""
        return ["eth0"]

    def read(self, path: str) -> bytes | None:
        """The content of a file; None without it."""
        return self._files.get(path)

    def write(self, path: str, content: bytes) -> None:
        """Replace a file."""
        self._files[path] = content


class _Counted:
    """Work whose starts and stops are counted."""

    def __init__(self, work: Work, counts: Counter[str]) -> None:
        self._work = work
        self._counts = counts

    def begin(self) -> None:
        """Start."""
        self._counts["start"] += 1
        self._work.begin()

    def end(self) -> None:
        """Stop."""
        self._counts["stop"] += 1
        self._work.end()


class VirtualTrogdor:
    """A `Trogdor` in virtual time.

    Args:
        setup: The nodes.
        quirks: Whether tasks may hang where those of Kafka's do.
    """

    def __init__(self, setup: Setup, quirks: Quirks = Quirks.KAFKA) -> None:
        self._setup = setup
        self._quirks = quirks
        self._cluster = VirtualCluster(setup.topics) if setup.topics else None
        self._environment = Environment() if self._cluster is None else self._cluster.environment
        self._files = dict(setup.files)
        self._topology = topology_of(_nodes(setup))
        self._hosts = {
            name: VirtualNode(name, self._topology, setup, self._files)
            for name in self._topology.nodes
        }
        self._counts: dict[tuple[str, int], Counter[str]] = {}
        self._asked: Counter[str] = Counter()
        self._agents: dict[str, tuple[Rest, SkewedClock]] = {}
        self._answers = {name: AgentAnswers() for name in self._topology.nodes}
        self._open: dict[str, Respond] = {}
        for name in setup.agents:
            self.start_agent(name)
        self._driver = CoordinatorDriver(
            self._environment, self._topology, self._call_agent, quirks=quirks
        )
        self._rest: Rest | None = CoordinatorRest(self._driver, self._coordinator_ended)

    # -- what a case does ----------------------------------------------------------------------

    @property
    def now_ms(self) -> int:
        """The present."""
        return self._environment.now_us // _US_PER_MS

    @property
    def slack_ms(self) -> int:
        """No slack: all comes at its instant."""
        return 0

    @property
    def late_ms(self) -> int:
        """One hour after the beginning."""
        return _LATE_MS

    @property
    def bootstrap(self) -> str:
        """The address of the cluster.

        Raises:
            Unsupported: the case has none.
        """
        return self._served().bootstrap

    def members(self, group_id: str) -> list[Member]:
        """The members of a group of the cluster, by client id.

        Raises:
            Unsupported: the case has no cluster.
        """
        return self._served().members(group_id)

    def _served(self) -> VirtualCluster:
        if self._cluster is None:
            raise Unsupported("the case has no cluster")
        return self._cluster

    def at(self, at_ms: int) -> None:
        """Let time pass until an instant."""
        self._environment.run_until(at_ms * _US_PER_MS)

    def coordinator(self, method: str, target: str, body: Json = None) -> Reply:
        """Ask the coordinator."""
        return _reply(self._running(), _request(method, target, body))

    def agent(self, node: str, method: str, target: str, body: Json = None) -> Reply:
        """Ask an agent."""
        rest, _ = self._agents[node]
        return _reply(rest, _request(method, target, body))

    def raw(
        self, node: str, method: str, target: str, body: bytes, content_type: str | None
    ) -> Reply:
        """Ask the agent of a node, or the coordinator for an empty name, with any bytes."""
        headers = {} if content_type is None else {"content-type": content_type}
        request = HttpRequest(method=method, target=target, headers=headers, body=body)
        return _reply(self._agents[node][0] if node else self._running(), request)

    def kill_agent(self, node: str) -> None:
        """End an agent's process."""
        _, clock = self._agents.pop(node)
        clock.is_stopped = True
        if unanswered := self._open.pop(node, None):
            unanswered(Failed("Connection reset"))

    def start_agent(self, node: str) -> None:
        """Start an agent."""
        clock = SkewedClock(self._environment, self._setup.clock_skew_ms.get(node, 0))
        agent = Agent(clock, partial(self._work, node, clock), self._quirks)
        self._agents[node] = AgentRest(agent, lambda: None), clock

    def commands(self, node: str) -> list[str]:
        """The commands that were run on a node."""
        return list(self._hosts[node].ran)

    def calls(self, node: str, worker_id: int) -> dict[str, int]:
        """How often a worker's work was started and stopped."""
        counts = self._counts.get((node, worker_id), Counter())
        return {"start": counts["start"], "stop": counts["stop"]}

    def status_requests(self, node: str) -> int:
        """How often the agent of a node was asked for its workers."""
        return self._asked[node]

    def file(self, path: str) -> bytes | None:
        """The content of a file."""
        return self._files.get(path)

    # -- inside --------------------------------------------------------------------------------

    def _running(self) -> Rest:
        if self._rest is None:
            raise InvariantViolation("the coordinator has ended")
        return self._rest

    def _work(self, node: str, clock: SkewedClock, start: StartWork, progress: Progress) -> Work:
        counts = self._counts.setdefault((node, start.worker_id), Counter())
        work = virtual_work(self._hosts[node], clock, start, progress)
        if work is None and self._cluster is not None:
            work = self._cluster.work(start, progress)
        if work is None:
            raise WorkFailed(f"{type(start.spec).__name__} is not simulated here")
        return _Counted(work, counts)

    def _call_agent(self, node: str, call: AgentCall, respond: Respond) -> None:
        self._asked[node] += isinstance(call, GetStatus)
        running = self._agents.get(node)
        if running is None:
            respond(Failed("Connection refused"))
            return
        self._open[node] = respond

        def answered(response: HttpResponse) -> None:
            # An agent that has died meanwhile answers nobody.
            if self._agents.get(node) is running:
                del self._open[node]
                respond(self._answers[node].answer_of(call, response))

        running[0].handle(request_of(call), answered)

    def _coordinator_ended(self) -> None:
        self._rest = None


def _nodes(setup: Setup) -> dict[str, dict[str, object]]:
    """The nodes of a configuration file."""
    if setup.nodes is not None:
        return {name: dict(settings) for name, settings in setup.nodes.items()}
    names = dict.fromkeys((*setup.agents, setup.coordinator))
    nodes: dict[str, dict[str, object]] = {}
    for name in names:
        settings: dict[str, object] = {"hostname": setup.hostnames.get(name, "localhost")}
        if name in setup.agents:
            settings["trogdor.agent.port"] = _AGENT_PORT
        nodes[name] = settings
    return nodes


def _request(method: str, target: str, body: Json) -> HttpRequest:
    if body is None:
        return HttpRequest(method=method, target=target)
    headers = {"content-type": "application/json"}
    return HttpRequest(
        method=method, target=target, headers=headers, body=msgspec.json.encode(body)
    )


def _reply(rest: Rest, request: HttpRequest) -> Reply:
    answers: list[HttpResponse] = []
    rest.handle(request, answers.append)
    if not answers:
        # Only the creation of a worker whose start takes time is answered later.
        return Reply(0, None)
    (answer,) = answers
    try:
        return Reply(answer.status, msgspec.json.decode(answer.body))
    except msgspec.DecodeError:
        return Reply(answer.status, answer.body.decode())
