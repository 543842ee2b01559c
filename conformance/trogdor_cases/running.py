"""Cases: how a task runs, and on which nodes."""

from typing import Final

from coordinator_sim_conformance.trogdor_cases.case import trogdor_case
from coordinator_sim_conformance.trogdor_cases.story import (
    NEVER,
    WHATEVER,
    create,
    done,
    expect_task,
    expect_worker,
    expect_workers,
    running,
    worker_done,
    worker_running,
)
from coordinator_sim_conformance.trogdor_cases.task_specs import (
    NODE,
    consume,
    no_op,
    process_stop,
)
from coordinator_sim_conformance.trogdor_cases.trogdor import Setup, Trogdor

_BEGINNING: Final = "Unable to find nodes for task: "
_PORT: Final = "trogdor.agent.port"


@trogdor_case(
    "B01",
    "TaskManager.RunTask",
    "NodeManager.NodeHeartbeat",
    only_virtual="it looks one millisecond before and after heartbeats",
)
def coordinator_sees_agents_at_heartbeats(trogdor: Trogdor) -> None:
    """The coordinator knows what an agent did at the first heartbeat after it."""
    spec = no_op(start_ms=100, duration_ms=5_050)
    create(trogdor, "foo", spec)

    trogdor.at(101)
    expect_task(trogdor, "foo", running(spec, 100, "receiving"))
    expect_worker(trogdor, NODE, 0, worker_running("foo", spec, 100))
    trogdor.at(1_099)
    expect_task(trogdor, "foo", running(spec, 100, "receiving"))
    trogdor.at(1_101)
    expect_task(trogdor, "foo", running(spec, 100, "active"))

    trogdor.at(5_151)
    expect_worker(trogdor, NODE, 0, worker_done("foo", spec, 100, 5_150))
    expect_task(trogdor, "foo", running(spec, 100, "active"))
    trogdor.at(6_101)
    expect_task(trogdor, "foo", done(spec, 100, 6_100, status="done"))


@trogdor_case("B01.2", "TaskManager.RunTask", "NodeManager.NodeHeartbeat")
def task_runs_and_succeeds(trogdor: Trogdor) -> None:
    """A task starts, is seen to run, ends by its duration, and has succeeded."""
    spec = no_op(start_ms=100, duration_ms=2_500)
    create(trogdor, "foo", spec)

    trogdor.at(300)
    expect_task(trogdor, "foo", running(spec, 100, "receiving"))
    expect_worker(trogdor, NODE, 0, worker_running("foo", spec, 100))
    trogdor.at(1_300)
    expect_task(trogdor, "foo", running(spec, 100, "active"))

    trogdor.at(2_610)
    expect_worker(trogdor, NODE, 0, worker_done("foo", spec, 100, 2_600))
    trogdor.at(3_110)
    expect_task(trogdor, "foo", done(spec, 100, 3_100, status="done"))


@trogdor_case("B02", "TaskManager.ManagedTask.findNodeNames")
def one_unknown_node_fails_the_whole_task(trogdor: Trogdor) -> None:
    """Where a node of a task is unknown no worker is made, and the unknown ones are named."""
    spec = process_stop("zed", "abe", NODE, process="Kafka", start_ms=50, duration_ms=1_000)
    create(trogdor, "p", spec)

    trogdor.at(51)
    error = f"{_BEGINNING}Unknown node names: abe, zed"
    expect_task(trogdor, "p", done(WHATEVER, NEVER, 50, error=error))
    expect_workers(trogdor, NODE, {})


@trogdor_case("B03", "TaskManager.ManagedTask.findNodeNames")
def task_for_no_node_fails(trogdor: Trogdor) -> None:
    """A task that names no node fails at its start."""
    create(trogdor, "p", process_stop(process="Kafka", start_ms=50, duration_ms=1_000))

    trogdor.at(51)
    error = f"{_BEGINNING}No node names specified."
    expect_task(trogdor, "p", done(WHATEVER, NEVER, 50, error=error))


@trogdor_case("B04", "ConsumeBenchSpec.newController")
def node_left_out_is_the_empty_name(trogdor: Trogdor) -> None:
    """A workload that leaves its node out is for a node whose name is empty."""
    create(trogdor, "c", consume("foo", start_ms=50, duration_ms=1_000))

    trogdor.at(51)
    error = f"{_BEGINNING}Unknown node names: "
    expect_task(trogdor, "c", done(WHATEVER, NEVER, 50, error=error))


@trogdor_case(
    "B05",
    "CoordinatorTest.testCreateTask",
    "CoordinatorTest.testTaskDistribution",
    setup=Setup(agents=("node01", "node02")),
)
def status_of_several_nodes_is_told_by_node(trogdor: Trogdor) -> None:
    """A task of several nodes shows a status for each; ids of workers go by the nodes' names."""
    spec = no_op(start_ms=100, duration_ms=60_000)
    create(trogdor, "two", spec)

    trogdor.at(1_101)
    status = {"node01": "active", "node02": "active"}
    expect_task(trogdor, "two", running(spec, 100, status))
    expect_worker(trogdor, "node01", 0, worker_running("two", spec, 100))
    expect_worker(trogdor, "node02", 1, worker_running("two", spec, 100))


@trogdor_case(
    "B06",
    "Topology.Util.agentNodeNames",
    "TaskManager.TaskManager",
    setup=Setup(nodes={"node01": {}, "node02": {_PORT: "8888"}}),
    only_virtual="port 8888 of this host may be anybody's",
)
def node_without_a_port_takes_only_tasks_that_name_it(trogdor: Trogdor) -> None:
    """A node without an agent's port is left out of tasks for all, but may be named."""
    spec = no_op(start_ms=100, duration_ms=60_000)
    create(trogdor, "foo", spec)
    trogdor.at(101)
    expect_task(trogdor, "foo", running(spec, 100, "receiving"))

    trogdor.at(102)
    create(trogdor, "p", process_stop("node01", process="X", start_ms=0, duration_ms=60_000))
    trogdor.at(103)
    expect_task(trogdor, "p", running(WHATEVER, 102, "receiving"))


@trogdor_case(
    "B07",
    "Topology.Util.agentNodeNames",
    setup=Setup(nodes={"node02": {_PORT: "8888"}, "node03": {_PORT: "0"}}),
    only_virtual="it wants daemons with a configuration of their own",
)
def port_zero_breaks_tasks_for_all(trogdor: Trogdor) -> None:
    """A node with port 0 has no agent that is managed, and tasks for all nodes fail by it."""
    spec = no_op(start_ms=100, duration_ms=60_000)
    create(trogdor, "foo", spec)

    trogdor.at(101)
    error = f"{_BEGINNING}Unknown node names: node03"
    expect_task(trogdor, "foo", done(spec, NEVER, 100, error=error))
