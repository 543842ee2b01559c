"""Cases: what coordinator and agents find out at heartbeats, and what they never do."""

from coordinator_sim.trogdor.contract import Quirks
from coordinator_sim_conformance.trogdor_cases import story
from coordinator_sim_conformance.trogdor_cases.case import trogdor_case
from coordinator_sim_conformance.trogdor_cases.task_specs import NODE, no_op, sample
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Setup, Trogdor


@trogdor_case("F01", "NodeManager.handleMissingWorkers", setup=Setup(restarts=1))
def worker_is_created_when_its_agent_comes(trogdor: Trogdor) -> None:
    """Each heartbeat tries to create a worker again; the end of the task does not move."""
    trogdor.kill_agent(NODE)
    spec = no_op(start_ms=100, duration_ms=7_500)
    story.create(trogdor, "foo", spec)

    trogdor.at(4_500)
    trogdor.start_agent(NODE)
    trogdor.at(5_101)
    story.expect_worker(trogdor, NODE, 0, story.worker_running("foo", spec, 5_100))
    trogdor.at(6_101)
    story.expect_task(trogdor, "foo", story.running(spec, 100, "active"))

    trogdor.at(7_601)
    story.expect_worker(trogdor, NODE, 0, story.worker_done("foo", spec, 5_100, 7_600))


@trogdor_case("F02", "NodeManager.handleMissingWorkers", setup=Setup(restarts=1))
def work_begins_again_on_an_agent_that_was_restarted(trogdor: Trogdor) -> None:
    """An agent that forgot a worker gets it again, under its id, and the task runs on."""
    spec = no_op(start_ms=100, duration_ms=60_000)
    story.create(trogdor, "foo", spec)

    trogdor.at(2_500)
    story.restart_agent(trogdor, NODE)
    trogdor.at(3_101)
    story.expect_worker(trogdor, NODE, 0, story.worker_running("foo", spec, 3_100))
    trogdor.at(4_101)
    story.expect_task(trogdor, "foo", story.running(spec, 100, "active"))


@trogdor_case("F03", "CoordinatorTest.testAgentFailureAndTaskExpiry", setup=Setup(restarts=2))
def agent_that_comes_after_the_end_expires_the_task(trogdor: Trogdor) -> None:
    """A worker that is created after its task's end expires, and is not created again."""
    spec = no_op(start_ms=100, duration_ms=1_000)
    story.create(trogdor, "foo", spec)
    trogdor.at(500)
    trogdor.kill_agent(NODE)

    trogdor.at(3_000)
    trogdor.start_agent(NODE)
    trogdor.at(3_101)
    story.expect_worker(trogdor, NODE, 0, story.expired("foo", spec, 3_100))
    trogdor.at(4_101)
    over = story.done(spec, 100, 4_100, status=None, error="worker expired")
    story.expect_task(trogdor, "foo", over)

    trogdor.at(4_500)
    story.restart_agent(trogdor, NODE)
    trogdor.at(7_000)
    story.expect_workers(trogdor, NODE, {})


def _agent_lost_at_the_end(trogdor: Trogdor) -> Json:
    spec = sample(start_ms=100, duration_ms=1_900, stopTakesMs=5_000)
    story.create(trogdor, "foo", spec)
    trogdor.at(2_101)
    story.expect_task(trogdor, "foo", story.running(spec, 100, "active"))
    trogdor.at(3_000)
    story.restart_agent(trogdor, NODE)
    trogdor.at(trogdor.late_ms)
    return spec


@trogdor_case(
    "F04",
    "NodeManager.handlePresentWorkers",
    "NodeManager.handleMissingWorkers",
    is_quirk=True,
    only_virtual="it wants work whose stop takes long, which Kafka's sample task has not",
)
def agent_lost_at_the_end_leaves_the_task_running(trogdor: Trogdor) -> None:
    """A task whose agent is lost while its work ends by the duration is RUNNING for ever."""
    spec = _agent_lost_at_the_end(trogdor)

    story.expect_task(trogdor, "foo", story.running(spec, 100, "active"))


@trogdor_case("F04.2", "NodeManager", quirks=Quirks.FIXED, only_virtual="Kafka's never ends")
def fixed_agent_lost_at_the_end_ends_the_task(trogdor: Trogdor) -> None:
    """With quirks fixed, a task whose agent is lost while its work ends is over, with an error."""
    spec = _agent_lost_at_the_end(trogdor)

    error = f"the agent of {NODE} lost the worker"
    story.expect_task(trogdor, "foo", story.done(spec, 100, 3_100, status="active", error=error))


def _agent_that_never_returns(trogdor: Trogdor) -> Json:
    spec = no_op(start_ms=100, duration_ms=1_000)
    story.create(trogdor, "foo", spec)
    trogdor.at(500)
    trogdor.kill_agent(NODE)
    trogdor.at(trogdor.late_ms)
    return spec


@trogdor_case("F05", "NodeManager.NodeHeartbeat", is_quirk=True)
def agent_that_never_returns_fails_no_task(trogdor: Trogdor) -> None:
    """A task waits for an agent that is gone, for ever and past its end."""
    spec = _agent_that_never_returns(trogdor)

    story.expect_task(trogdor, "foo", story.running(spec, 100, "receiving"))


@trogdor_case("F05.2", "NodeManager", quirks=Quirks.FIXED, only_virtual="Kafka's never ends")
def fixed_agent_that_never_returns_ends_the_task(trogdor: Trogdor) -> None:
    """With quirks fixed, a task gives its agent up ten seconds after its end."""
    spec = _agent_that_never_returns(trogdor)

    error = f"the agent of {NODE} was not reached"
    story.expect_task(
        trogdor, "foo", story.done(spec, 100, 11_100, status="receiving", error=error)
    )


@trogdor_case(
    "F06",
    "NodeManager.handlePresentWorkers",
    only_virtual="the heartbeats of a process begin when it does, not when the story does",
)
def worker_of_nobody_is_stopped_when_seen_twice(trogdor: Trogdor) -> None:
    """A worker that nobody asked for is noted at one heartbeat and stopped at the next."""
    spec = no_op(start_ms=0, duration_ms=60_000)
    trogdor.at(10)
    story.create_worker(trogdor, NODE, 77, spec, "rogue")

    trogdor.at(1_600)
    story.expect_worker(trogdor, NODE, 77, story.worker_running("rogue", spec, 10))
    trogdor.at(2_001)
    story.expect_worker(trogdor, NODE, 77, story.worker_done("rogue", spec, 10, 2_000))
    story.expect_tasks(trogdor, "")


@trogdor_case(
    "F08",
    "NodeManager.handlePresentWorkers",
    "WorkerState.equals",
    only_virtual="it wants work with changing statuses, which Kafka's sample task has not",
)
def changed_status_reaches_the_task_at_the_next_heartbeat(trogdor: Trogdor) -> None:
    """A task shows the status of its worker from the next heartbeat on."""
    statuses = {"1500": {"n": 1}, "2500": {"n": 2}}
    spec = sample(start_ms=100, duration_ms=60_000, statusScript=statuses)
    story.create(trogdor, "foo", spec)

    for at_ms, status in ((2_101, {"n": 1}), (3_101, {"n": 2})):
        trogdor.at(at_ms)
        story.expect_task(trogdor, "foo", story.running(spec, 100, status))


@trogdor_case(
    "F09",
    "NodeManager.HEARTBEAT_DELAY_MS",
    "Platform.Config.TROGDOR_COORDINATOR_HEARTBEAT_MS",
    setup=Setup(
        nodes={"node02": {"trogdor.agent.port": "8888", "trogdor.coordinator.heartbeat.ms": "50"}}
    ),
    only_virtual="it wants daemons with a configuration of their own",
)
def heartbeats_come_once_a_second(trogdor: Trogdor) -> None:
    """A coordinator asks each agent once a second; the setting for it is read by nobody."""
    trogdor.at(10_500)

    story.expect("status requests", trogdor.status_requests(NODE), 10)


@trogdor_case(
    "F10",
    "WorkerManager.Worker",
    setup=Setup(clock_skew_ms={NODE: 10_000}),
    only_virtual="daemons share the clock of their host",
)
def agent_whose_clock_is_ahead_expires_tasks(trogdor: Trogdor) -> None:
    """A task's end is an instant of the coordinator's clock that the agent reads on its own."""
    spec = no_op(start_ms=100, duration_ms=5_000)
    story.create(trogdor, "foo", spec)

    trogdor.at(1_101)
    over = story.done(spec, 100, 1_100, status=None, error="worker expired")
    story.expect_task(trogdor, "foo", over)
