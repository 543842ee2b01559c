"""A Connect leader's assignments of connectors and tasks, round by round.

Workers that follow every plan of one Connect leader, for cases and tests of assignors.
"""

from coordinator_sim.assignors.contract import ConnectAssignmentPlan, ConnectMember, WorkerLoad
from coordinator_sim.assignors.registry import make_connect_assignor
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.embedded.connect_protocol import wire_order
from coordinator_sim_conformance.client_cases.bench import Bench
from coordinator_sim_conformance.client_cases.case import client_case

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


_MAX_DELAY_MS = 300_000


@client_case("C-CASG-01", "WorkerCoordinatorTest.testLeaderPerformAssignment1")
def eager_deals_in_one_circle(bench: Bench) -> None:
    """The eager assignor deals tasks on from the worker after the last connector's."""
    assignor = make_connect_assignor("default", scheduled_rebalance_max_delay_ms=0)
    plan = assignor.assign(
        configured={"connector1": 1},
        members=[ConnectMember(member_id="member"), ConnectMember(member_id="leader")],
        generation_id=1,
        last_completed_generation_id=-1,
        now_ms=0,
    )
    bench.expect("leader", plan.assigned["leader"], load("C1"))
    bench.expect("member", plan.assigned["member"], load("C1-0"))


@client_case("C-CASG-02", "IncrementalCooperativeAssignorTest.testTaskAssignmentWhenWorkerJoins")
def a_joiner_receives_what_was_revoked(bench: Bench) -> None:
    """For a joiner half of the work is revoked in one round and given in the next; delay 0."""
    cluster = start(1)
    cluster.running["worker2"] = WorkerLoad()
    moved = load("C1 C1-0 C1-1 C1-2 C1-3")
    plan = cluster.rebalance()
    bench.expect("revoked first", (plan.revoked, plan.delay_ms), ({"worker1": moved}, 0))
    bench.expect("given in that round", busy(plan.assigned), {})
    plan = cluster.rebalance()
    bench.expect("given then", (busy(plan.assigned), plan.delay_ms), ({"worker2": moved}, 0))
    bench.expect("revoked then", plan.revoked, {})


@client_case(
    "C-CASG-03", "IncrementalCooperativeAssignorTest.testTaskAssignmentWhenWorkerLeavesPermanently"
)
def lost_work_waits_for_the_delay(bench: Bench) -> None:
    """Work of a worker that is gone for good moves only when the scheduled delay is over."""
    cluster = start(2)
    del cluster.running["worker2"]
    plan = cluster.rebalance()
    bench.expect("at first", (busy(plan.assigned), plan.revoked), ({}, {}))
    bench.expect("delay", plan.delay_ms, _MAX_DELAY_MS)
    cluster.now_ms += _MAX_DELAY_MS
    plan = cluster.rebalance()
    bench.expect("after it", busy(plan.assigned), {"worker1": load(SECOND_WORKERS)})
    bench.expect("delay then", plan.delay_ms, 0)


@client_case("C-CASG-04", "IncrementalCooperativeAssignorTest.testTaskAssignmentWhenWorkerBounces")
def a_bounced_worker_gets_its_work_back(bench: Bench) -> None:
    """A worker back before the delay ends gets its work at the delay's end; nothing is revoked."""
    cluster = start(2)
    del cluster.running["worker2"]
    cluster.rebalance()
    cluster.now_ms += _MAX_DELAY_MS // 2
    cluster.running["worker2"] = WorkerLoad()
    plan = cluster.rebalance()
    bench.expect("while it waits", (busy(plan.assigned), plan.revoked), ({}, {}))
    bench.expect("delay left", plan.delay_ms, _MAX_DELAY_MS // 2)
    cluster.now_ms += _MAX_DELAY_MS // 2
    plan = cluster.rebalance()
    bench.expect("in the end", busy(plan.assigned), {"worker2": load(SECOND_WORKERS)})
    bench.expect("revoked", (plan.revoked, plan.delay_ms), ({}, 0))


@client_case(
    "C-CASG-07", "IncrementalCooperativeAssignorTest.testImmediateRevocationsWhenMaxDelayIs0"
)
def without_a_delay_nothing_waits(bench: Bench) -> None:
    """With scheduled.rebalance.max.delay.ms=0 lost work is dealt out, and revoked, at once."""
    cluster = Cluster(TWO_BY_FOUR, max_delay_ms=0)
    cluster.running = {"worker1": WorkerLoad(), "worker2": WorkerLoad()}
    cluster.rebalance()
    del cluster.running["worker2"]
    plan = cluster.rebalance()
    bench.expect("lost work", busy(plan.assigned), {"worker1": load(SECOND_WORKERS)})
    for name in ("worker2", "worker3"):
        cluster.running[name] = WorkerLoad()
        plan = cluster.rebalance()
        bench.expect(f"revoked for {name}", bool(plan.revoked), wanted=True)
        bench.expect("delay", plan.delay_ms, 0)


@client_case(
    "C-CASG-08",
    "IncrementalCooperativeAssignorTest.testTaskAssignmentWhenFirstAssignmentAttemptFails",
)
def a_first_plan_that_got_lost_is_made_again(bench: Bench) -> None:
    """Work that was assigned and arrived nowhere is new work in the next round, without delay."""
    cluster = Cluster(TWO_BY_FOUR)
    cluster.running = {"worker1": WorkerLoad(), "worker2": WorkerLoad()}
    first = cluster.rebalance(delivered=False)
    plan = cluster.rebalance()
    bench.expect("again", plan.assigned, first.assigned)
    bench.expect("delay", (plan.delay_ms, plan.revoked), (0, {}))


@client_case(
    "C-CASG-09",
    "IncrementalCooperativeAssignorTest"
    ".testTaskAssignmentWhenSubsequentAssignmentAttemptFailsOutsideTheAssignor",
)
def a_later_plan_that_got_lost_is_forgotten(bench: Bench) -> None:
    """After a plan that got lost the memory is cleared, and the next revocation waits 40 ms."""
    cluster = start(2)
    cluster.running["worker3"] = WorkerLoad()
    lost = cluster.rebalance(delivered=False)
    plan = cluster.rebalance()
    bench.expect("in the next round", (plan.revoked, busy(plan.assigned)), ({}, {}))
    bench.expect("delay", plan.delay_ms, 40)
    cluster.now_ms += 40
    bench.expect("after the delay", cluster.rebalance().revoked, lost.revoked)


@client_case(
    "C-CASG-10",
    "IncrementalCooperativeAssignorTest.testTaskAssignmentWhenTasksDuplicatedInWorkerAssignment",
)
def work_of_two_owners_is_taken_from_both(bench: Bench) -> None:
    """Work that two workers run is revoked from both, and assigned to one in the next round."""
    cluster = start(2, {"connector1": 2})
    both = load("C1 C1-0 C1-1")
    cluster.running = {"worker1": both, "worker2": both}
    plan = cluster.rebalance()
    for worker in ("worker1", "worker2"):
        bench.expect(f"revoked from {worker}", sorted(plan.revoked[worker].tasks), [*both.tasks])
    bench.expect("given in that round", busy(plan.assigned), {})
    plan = cluster.rebalance()
    given = sorted(task for own in plan.assigned.values() for task in own.tasks)
    bench.expect("given once", given, [*both.tasks])


@client_case(
    "C-CASG-11", "IncrementalCooperativeAssignorTest.testTaskAssignmentWhenConnectorsAreDeleted"
)
def a_deleted_connector_is_revoked(bench: Bench) -> None:
    """Who holds anything of a deleted connector must give it up, without delay."""
    cluster = start(2, {**TWO_BY_FOUR, "connector3": 4})
    cluster.configured = TWO_BY_FOUR
    plan = cluster.rebalance()
    revoked = sorted(task for own in plan.revoked.values() for task in own.tasks)
    bench.expect("tasks", revoked, [*load("C3-0 C3-1 C3-2 C3-3").tasks])
    connectors = [name for own in plan.revoked.values() for name in own.connectors]
    bench.expect("connectors", connectors, ["connector3"])
    bench.expect("delay", (plan.delay_ms, busy(plan.assigned)), (0, {}))
