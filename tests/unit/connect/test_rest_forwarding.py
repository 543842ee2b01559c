"""Requests that another worker must do: two hops, then 409; and the limits of waiting.

C-HERD-12 from the side of REST: who is asked next, and by which words a request gives up.
"""

import json

import msgspec
import pytest

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.connect.herding import requests
from coordinator_sim.connect.rest.forwarding import instant_text
from tests.unit.connect.rest_bench import RestBench, TickStage, answer_in, call_in, error, shown

JSON_BODY = {"content-type": "application/json"}
LEADER = "http://leader:8083/"
NOT_LEADER = requests.RequestFailed(
    kind=requests.ErrorKind.NOT_LEADER, message="Only the leader may.", forward_url=LEADER
)
RESTART = HttpRequest(method="POST", target="/connectors/a%20b/restart")
INFO = {"name": "x", "config": {"name": "x"}, "tasks": [{"connector": "x", "task": 0}]}


def json_answer(status: int, body: object) -> HttpResponse:
    """What another worker answers."""
    return HttpResponse(status=status, headers=JSON_BODY, body=json.dumps(body).encode())


@pytest.mark.parametrize(("given", "sent"), [("", "true"), ("?forward=true", "false")])
@pytest.mark.parametrize("kind", [requests.ErrorKind.NOT_LEADER, requests.ErrorKind.NOT_ASSIGNED])
def test_a_request_goes_over_two_hops(given: str, sent: str, kind: requests.ErrorKind) -> None:
    """The first worker says that the next may forward too, the second that it may not."""
    bench = RestBench()
    bench.herder.answer = lambda _: msgspec.structs.replace(NOT_LEADER, kind=kind)
    request = msgspec.structs.replace(RESTART, target=RESTART.target + given)
    effects = bench.start(request)
    call = call_in(effects)
    assert call.url == "http://leader:8083"
    assert call.request.method == "POST"
    assert call.request.target == f"/connectors/a%20b/restart?forward={sent}"
    assert bench.forwarded(effects, HttpResponse(status=204)) == HttpResponse(status=204)


def test_the_third_worker_gives_up() -> None:
    """After two hops the cluster is rebalancing, most likely."""
    request = msgspec.structs.replace(RESTART, target=RESTART.target + "?forward=false")
    assert shown(RestBench().ask(request, NOT_LEADER)) == error(
        409, "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
    )


def test_without_a_known_leader_nobody_is_asked() -> None:
    """The url is unknown while the worker is in no generation."""
    lost = msgspec.structs.replace(NOT_LEADER, forward_url=None)
    assert shown(RestBench().ask(RESTART, lost)) == error(
        409,
        "Cannot complete request momentarily due to no known leader URL, "
        "likely because a rebalance was underway.",
    )


def test_a_rebalance_that_is_needed_is_a_conflict() -> None:
    """A request that could be forwarded names the stale configuration; a read shows its message."""
    needed = requests.RequestFailed(
        kind=requests.ErrorKind.REBALANCE_NEEDED, message="Request cannot be completed"
    )
    assert shown(RestBench().ask(RESTART, needed)) == error(
        409,
        "Cannot complete request momentarily due to stale configuration "
        "(typically caused by a concurrent config change)",
    )


def test_a_created_connector_is_told_by_the_worker_that_was_asked() -> None:
    """Status and location are as if the worker had created it itself."""
    bench = RestBench()
    bench.herder.answer = lambda _: NOT_LEADER
    body = b'{"name":"x","config":{"a":"1"},"initial_state":"paused"}'
    headers = {**JSON_BODY, "authorization": "Basic abc", "cookie": "no", "host": "me:8083"}
    effects = bench.start(
        HttpRequest(method="POST", target="/connectors", headers=headers, body=body)
    )
    request = call_in(effects).request
    assert request.target == "/connectors?forward=true"
    assert json.loads(request.body) == {
        "name": "x",
        "config": {"a": "1", "name": "x"},
        "initial_state": "PAUSED",
    }
    assert request.headers == {
        "accept": "application/json",
        "user-agent": "kafka-connect",
        "authorization": "Basic abc",
        "content-type": "application/json",
    }
    answer = bench.forwarded(effects, json_answer(201, {**INFO, "type": "sink"}))
    assert answer.status == 201
    assert answer.headers["location"] == "http://me:8083/connectors/x"
    assert json.loads(answer.body) == {**INFO, "type": "sink"}


def test_a_restart_with_tasks_keeps_its_flags() -> None:
    """The flags go along in the order of Java's map, the answer comes back as it is."""
    bench = RestBench()
    bench.herder.answer = lambda _: NOT_LEADER
    target = "/connectors/x/restart?includeTasks=true"
    effects = bench.start(HttpRequest(method="POST", target=target))
    sent = call_in(effects).request.target
    assert sent == "/connectors/x/restart?forward=true&includeTasks=true&onlyFailed=false"
    answer = bench.forwarded(effects, json_answer(202, {"name": "x", "extra": 1}))
    assert shown(answer)["body"] == {"name": "x", "extra": 1}
    assert answer.status == 202


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (json_answer(404, {"error_code": 404, "message": "Connector x not found"}), 404),
        (HttpResponse(status=302), 500),
        (HttpResponse(status=404, body=b"<html>"), 500),
    ],
)
def test_what_another_worker_refuses_is_refused(answer: HttpResponse, expected: int) -> None:
    """Another's errors are passed on; a page instead of JSON is an error of the connection."""
    bench = RestBench()
    bench.herder.answer = lambda _: NOT_LEADER
    effects = bench.start(HttpRequest(method="DELETE", target="/connectors/x"))
    assert bench.forwarded(effects, answer).status == expected


def test_a_worker_that_cannot_be_reached_is_an_error_of_the_connection() -> None:
    """The reason is the one that the driver gives."""
    bench = RestBench()
    bench.herder.answer = lambda _: NOT_LEADER
    call = call_in(bench.start(RESTART))
    bench.outbox.answered(call.token, error="java.net.ConnectException: Connection refused")
    assert shown(answer_in(bench.run(0))) == error(
        500,
        "IO Error trying to forward REST request: java.net.ConnectException: Connection refused",
    )


def test_nobody_waits_longer_than_ninety_seconds() -> None:
    """The message says what the herder's thread is doing, if that is known."""
    bench = RestBench()
    assert bench.start(RESTART, now_ms=0) == ()
    assert bench.run(89_999) == ()
    assert shown(answer_in(bench.run(90_000))) == error(500, "Request timed out")
    bench.herder.stage = TickStage("ensuring membership in the cluster", 1_500)
    bench.start(RESTART, now_ms=90_000)
    assert shown(answer_in(bench.run(180_000))) == error(
        500,
        "Request timed out. The worker is currently ensuring membership in the cluster, "
        "which began at 1970-01-01T00:00:01.500Z.",
    )
    bench.herder.stage = TickStage("polling the group coordinator", 1_000, 2_000)
    bench.start(RESTART, now_ms=180_000)
    assert shown(answer_in(bench.run(270_000))) == error(
        500,
        "Request timed out. The last operation the worker completed was polling the group "
        "coordinator, which began at 1970-01-01T00:00:01Z and completed at 1970-01-01T00:00:02Z.",
    )


@pytest.mark.parametrize(
    ("is_ready", "status", "word"), [(False, 503, "starting"), (True, 500, "un")]
)
def test_a_health_check_waits_ten_seconds(is_ready: bool, status: int, word: str) -> None:
    """A worker that has not started is unavailable, one that has is unhealthy."""
    bench = RestBench()
    bench.herder.is_ready = is_ready
    bench.herder.stage = TickStage("awaiting startup", 0)
    health = HttpRequest(method="GET", target="/health")
    assert bench.start(health) == ()
    assert bench.run(9_999) == ()
    answer = shown(answer_in(bench.run(10_000)))
    assert answer["status"] == status
    assert answer["body"]["status"].startswith(word)
    assert answer["body"]["message"].endswith(
        "The worker is currently awaiting startup, which began at 1970-01-01T00:00:00Z."
    )


def test_an_outcome_that_comes_late_is_an_answer_all_the_same() -> None:
    """Requests wait side by side; each is answered when its outcome is there."""
    bench = RestBench()
    bench.start(RESTART)
    assert bench.get("/connectors", ("x",)).status == 200
    info = requests.ConnectorInfo(name="x", config={}, tasks=(), type=requests.ConnectorType.SINK)
    bench.herder.answer = lambda _: requests.Created(created=False, info=info)
    put = HttpRequest(method="PUT", target="/connectors/x/config", headers=JSON_BODY, body=b"{}")
    assert answer_in(bench.start(put)).status == 200


def test_instants_are_printed_as_java_prints_them() -> None:
    """Milliseconds only where there are any."""
    assert instant_text(1_795_269_981_270) == "2026-11-21T14:06:21.270Z"
    assert instant_text(1_795_269_981_000) == "2026-11-21T14:06:21Z"
