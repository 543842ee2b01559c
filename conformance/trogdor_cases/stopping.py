"""Cases: a task is stopped, and where Kafka's then hangs."""

from coordinator_sim.trogdor.contract import Quirks
from coordinator_sim_conformance.trogdor_cases.case import trogdor_case
from coordinator_sim_conformance.trogdor_cases.story import (
    NEVER,
    OK,
    WHATEVER,
    OneOf,
    create,
    destroy,
    done,
    expect,
    expect_no_task,
    expect_refusal,
    expect_task,
    expect_worker,
    expect_workers,
    restart_agent,
    stop,
    stopping,
    worker_done,
)
from coordinator_sim_conformance.trogdor_cases.task_specs import NODE, no_op, sample
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Setup, Trogdor


@trogdor_case("C01", "TaskManager.CancelTask")
def stopped_before_its_start_a_task_never_runs(trogdor: Trogdor) -> None:
    """A task that is stopped while it is PENDING is done at once, and no agent runs it."""
    spec = no_op(start_ms=2_000, duration_ms=10)
    create(trogdor, "foo", spec)

    trogdor.at(10)
    expect("answer", stop(trogdor, "foo"), OK)
    expect_task(trogdor, "foo", done(spec, NEVER, 10, cancelled=True))

    trogdor.at(3_000)
    expect_workers(trogdor, NODE, {})


@trogdor_case("C02", "TaskManager.CancelTask", "NodeManager.StopWorker")
def stop_reaches_the_agent_at_once_and_is_seen_a_beat_later(trogdor: Trogdor) -> None:
    """A stopped task stays STOPPING until the next heartbeat after its workers ended."""
    spec = no_op(start_ms=100, duration_ms=60_000)
    create(trogdor, "foo", spec)

    trogdor.at(2_000)
    expect("answer", stop(trogdor, "foo"), OK)
    trogdor.at(2_001)
    expect_task(trogdor, "foo", stopping(spec, 100, "active"))
    expect_worker(trogdor, NODE, 0, worker_done("foo", spec, 100, 2_000))

    trogdor.at(3_001)
    expect_task(trogdor, "foo", done(spec, 100, 3_000, status="done", cancelled=True))


@trogdor_case("C03", "TaskManager.CancelTask")
def stopping_an_unknown_task_is_no_error(trogdor: Trogdor) -> None:
    """Stopping an unknown task succeeds."""
    expect("answer", stop(trogdor, "nope"), OK)


@trogdor_case("C04", "TaskManager.CancelTask")
def stop_needs_an_id(trogdor: Trogdor) -> None:
    """A request to stop is refused where its id is empty or left out."""
    refused = "Invalid empty ID in stopTask request."

    expect_refusal(stop(trogdor, ""), 400, refused)
    expect_refusal(trogdor.coordinator("PUT", "/coordinator/task/stop", {}), 400, refused)


@trogdor_case("C05", "TaskManager.CancelTask")
def stopping_a_finished_task_changes_nothing(trogdor: Trogdor) -> None:
    """A task that had finished does not become cancelled."""
    spec = no_op(start_ms=100, duration_ms=500)
    create(trogdor, "foo", spec)

    trogdor.at(2_000)
    expect("answer", stop(trogdor, "foo"), OK)
    expect_task(trogdor, "foo", done(spec, 100, 1_100, status="done"))


@trogdor_case("C07", "CoordinatorTest.testTaskCancellation")
def stop_looks_at_the_agent_first(trogdor: Trogdor) -> None:
    """A task whose work had ended unseen is done by the heartbeat that a stop forces."""
    spec = no_op(start_ms=100, duration_ms=1_050)
    create(trogdor, "foo", spec)

    trogdor.at(1_500)
    stop(trogdor, "foo")

    trogdor.at(1_501)
    expect_task(trogdor, "foo", done(spec, 100, 1_500, status="done", cancelled=True))


def _stopped_before_its_agent_was_there(trogdor: Trogdor) -> Json:
    trogdor.kill_agent(NODE)
    spec = no_op(start_ms=100, duration_ms=60_000)
    create(trogdor, "foo", spec)
    trogdor.at(500)
    stop(trogdor, "foo")
    trogdor.at(2_000)
    trogdor.start_agent(NODE)
    trogdor.at(trogdor.late_ms)
    return spec


@trogdor_case("C08", "NodeManager.handleMissingWorkers", setup=Setup(restarts=1), is_quirk=True)
def stopped_before_its_agent_was_there_a_task_hangs(trogdor: Trogdor) -> None:
    """A task that is stopped before its agent was ever reached stays STOPPING for ever."""
    spec = _stopped_before_its_agent_was_there(trogdor)

    expect_task(trogdor, "foo", stopping(spec, 100, "receiving"))
    expect("answer", destroy(trogdor, "foo"), OK)
    expect_no_task(trogdor, "foo")


@trogdor_case("C08.2", "NodeManager", quirks=Quirks.FIXED, only_virtual="Kafka's never ends")
def fixed_stopped_before_its_agent_was_there_a_task_ends(trogdor: Trogdor) -> None:
    """With quirks fixed, a task that no agent heard of is over when its agent is reached."""
    spec = _stopped_before_its_agent_was_there(trogdor)

    over = done(spec, 100, 2_500, status="receiving", cancelled=True)
    expect_task(trogdor, "foo", over)


_SLOW_TO_STOP = {"stopTakesMs": 5_000}


def _agent_lost_while_it_stops(trogdor: Trogdor) -> Json:
    spec = sample(start_ms=100, duration_ms=60_000, **_SLOW_TO_STOP)
    create(trogdor, "foo", spec)
    trogdor.at(2_000)
    stop(trogdor, "foo")
    trogdor.at(3_500)
    restart_agent(trogdor, NODE)
    trogdor.at(trogdor.late_ms)
    return spec


@trogdor_case(
    "C09",
    "NodeManager.handleMissingWorkers",
    is_quirk=True,
    only_virtual="it wants work whose stop takes long, which Kafka's sample task has not",
)
def agent_lost_while_it_stops_hangs_the_task(trogdor: Trogdor) -> None:
    """A task whose agent is started anew between its stop and its end stays STOPPING for ever."""
    spec = _agent_lost_while_it_stops(trogdor)

    expect_task(trogdor, "foo", stopping(spec, 100, "active"))


@trogdor_case("C09.2", "NodeManager", quirks=Quirks.FIXED, only_virtual="Kafka's never ends")
def fixed_agent_lost_while_it_stops_ends_the_task(trogdor: Trogdor) -> None:
    """With quirks fixed, a worker that its agent lost while stopping is over, with an error."""
    spec = _agent_lost_while_it_stops(trogdor)

    error = f"the agent of {NODE} lost the worker"
    over = done(spec, 100, 4_000, status="active", error=error, cancelled=True)
    expect_task(trogdor, "foo", over)


def _stopped_as_it_starts(trogdor: Trogdor) -> Json:
    spec = no_op(start_ms=100, duration_ms=60_000)
    create(trogdor, "foo", spec)
    trogdor.at(100)
    stop(trogdor, "foo")
    trogdor.at(5_000)
    return spec


@trogdor_case(
    "C10",
    "NodeManager.CreateWorker",
    "NodeManager.StopWorker",
    is_quirk=True,
    only_virtual="start and stop have to meet in one millisecond",
)
def stopped_as_it_starts_a_task_ends_or_hangs(trogdor: Trogdor) -> None:
    """A stop in the millisecond of the start ends the task or leaves it STOPPING for ever."""
    spec = _stopped_as_it_starts(trogdor)

    over = done(spec, 100, WHATEVER, status=WHATEVER, cancelled=True)
    never_ran = done(spec, NEVER, 100, cancelled=True)
    hangs = stopping(spec, 100, "receiving")
    expect_task(trogdor, "foo", OneOf((over, never_ran, hangs)))


@trogdor_case(
    "C10.2",
    "NodeManager",
    quirks=Quirks.FIXED,
    only_virtual="start and stop have to meet in one millisecond",
)
def fixed_stopped_as_it_starts_a_task_ends(trogdor: Trogdor) -> None:
    """With quirks fixed, a stop in the millisecond of the start ends the task."""
    spec = _stopped_as_it_starts(trogdor)

    expect_task(trogdor, "foo", done(spec, 100, WHATEVER, status=WHATEVER, cancelled=True))
