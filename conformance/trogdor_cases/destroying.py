"""Cases: a task is destroyed, and what is left of it on agents."""

from coordinator_sim.trogdor.contract import Quirks
from coordinator_sim_conformance.trogdor_cases.case import trogdor_case
from coordinator_sim_conformance.trogdor_cases.story import (
    OK,
    create,
    destroy,
    done,
    expect,
    expect_no_task,
    expect_task,
    expect_worker,
    expect_workers,
    worker_done,
    worker_running,
)
from coordinator_sim_conformance.trogdor_cases.task_specs import NODE, no_op, starting_at
from coordinator_sim_conformance.trogdor_cases.trogdor import Trogdor


@trogdor_case("D01", "CoordinatorTest.testTaskDestruction")
def destroying_an_unknown_task_is_no_error(trogdor: Trogdor) -> None:
    """Destroying an unknown task succeeds."""
    expect("answer", destroy(trogdor, "foo"), OK)


def _destroyed_task_leaves_its_worker(trogdor: Trogdor) -> None:
    spec = no_op(start_ms=100, duration_ms=60_000)
    create(trogdor, "foo", spec)

    trogdor.at(2_000)
    destroy(trogdor, "foo")
    trogdor.at(2_001)
    expect_no_task(trogdor, "foo")
    trogdor.at(2_900)
    expect_worker(trogdor, NODE, 0, worker_running("foo", spec, 100))

    trogdor.at(3_001)
    over = worker_done("foo", spec, 100, 3_000)
    expect_worker(trogdor, NODE, 0, over)
    trogdor.at(trogdor.late_ms)
    expect_worker(trogdor, NODE, 0, over)


@trogdor_case("D04", "NodeManager.DestroyWorker", "NodeManager.NodeHeartbeat", is_quirk=True)
def destroyed_task_leaves_its_worker(trogdor: Trogdor) -> None:
    """The worker of a destroyed task runs on for a heartbeat, and its record stays for ever."""
    _destroyed_task_leaves_its_worker(trogdor)


@trogdor_case("D04.2", "NodeManager", quirks=Quirks.FIXED, only_virtual="D04 plays the same story")
def fixed_worker_of_a_destroyed_task_ends_too(trogdor: Trogdor) -> None:
    """With quirks fixed, the worker of a destroyed task ends as with Kafka's."""
    _destroyed_task_leaves_its_worker(trogdor)


def _destroyed_and_created_again(trogdor: Trogdor) -> None:
    spec = no_op(start_ms=100, duration_ms=60_000)
    create(trogdor, "foo", spec)
    trogdor.at(2_000)
    destroy(trogdor, "foo")

    trogdor.at(2_010)
    again = no_op(start_ms=0, duration_ms=1_500)
    expect("answer", create(trogdor, "foo", again), OK)

    # The new task forces a heartbeat, which sees the old worker for the second time.
    trogdor.at(2_011)
    second = starting_at(again, 2_010)
    first_over = worker_done("foo", spec, 100, 2_010)
    workers = {0: first_over, 1: worker_running("foo", second, 2_010)}
    expect_workers(trogdor, NODE, workers)

    trogdor.at(4_020)
    expect_task(trogdor, "foo", done(second, 2_010, 4_010, status="done"))


@trogdor_case("D05", "NodeManager.NodeHeartbeat", is_quirk=True)
def destroyed_task_overlaps_with_the_next(trogdor: Trogdor) -> None:
    """A task that is created anew after its destruction gets a worker beside the old one."""
    _destroyed_and_created_again(trogdor)


@trogdor_case("D05.2", "NodeManager", quirks=Quirks.FIXED, only_virtual="D05 plays the same story")
def fixed_task_created_anew_ends_too(trogdor: Trogdor) -> None:
    """With quirks fixed, a task that is created anew after its destruction ends as with Kafka's."""
    _destroyed_and_created_again(trogdor)
