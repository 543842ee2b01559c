"""Trogdor's agents in the simulated world, with the workloads that a scenario gives them.

Each node has an agent. A worker is created at the instant at which its task starts, as if the
coordinator's order took no time; when it ends is the agent's own doing.
"""

from functools import partial

from coordinator_sim.clock import Action
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.errors import InvariantViolation
from coordinator_sim.sim.scenario.workloads import WorkloadTask
from coordinator_sim.sim.workload_clients import WorkloadClients
from coordinator_sim.sim.world import US_PER_MS, World
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.agent import Agent, Progress
from coordinator_sim.trogdor.contract import StartWork, WorkerOver
from coordinator_sim.trogdor.specs import TaskSpec, class_of
from coordinator_sim.trogdor.workloads.registry import workload_of


class WorkloadProcess:
    """One worker: the process of a workload.

    Args:
        world: Shared parts of the run.
        name: Name of the process in the network.
        start: What it is to do.
        progress: Takes what it tells.
    """

    def __init__(self, world: World, name: str, start: StartWork, progress: Progress) -> None:
        self._progress = progress
        self._clients = WorkloadClients(world, name)
        workload = workload_of(start.task_id, start.spec, self._clients, progress)
        if workload is None:
            raise InvariantViolation(f"{type(start.spec).__name__} is no workload")
        self._workload = workload

    def begin(self) -> None:
        """Start."""
        self._workload.begin()
        self._progress.started()

    def end(self) -> None:
        """Stop."""
        self._clients.serve(self._end())

    def pause(self, for_ms: int) -> None:
        """Freeze the process."""
        self._clients.freeze(for_ms)

    def _end(self) -> Blocking[None]:
        yield from self._workload.end()
        self._clients.kill()
        self._progress.stopped()


class WorkloadAgents:
    """The agents of all nodes.

    Args:
        world: Shared parts of the run.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._agents: dict[str, Agent] = {}
        self._processes: dict[str, WorkloadProcess] = {}
        self._names: dict[int, str] = {}

    def schedule(self, task: WorkloadTask) -> None:
        """Have a workload run from its start on."""
        spec = task.parsed
        for node, process in task.processes().items():
            create: Action = partial(self._create, node, process, task.id, spec)
            self._world.environment.call_at(spec.start_ms * US_PER_MS, create)

    def pause(self, process: str, for_ms: int) -> None:
        """Freeze the process of a workload; ignored while it does not run."""
        running = self._processes.get(process)
        if running is not None:
            running.pause(for_ms)

    def _create(self, node: str, process: str, task_id: str, spec: TaskSpec) -> None:
        agent = self._agents.get(node)
        if agent is None:
            agent = self._agents[node] = Agent(self._world.environment, self._work)
            agent.over = partial(self._over, agent)
        worker_id = len(self._names) + 1
        self._names[worker_id] = process
        self._world.record_fault("TaskRunning", task=process, kind=class_of(spec))
        agent.create_worker(worker_id, task_id, spec, _nothing)

    def _work(self, start: StartWork, progress: Progress) -> WorkloadProcess:
        process = self._names[start.worker_id]
        made = WorkloadProcess(self._world, process, start, progress)
        self._processes[process] = made
        return made

    def _over(self, agent: Agent, over: WorkerOver) -> None:
        process = self._names[over.worker_id]
        self._processes.pop(process, None)
        state = agent.workers()[over.worker_id]
        attrs = {"status": jackson.text(state.status)} if state.status is not None else {}
        if over.error:
            attrs["error"] = over.error
        self._world.record_fault("TaskDone", task=process, kind=class_of(state.spec), **attrs)


def _nothing() -> None:
    """Take the answer to the creation of a worker, for which nobody waits here."""
