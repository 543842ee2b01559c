"""Workers that follow every plan of one Connect leader, for cases and tests of assignors."""

from coordinator_sim.assignors.contract import ConnectAssignmentPlan, ConnectMember, WorkerLoad
from coordinator_sim.assignors.registry import make_connect_assignor
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.connect_protocol import wire_order

TWO_BY_FOUR = {"connector1": 4, "connector2": 4}
SECOND_WORKERS = "C2 C1-1 C1-3 C2-1 C2-3"
"""What the second of two workers runs, sorted."""


def load(names: str) -> WorkerLoad:
    """Parse `C1 C1-0` as a load: connector1 and its first task."""
    connectors: list[str] = []
    tasks: list[ConnectorTaskId] = []
    for name in names.split():
        connector, _, task = name.replace("C", "connector").partition("-")
        if task:
            tasks.append(ConnectorTaskId(connector, int(task)))
        else:
            connectors.append(connector)
    return WorkerLoad(connectors=tuple(connectors), tasks=tuple(tasks))


class Cluster:
    """Workers that follow every plan of one leader.

    Args:
        configured: Connector -> number of its tasks.
        max_delay_ms: `scheduled.rebalance.max.delay.ms`.

    Attributes:
        now_ms: The present instant.
        generation_id: Generation of the last round.
        delivered_id: Last generation whose plan reached the leader.
        running: Worker -> its running work.
        assignor: Assignor of the leader; it lives as long as the leader.
    """

    def __init__(self, configured: dict[str, int], max_delay_ms: int = 300_000) -> None:
        self.configured = configured
        self.max_delay_ms = max_delay_ms
        self.now_ms = 1_000_000
        self.generation_id = 0
        self.delivered_id = -1
        self.running: dict[str, WorkerLoad] = {}
        self.elect()

    def elect(self) -> None:
        """Make another worker leader; its assignor has no memory."""
        self.assignor = make_connect_assignor(
            "sessioned", scheduled_rebalance_max_delay_ms=self.max_delay_ms
        )
        self.delivered_id = -1

    def rebalance(self, *, delivered: bool = True) -> ConnectAssignmentPlan:
        """Run one generation; a plan that is not delivered changes nothing at the workers."""
        self.generation_id += 1
        plan = self.assignor.assign(
            configured=self.configured,
            members=[
                ConnectMember(member_id=worker, connectors=own.connectors, tasks=own.tasks)
                for worker, own in self.running.items()
            ],
            generation_id=self.generation_id,
            last_completed_generation_id=self.delivered_id,
            now_ms=self.now_ms,
        )
        if delivered:
            self.delivered_id = self.generation_id
            for worker in self.running:
                self._follow(worker, plan)
        return plan

    def _follow(self, worker: str, plan: ConnectAssignmentPlan) -> None:
        own, added = self.running[worker], plan.assigned[worker]
        revoked = plan.revoked.get(worker, WorkerLoad())
        connectors, tasks = wire_order(
            [c for c in (*own.connectors, *added.connectors) if c not in revoked.connectors],
            [t for t in (*own.tasks, *added.tasks) if t not in revoked.tasks],
        )
        self.running[worker] = WorkerLoad(connectors=connectors, tasks=tasks)

    def task_loads(self) -> list[int]:
        """Return the number of tasks of each worker, ascending."""
        return sorted(len(own.tasks) for own in self.running.values())


def start(count: int, configured: dict[str, int] | None = None) -> Cluster:
    """Return a balanced cluster of so many workers."""
    cluster = Cluster(configured or TWO_BY_FOUR)
    cluster.running = {f"worker{number}": WorkerLoad() for number in range(1, count + 1)}
    cluster.rebalance()
    return cluster


def busy(loads: dict[str, WorkerLoad]) -> dict[str, WorkerLoad]:
    """Return the loads that are not empty."""
    return {worker: own for worker, own in loads.items() if own != WorkerLoad()}
