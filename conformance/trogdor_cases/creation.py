"""Cases: what happens to a request for a new task."""

from coordinator_sim_conformance.trogdor_cases import story
from coordinator_sim_conformance.trogdor_cases.case import trogdor_case
from coordinator_sim_conformance.trogdor_cases.task_specs import (
    NODE,
    no_op,
    partition,
    starting_at,
)
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Trogdor


@trogdor_case("A01", "CoordinatorTest.testCreateTask")
def new_task_waits_for_its_start(trogdor: Trogdor) -> None:
    """A task is PENDING until its start, and no agent knows of it."""
    spec = no_op(start_ms=600, duration_ms=5_050)

    story.expect("answer", story.create(trogdor, "foo", spec), story.OK)

    trogdor.at(1)
    story.expect_task(trogdor, "foo", story.pending(spec))
    story.expect_workers(trogdor, NODE, {})


@trogdor_case("A04", "TaskManager.CreateTask")
def finished_task_keeps_its_id(trogdor: Trogdor) -> None:
    """The id of a finished task is taken, and asking for the same task again restarts nothing."""
    spec = no_op(start_ms=100, duration_ms=0)
    story.create(trogdor, "foo", spec)

    trogdor.at(2_000)
    story.expect_refusal(story.create(trogdor, "foo", no_op(start_ms=3_000, duration_ms=10)), 409)
    story.expect("the same again", story.create(trogdor, "foo", spec), story.OK)

    trogdor.at(4_000)
    over = story.done(spec, 100, 1_100, status=None, error="worker expired")
    story.expect_task(trogdor, "foo", over)


@trogdor_case("A05", "CoordinatorTest.testTaskRequestWithOldStartMsGetsUpdated")
def start_in_the_past_becomes_the_present(trogdor: Trogdor) -> None:
    """A task whose start has passed gets the present as its start."""
    spec = no_op(start_ms=1, duration_ms=500)

    trogdor.at(552)
    story.create(trogdor, "foo", spec)

    trogdor.at(553)
    story.expect_task(trogdor, "foo", story.running(starting_at(spec, 552), 552, "receiving"))


@trogdor_case("A06", "TaskManager.ManagedTask.originalSpec")
def requests_are_compared_as_they_were_sent(trogdor: Trogdor) -> None:
    """A repeated request is compared with the first one, not with the spec that is shown."""
    spec = no_op(start_ms=0, duration_ms=60_000)
    trogdor.at(500)
    story.create(trogdor, "foo", spec)

    trogdor.at(900)
    story.expect("the same again", story.create(trogdor, "foo", spec), story.OK)
    shown = starting_at(spec, 500)
    story.expect_task(trogdor, "foo", story.running(shown, 500, "receiving"))
    story.expect_refusal(story.create(trogdor, "foo", shown), 409)


@trogdor_case("A07", "CoordinatorTest.testTaskRequestWithFutureStartMsDoesNotGetRun")
def start_in_the_future_is_kept(trogdor: Trogdor) -> None:
    """A start in the future stays as it was asked for."""
    spec = no_op(start_ms=2_000, duration_ms=500)

    trogdor.at(999)
    story.create(trogdor, "foo", spec)

    story.expect_task(trogdor, "foo", story.pending(spec))


@trogdor_case(
    "A07.2",
    "CoordinatorTest.testTaskRequestWithFutureStartMsDoesNotGetRun",
    only_virtual="one millisecond decides",
)
def start_in_the_next_millisecond_is_future(trogdor: Trogdor) -> None:
    """A task whose start is a millisecond away waits for it."""
    spec = no_op(start_ms=1_000, duration_ms=500)

    trogdor.at(999)
    story.create(trogdor, "foo", spec)
    story.expect_task(trogdor, "foo", story.pending(spec))

    trogdor.at(1_000)
    story.expect_task(trogdor, "foo", story.running(spec, 1_000, "receiving"))


@trogdor_case("A08", "TaskManager.CreateTask")
def empty_id_is_refused(trogdor: Trogdor) -> None:
    """A task needs an id that is not empty."""
    reply = story.create(trogdor, "", no_op(start_ms=0, duration_ms=1))

    story.expect_refusal(reply, 400, "Invalid empty ID in createTask request.")


@trogdor_case("A09", "TaskSpecTest.testTaskSpecSerialization", "RestExceptionMapper.toResponse")
def spec_without_a_known_class_is_not_implemented(trogdor: Trogdor) -> None:
    """A spec that names no class, or one that does not exist, is answered with 501."""
    nameless = {"startMs": 0, "durationMs": 1}

    for spec in (nameless, nameless | {"class": "no.such.Spec"}):
        story.expect_refusal(story.create(trogdor, "a", spec), 501)


@trogdor_case("A10", "JsonUtil.JSON_SERDE")
def unknown_property_is_refused(trogdor: Trogdor) -> None:
    """A property that a spec does not have is refused."""
    reply = story.create(trogdor, "a", no_op(start_ms=0, duration_ms=1) | {"bogus": 1})

    story.expect_refusal(reply, 400)


@trogdor_case("A12", "NetworkPartitionFaultSpec.partitionSets")
def node_named_twice_makes_no_partition(trogdor: Trogdor) -> None:
    """A node may be named once in a partition; otherwise the task fails as it is created."""
    spec = partition([NODE, NODE], start_ms=0, duration_ms=1_000)

    story.expect("answer", story.create(trogdor, "np", spec), story.OK)

    message = f"Failed to create TaskController: Node {NODE} appears in more than one partition."
    story.expect_task(trogdor, "np", _never_ran(error=message))


@trogdor_case("A14", "WorkerManager.createWorker")
def task_without_duration_expires(trogdor: Trogdor) -> None:
    """A duration of 0 is over before the agent begins, which is an error."""
    spec = no_op(start_ms=100, duration_ms=0)
    story.create(trogdor, "foo", spec)

    trogdor.at(101)
    story.expect_worker(trogdor, NODE, 0, story.expired("foo", spec, 100))

    trogdor.at(1_101)
    over = story.done(spec, 100, 1_100, status=None, error="worker expired")
    story.expect_task(trogdor, "foo", over)


def _never_ran(*, error: str) -> Json:
    """A task that failed as it was created."""
    return story.done(story.WHATEVER, story.NEVER, 0, error=error)
