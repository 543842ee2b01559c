"""Cases: what an agent does with its workers, asked without a coordinator."""

from coordinator_sim.trogdor.contract import Quirks
from coordinator_sim_conformance.trogdor_cases import story
from coordinator_sim_conformance.trogdor_cases.case import trogdor_case
from coordinator_sim_conformance.trogdor_cases.task_specs import (
    NODE,
    no_op,
    partition,
    sample,
)
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Setup, Trogdor

_MINUTE_MS = 60_000


@trogdor_case("G02", "AgentTest.testAgentCreateWorkers")
def id_of_a_worker_is_for_one_task_and_spec(trogdor: Trogdor) -> None:
    """A worker's id cannot be used again for another task, nor with another spec."""
    spec = no_op(start_ms=2_000, duration_ms=900_000)
    taken = "There is already a worker ID 1 with a different task "

    story.expect("first", story.create_worker(trogdor, NODE, 1, spec, "bar"), story.OK)
    story.expect("the same again", story.create_worker(trogdor, NODE, 1, spec, "bar"), story.OK)

    story.expect_refusal(story.create_worker(trogdor, NODE, 1, spec, "foo"), 409, f"{taken}ID.")
    other = no_op(start_ms=1_000, duration_ms=600_000)
    story.expect_refusal(story.create_worker(trogdor, NODE, 1, other, "bar"), 409, f"{taken}spec.")


@trogdor_case("G02.2", "WorkerManager.CreateWorker")
def id_of_a_worker_is_looked_at_before_its_spec(trogdor: Trogdor) -> None:
    """Without a spec, a request conflicts with a worker that exists, and else it fails."""
    story.create_worker(trogdor, NODE, 0, no_op(start_ms=0, duration_ms=_MINUTE_MS))

    known = trogdor.agent(NODE, "POST", "/agent/worker/create", {})
    message = "There is already a worker ID 0 with a different task ID."
    story.expect_refusal(known, 409, message)

    new = trogdor.agent(NODE, "POST", "/agent/worker/create", {"workerId": 1, "taskId": "x"})
    story.expect_refusal(new, 500)


@trogdor_case("G03", "AgentTest.testCreateExpiredWorkerIsNotScheduled")
def worker_whose_end_has_passed_expires(trogdor: Trogdor) -> None:
    """A worker whose end has passed is made, and is over with an error."""
    spec = no_op(start_ms=10, duration_ms=10)

    trogdor.at(115)
    story.expect("answer", story.create_worker(trogdor, NODE, 0, spec), story.OK)

    story.expect_worker(trogdor, NODE, 0, story.expired("foo", spec, 115))


@trogdor_case("G06", "AgentTest.testDestroyWorkers")
def destroyed_worker_is_forgotten(trogdor: Trogdor) -> None:
    """A destroyed worker is gone; destroying it again, or one that never was, is no error."""
    story.create_worker(trogdor, NODE, 0, no_op(start_ms=0, duration_ms=_MINUTE_MS))

    for worker_id in (0, 0, 1):
        story.expect("answer", story.destroy_worker(trogdor, NODE, worker_id), story.OK)

    trogdor.at(2)
    story.expect_workers(trogdor, NODE, {})


@trogdor_case("G07", "WorkerManager.StopWorker")
def stopping_an_unknown_worker_is_no_error(trogdor: Trogdor) -> None:
    """Stopping an unknown worker succeeds."""
    story.expect("answer", story.stop_worker(trogdor, NODE, 5), story.OK)


@trogdor_case(
    "G09",
    "WorkerManager.handleWorkerHalting",
    "WorkerManager.FinishCreatingWorker",
    only_virtual="it wants work that halts in its start, which Kafka's sample task does not",
)
def work_that_halts_while_it_starts_is_stopped(trogdor: Trogdor) -> None:
    """Work that ends while it starts is stopped once it has started."""
    spec = sample(start_ms=0, duration_ms=1_000, haltInStart="oops")

    story.create_worker(trogdor, NODE, 0, spec)

    over = story.worker_done("foo", spec, 0, 0, status="active", error="oops")
    story.expect_worker(trogdor, NODE, 0, over)
    story.expect("calls", trogdor.calls(NODE, 0), {"start": 1, "stop": 1})


def _fails_to_stop(message: str | None) -> Json:
    return sample(start_ms=0, duration_ms=1_000, stopThrows={NODE: message})


@trogdor_case(
    "G11",
    "WorkerManager.HaltWorker",
    "WorkerManager.CompleteWorker",
    only_virtual="it wants work that fails to stop, which Kafka's sample task does not",
)
def work_that_fails_to_stop_is_over_with_its_error(trogdor: Trogdor) -> None:
    """A worker whose stop fails is over, and the failure is its error."""
    spec = _fails_to_stop("cannot stop")
    story.create_worker(trogdor, NODE, 0, spec)

    trogdor.at(1_001)
    over = story.worker_done("foo", spec, 0, 1_000, status="active", error="cannot stop")
    story.expect_worker(trogdor, NODE, 0, over)


@trogdor_case(
    "G12",
    "WorkerManager.CompleteWorker",
    is_quirk=True,
    only_virtual="it wants work that fails to stop, which Kafka's sample task does not",
)
def failure_without_a_message_hangs_the_worker(trogdor: Trogdor) -> None:
    """A worker whose stop fails without a message is STOPPING for ever."""
    spec = _fails_to_stop(None)
    story.create_worker(trogdor, NODE, 0, spec)

    trogdor.at(trogdor.late_ms)
    story.expect_worker(trogdor, NODE, 0, story.worker_stopping("foo", spec, 0))


@trogdor_case("G12.2", "WorkerManager", quirks=Quirks.FIXED, only_virtual="Kafka's never ends")
def fixed_failure_without_a_message_ends_the_worker(trogdor: Trogdor) -> None:
    """With quirks fixed, a worker whose stop fails without a message is over, with an error."""
    spec = _fails_to_stop(None)
    story.create_worker(trogdor, NODE, 0, spec)

    trogdor.at(1_001)
    error = "Exception without a message in stop()"
    over = story.worker_done("foo", spec, 0, 1_000, status="active", error=error)
    story.expect_worker(trogdor, NODE, 0, over)


@trogdor_case(
    "G13",
    "CoordinatorTest.testNetworkPartitionFault",
    setup=Setup(agents=("node02", "node03"), hostnames={"node03": "127.0.0.3"}),
    only_virtual="it ends an agent that other cases share",
)
def agent_that_ends_takes_its_faults_back(trogdor: Trogdor) -> None:
    """An agent that is told to shut down stops all work first, which undoes faults."""
    spec = partition(["node02"], ["node03"], start_ms=0, duration_ms=_MINUTE_MS)
    story.create_worker(trogdor, NODE, 0, spec)

    trogdor.at(10)
    story.expect("answer", trogdor.agent(NODE, "PUT", "/agent/shutdown"), story.OK)

    trogdor.at(11)
    story.expect("calls", trogdor.calls(NODE, 0), {"start": 1, "stop": 1})
    rule = "INPUT -p tcp -s 127.0.0.3 -j DROP -m comment --comment node03"
    added_and_deleted = [f"sudo iptables -A {rule}", f"sudo iptables -D {rule}"]
    story.expect("commands", trogdor.commands(NODE), added_and_deleted)


@trogdor_case(
    "G14",
    "WorkerManager.ShutdownManager.takeReference",
    only_virtual="a process is gone before it can refuse",
)
def agent_that_ends_takes_no_workers(trogdor: Trogdor) -> None:
    """An agent that shuts down refuses new workers."""
    trogdor.agent(NODE, "PUT", "/agent/shutdown")

    trogdor.at(1)
    reply = story.create_worker(trogdor, NODE, 0, no_op(start_ms=0, duration_ms=1))
    story.expect_refusal(reply, 500, "WorkerManager is shut down.")


def _delete_without_an_id(trogdor: Trogdor) -> None:
    story.create_worker(trogdor, NODE, 0, no_op(start_ms=0, duration_ms=_MINUTE_MS))

    trogdor.at(1)
    story.expect("answer", trogdor.agent(NODE, "DELETE", "/agent/worker"), story.OK)

    trogdor.at(2)
    story.expect_workers(trogdor, NODE, {})


@trogdor_case("G17", "AgentRestResource.destroyWorker", is_quirk=True)
def delete_without_an_id_destroys_worker_zero(trogdor: Trogdor) -> None:
    """A request to destroy a worker that names none is about the one with id 0."""
    _delete_without_an_id(trogdor)


@trogdor_case("G17.2", "AgentRest", quirks=Quirks.FIXED, only_virtual="G17 plays the same story")
def fixed_delete_without_an_id_destroys_worker_zero_too(trogdor: Trogdor) -> None:
    """With quirks fixed, a request without an id still ends the worker with id 0."""
    _delete_without_an_id(trogdor)
