"""Cases: what REST answers beside tasks and workers."""

from coordinator_sim_conformance.trogdor_cases import story
from coordinator_sim_conformance.trogdor_cases.case import trogdor_case
from coordinator_sim_conformance.trogdor_cases.task_specs import NODE, no_op
from coordinator_sim_conformance.trogdor_cases.trogdor import Trogdor


@trogdor_case("H04", "CoordinatorTest.testTasksRequest")
def tasks_are_found_by_id_and_by_actual_start(trogdor: Trogdor) -> None:
    """Tasks are found by their ids and by when they started, which one that waits has not."""
    story.create(trogdor, "foo", no_op(start_ms=1_000, duration_ms=100_000))
    story.create(trogdor, "bar", no_op(start_ms=30_000, duration_ms=1))

    story.expect_tasks(trogdor, "?firstStartMs=100&firstEndMs=100")
    story.expect_tasks(trogdor, "?taskId=foo&taskId=baz", "foo")
    story.expect_tasks(trogdor, "", "foo", "bar")

    trogdor.at(2_000)
    story.expect_tasks(trogdor, "?firstStartMs=800", "foo")
    story.expect_tasks(trogdor, "?firstStartMs=1900")
    story.expect_tasks(trogdor, "?state=PENDING", "bar")


@trogdor_case("H05", "JsonUtil.JSON_SERDE")
def empty_collections_are_left_out(trogdor: Trogdor) -> None:
    """An answer leaves collections out that are empty."""
    story.expect_answer(trogdor.coordinator("GET", "/coordinator/tasks"), 200, {})
    story.expect_workers(trogdor, NODE, {})


@trogdor_case(
    "H08",
    "NodeManager.beginShutdown",
    only_virtual="it ends a coordinator that other cases share",
)
def agents_go_on_without_their_coordinator(trogdor: Trogdor) -> None:
    """A coordinator that ends leaves its agents at their work, unless it is told otherwise."""
    spec = no_op(start_ms=100, duration_ms=60_000)
    story.create(trogdor, "foo", spec)

    trogdor.at(2_000)
    reply = trogdor.coordinator("PUT", "/coordinator/shutdown", {"stopAgents": False})
    story.expect("answer", reply, story.OK)

    trogdor.at(50_000)
    story.expect_worker(trogdor, NODE, 0, story.worker_running("foo", spec, 100))
    trogdor.at(60_101)
    story.expect_worker(trogdor, NODE, 0, story.worker_done("foo", spec, 100, 60_100))


@trogdor_case("H09", "CoordinatorRestResource.beginShutdown", "CoordinatorClient.shutdown")
def shutdown_without_a_body_fails(trogdor: Trogdor) -> None:
    """A shutdown without a body, which is what Kafka's client sends, fails and ends nothing."""
    story.expect_refusal(trogdor.coordinator("PUT", "/coordinator/shutdown"), 500)

    story.expect_tasks(trogdor, "")
