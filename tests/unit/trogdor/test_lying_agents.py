"""Agents that fail, lie, are late or silent: tasks say what happened, and other nodes go on."""

import json
import tracemalloc
from typing import Any

import pytest

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.trogdor.contract import Quirks
from tests.unit.trogdor.lying_agents import HonestAgent, LyingAgents, Says, ok, status, worker

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
STATUS = "GET /agent/status"
CREATE = "POST /agent/worker/create"
STOP = "PUT /agent/worker/stop"
BOTH = pytest.mark.parametrize("quirks", list(Quirks))
DIGITS = "9" * 5_000
NESTED = b"[" * 100_000


def telling(*bodies: object) -> Says:
    """An agent whose statuses are these, the last of them for ever; it agrees to all else."""
    left = list(bodies)

    def says(request: HttpRequest) -> HttpResponse:
        if request.target != "/agent/status":
            return ok()
        told = left.pop(0) if len(left) > 1 else left[0]
        return told if isinstance(told, HttpResponse) else ok(told)

    return says


# -- agents that fail --------------------------------------------------------------------------


def test_an_agent_that_answers_500_for_ever_leaves_its_task_running() -> None:
    """QUIRK: as in Kafka, the coordinator asks once a second and a task never ends by that."""
    world = LyingAgents({"a": lambda _request: HttpResponse(status=500, body=b"no")})
    world.create("t")
    world.at(HOUR_MS)

    assert world.task("t")["state"] == "RUNNING"
    assert len(world.asked) == HOUR_MS // 1_000 + 1


def test_an_agent_that_answers_500_for_ever_fails_its_task_where_that_is_fixed() -> None:
    """Ten seconds after its end the task is given up."""
    world = LyingAgents({"a": lambda _request: HttpResponse(status=500)}, Quirks.FIXED)
    world.create("t")
    world.at(MINUTE_MS + 11_000)

    shown = world.task("t")
    assert (shown["state"], shown["error"]) == ("DONE", "the agent of a was not reached")


def refusing(request: HttpRequest) -> HttpResponse:
    """An agent without workers that refuses each."""
    if request.target == "/agent/status":
        return status({})
    return HttpResponse(status=500, body=b"no worker today")


def test_an_agent_that_refuses_a_worker_for_ever_is_asked_for_ever() -> None:
    """QUIRK: as in Kafka, the task is RUNNING for ever, long past its end."""
    world = LyingAgents({"a": refusing})
    world.create("t")
    world.at(HOUR_MS)

    assert world.task("t")["state"] == "RUNNING"
    assert len(world.asked_of("a", CREATE)) == HOUR_MS // 1_000 + 1


def test_a_worker_that_is_refused_for_ever_is_given_up_where_that_is_fixed() -> None:
    """The task ends ten seconds after its end, with the words of the agent."""
    world = LyingAgents({"a": refusing}, Quirks.FIXED)
    world.create("t")
    world.at(MINUTE_MS + 9_000)
    assert world.task("t")["state"] == "RUNNING"
    world.at(MINUTE_MS + 11_000)

    shown = world.task("t")
    assert shown["state"] == "DONE"
    assert shown["error"] == ("the agent of a did not create the worker: HTTP 500: no worker today")
    world.at(HOUR_MS)
    assert len(world.asked_of("a", CREATE)) < 100


# -- agents that talk nonsense -----------------------------------------------------------------

GARBAGE = {
    "nothing": b"",
    "half": b'{"workers":{"0":{"state":"RUN',
    "null": b"null",
    "a list": b"[]",
    "a text": b'"x"',
    "no UTF-8": b'{"workers":{"0":"\xff"}}',
    "a page": b"<html><body>It works!</body></html>",
    "too deep": b'{"workers":{"0":' + NESTED,
    "too deep a status": json.dumps({"workers": {"0": worker("RUNNING", "t", status="@")}})
    .encode()
    .replace(b'"@"', NESTED),
    "workers in a list": b'{"workers":[]}',
    "a worker that is null": b'{"workers":{"0":null}}',
    "an id in words": json.dumps({"workers": {"zero": worker("DONE", "t")}}).encode(),
    "an id beyond 64 bits": json.dumps({"workers": {str(1 << 63): worker("DONE", "t")}}).encode(),
    "an id of 5000 digits": json.dumps({"workers": {DIGITS: worker("DONE", "t")}}).encode(),
    "an instant of 5000 digits": json.dumps(
        {"workers": {"0": worker("DONE", "t", doneMs=DIGITS)}}
    ).encode(),
    "an unknown state": json.dumps({"workers": {"0": worker("LOST", "t")}}).encode(),
    "a state that is a list": json.dumps(
        {"workers": {"0": {**worker("DONE", "t"), "state": [["DONE"]]}}}
    ).encode(),
    "an unknown class": json.dumps(
        {"workers": {"0": {**worker("DONE", "t"), "spec": {"class": "x.Y"}}}}
    ).encode(),
    "no spec": b'{"workers":{"0":{"state":"DONE","taskId":"t"}}}',
    "more than there is": b'{"workers":{},"agents":{}}',
}


@BOTH
@pytest.mark.parametrize("body", [pytest.param(each, id=name) for name, each in GARBAGE.items()])
def test_nonsense_is_a_missed_heartbeat(body: bytes, quirks: Quirks) -> None:
    """Nothing is made of such an answer; the next one that can be read counts."""
    done = status({"0": worker("DONE", "t", doneMs=7, status="fine")})
    world = LyingAgents({"a": telling(body, body, body, done)}, quirks)
    world.create("t")
    world.at(2_500)
    assert world.task("t")["state"] == "RUNNING"
    world.at(3_500)

    shown = world.task("t")
    assert (shown["state"], shown["status"]) == ("DONE", "fine")


def test_worker_ids_are_texts_and_may_be_odd_ones() -> None:
    """`+0` is worker 0, and `-5` one like others, as for Jackson."""
    told = status({"+0": worker("RUNNING", "t", status="seen"), "-5": worker("RUNNING", "other")})
    world = LyingAgents({"a": telling(told)})
    world.create("t")
    world.at(1_500)

    assert world.task("t")["status"] == "seen"
    assert world.asked_of("a", STOP) == [1_000], "the unknown worker is stopped at second sight"


@pytest.mark.parametrize(
    "value", ["x" * 10_000_000, list(range(100_000)), {str(each): {} for each in range(50_000)}]
)
def test_a_large_status_is_taken_and_shown(value: object) -> None:
    """Ten megabytes of text, or very many values: read once, not whenever it is told again."""
    told = status({"0": worker("RUNNING", "t", status=value)})
    world = LyingAgents({"a": telling(told)})
    world.create("t")
    world.at(30_000)

    assert world.task("t")["status"] == value


def test_a_status_that_only_python_thinks_the_same_is_another_one() -> None:
    """1, true and 1.0 are three values of JSON."""
    told = [status({"0": worker("RUNNING", "t", status=each)}) for each in (1, True, 1.0)]
    world = LyingAgents({"a": telling(status({}), *told)})
    world.create("t")
    for at_ms, shown in ((1_500, "1"), (2_500, "true"), (3_500, "1.0")):
        world.at(at_ms)
        assert json.dumps(world.task("t")["status"]) == shown


# -- agents that lie ---------------------------------------------------------------------------


@BOTH
def test_workers_that_nobody_asked_for_are_stopped(quirks: Quirks) -> None:
    """Each at its second sighting, and at each heartbeat as long as it goes on."""
    told = {str(each): worker("RUNNING", "of nobody") for each in range(100)}
    world = LyingAgents({"a": telling(status(told))}, quirks)
    world.at(1_500)
    assert world.asked_of("a", STOP) == []
    world.at(3_500)

    assert world.asked_of("a", STOP) == [2_000] * 100 + [3_000] * 100


def inventing(count: int, phase: str) -> Says:
    """An agent that has other workers at every heartbeat."""
    said = iter(range(1_000_000_000))

    def says(request: HttpRequest) -> HttpResponse:
        if request.target != "/agent/status":
            return ok()
        return status({str(next(said)): worker(phase, "of nobody") for _ in range(count)})

    return says


def grown_kb(beats: int, says: Says, quirks: Quirks) -> float:
    """How much memory a coordinator needs more after so many heartbeats, than after ten."""
    world = LyingAgents({"a": says}, quirks)
    world.at(10_000)
    world.asked.clear()
    tracemalloc.start()
    try:
        world.at((10 + beats) * 1_000)
        world.asked.clear()
        return tracemalloc.get_traced_memory()[0] / 1_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("phase", ["RUNNING", "DONE"])
def test_invented_workers_are_forgotten_where_that_is_fixed(phase: str) -> None:
    """3,000 workers that came and went take no memory."""
    assert grown_kb(300, inventing(10, phase), Quirks.FIXED) < 500


def test_invented_workers_are_kept_as_kafka_keeps_them() -> None:
    """QUIRK: a worker that was told once is remembered until the coordinator ends."""
    assert grown_kb(300, inventing(10, "DONE"), Quirks.KAFKA) > 1_000


@BOTH
def test_a_state_for_another_task_is_believed(quirks: Quirks) -> None:
    """QUIRK: as in Kafka, a worker belongs to the task that its agent last named.

    Worker 0 is of `victim`, says the agent, and ends: `victim` is over before it began, and is not
    run at its time. Source: TaskManager.UpdateWorkerState.
    """
    lies = [
        status({"0": worker("RUNNING", "victim")}),
        status({"0": worker("DONE", "victim", doneMs=1)}),
    ]
    world = LyingAgents({"a": telling(*lies)}, quirks)
    world.create("victim", start_ms=30_000)
    world.create("t")
    world.at(20_000)
    assert world.task("victim")["state"] == "DONE"
    assert world.task("t")["state"] == "RUNNING"
    world.at(MINUTE_MS)

    assert world.task("victim")["startedMs"] == -1
    assert world.asked_of("a", CREATE) == []


@BOTH
def test_a_state_for_an_unknown_task_stops_the_worker(quirks: Quirks) -> None:
    """As in Kafka: the second change cannot be told to any task."""
    lies = [
        status({"0": worker("RUNNING", "nowhere", status=each)}) for each in ("1", "2", "3", "4")
    ]
    world = LyingAgents({"a": telling(*lies)}, quirks)
    world.create("t")
    world.at(5_500)

    assert world.task("t")["state"] == "RUNNING"
    assert world.asked_of("a", STOP)


@BOTH
def test_an_agent_may_end_the_worker_of_another_node(quirks: Quirks) -> None:
    """QUIRK: as in Kafka, ids are of the whole cluster and nobody looks which agent tells."""
    running = worker("RUNNING", "t")
    liar = telling(
        status({"0": running}),
        status({"0": running, "1": running}),
        status({"0": running, "1": worker("DONE", "t", doneMs=1, error="so it is")}),
    )
    honest = HonestAgent()
    world = LyingAgents({"a": liar, "b": honest}, quirks)
    world.create("t")
    world.at(1_500)
    assert honest.workers["1"]["state"] == "RUNNING"
    world.at(2_500)

    assert world.task("t")["state"] == "STOPPING"
    assert honest.workers["1"]["state"] == "RUNNING"


def risen(quirks: Quirks) -> dict[str, Any]:
    """A task whose worker was over at 1,000 ms, runs again, and is over with an error."""
    lies = [
        status({"0": worker("DONE", "t", doneMs=1, status="over")}),
        status({"0": worker("RUNNING", "t", status="alive")}),
        status({"0": worker("DONE", "t", doneMs=1, status="over", error="twice")}),
    ]
    world = LyingAgents({"a": telling(status({}), *lies)}, quirks)
    world.create("t")
    world.at(10_000)
    return world.task("t")


def test_a_worker_that_comes_back_from_the_dead_ends_its_task_once_more() -> None:
    """QUIRK: as in Kafka, the task stays DONE, but its end and its error are those of the second.

    Source: TaskManager.handleWorkerCompletion.
    """
    shown = risen(Quirks.KAFKA)
    assert (shown["state"], shown["doneMs"], shown["error"]) == ("DONE", 3_000, "twice")


def test_a_worker_that_comes_back_from_the_dead_is_ignored_where_that_is_fixed() -> None:
    """What is over stays as it was."""
    shown = risen(Quirks.FIXED)
    assert (shown["state"], shown["doneMs"], shown["status"]) == ("DONE", 1_000, "over")
    assert "error" not in shown


# -- agents that are late or silent ------------------------------------------------------------


def test_late_answers_hold_up_their_own_node_alone() -> None:
    """An answer that takes longer than a heartbeat: the next one begins when it has come."""
    world = LyingAgents({"a": HonestAgent(), "b": HonestAgent()}, late_ms=1_500)
    world.create("t")
    world.at(20_000)

    assert world.task("t")["state"] == "RUNNING"
    assert world.asked_of("a", STATUS) == world.asked_of("b", STATUS)
    beats = world.asked_of("a", STATUS)
    assert beats[:4] == [0, 3_000, 4_500, 6_000], "creating took one more answer"
    world.stop("t")
    world.at(30_000)
    assert world.task("t")["state"] == "DONE"


@BOTH
def test_a_silent_agent_holds_up_nobody_else(quirks: Quirks) -> None:
    """QUIRK: Kafka waits for the answer for ever; with quirks fixed the daemon's client does not.

    Tasks on other nodes go on; a stop of the silent node's task waits in its mailbox.
    """
    world = LyingAgents({"a": lambda _request: None, "b": HonestAgent()}, quirks)
    world.create("t")
    world.at(10_000)
    world.stop("t")
    world.at(HOUR_MS)

    assert len(world.asked_of("a", STATUS)) == 1
    assert len(world.asked_of("b", STATUS)) >= HOUR_MS // 1_000
    shown = world.task("t")
    assert shown["state"] == "STOPPING"
    assert shown["status"]["a"] == "receiving"


# -- many of them ------------------------------------------------------------------------------


def test_forgotten_tasks_of_the_future_take_no_memory() -> None:
    """Created for later and destroyed, ten thousand times."""
    world = LyingAgents({"a": HonestAgent()})

    def rounds(count: int) -> None:
        for each in range(count):
            world.create(f"t{each}", start_ms=HOUR_MS)
            if each % 2:
                world.stop(f"t{each}")
            world.destroy(f"t{each}")

    rounds(500)
    tracemalloc.start()
    rounds(10_000)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert grown < 100_000


def test_work_that_has_waited_is_done_in_one_heartbeat() -> None:
    """A thousand tasks for an agent that was away."""
    honest, away = HonestAgent(), [True]

    def says(request: HttpRequest) -> HttpResponse:
        return HttpResponse(status=503) if away[0] else honest(request)

    world = LyingAgents({"a": says})
    for each in range(1_000):
        world.create(f"t{each}")
    away[0] = False
    world.at(1_000)

    assert len(honest.workers) == 1_000
    world.at(2_000)
    assert world.task("t999")["state"] == "RUNNING"
