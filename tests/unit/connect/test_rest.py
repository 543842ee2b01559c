"""Connect's REST resources: each answer is, field by field, the one a real worker gave (4.3.1)."""

import json

import pytest

from coordinator_sim.connect.effects import HttpRequest, TargetState
from coordinator_sim.connect.herding import requests
from coordinator_sim.connect.rest.connectors import TopicTracking
from coordinator_sim.kafka.resources import ConnectorTaskId
from tests.unit.connect.rest_bench import RestBench, error, exchanges, request_of, shown

RECORDED = exchanges()
WORKER = "127.0.0.1:8083"
SRC_0 = ConnectorTaskId("src", 0)


def info(name: str) -> requests.ConnectorInfo:
    """The connector in a recorded answer."""
    body = RECORDED[name]["response"]["body"]
    return requests.ConnectorInfo(
        name=body["name"],
        config=body["config"],
        tasks=tuple(ConnectorTaskId(task["connector"], task["task"]) for task in body["tasks"]),
        type=requests.ConnectorType(body["type"]),
    )


def state(name: str) -> requests.ConnectorStateInfo:
    """The states in a recorded answer."""
    body = RECORDED[name]["response"]["body"]
    return requests.ConnectorStateInfo(
        name=body["name"],
        connector=requests.WorkState(
            state=body["connector"]["state"], worker_id=WORKER, version="4.3.1"
        ),
        tasks=tuple(
            requests.TaskState(
                task=task["id"], state=task["state"], worker_id=WORKER, version="4.3.1"
            )
            for task in body["tasks"]
        ),
        type=requests.ConnectorType(body["type"]),
    )


def task_infos() -> tuple[requests.TaskInfo, ...]:
    """The tasks in a recorded answer."""
    body = RECORDED["tasks"]["response"]["body"]
    return tuple(requests.TaskInfo(SRC_0, each["config"]) for each in body)


def refused(kind: requests.ErrorKind, name: str) -> requests.RequestFailed:
    """A failure with the message of a recorded answer."""
    return requests.RequestFailed(kind=kind, message=RECORDED[name]["response"]["body"]["message"])


POSITION = requests.ConnectorOffset({"filename": "in.txt"}, {"position": 6})
OUTCOMES: dict[str, requests.Outcome | None] = {
    "root": None,
    "health": requests.Done(),
    "list empty": (),
    "list": ("src",),
    "trailing slash": ("snk",),
    "expand unknown": ("src",),
    "plugins": None,
    "plugins all": None,
    "plugin config unknown": None,
    "unknown path": None,
    "unknown subpath": None,
    "wrong method": None,
    "wrong method delete": None,
    "wrong content type": None,
    "internal get": None,
    "name mismatch": None,
    "null config value": None,
    "create": requests.Created(created=True, info=info("create")),
    "create again": refused(requests.ErrorKind.ALREADY_EXISTS, "create again"),
    "no class": refused(requests.ErrorKind.BAD_REQUEST, "no class"),
    "missing topic": refused(requests.ErrorKind.BAD_REQUEST, "missing topic"),
    "get connector": info("get connector"),
    "get unknown": refused(requests.ErrorKind.NOT_FOUND, "get unknown"),
    "get config": RECORDED["get config"]["response"]["body"],
    "status": state("status"),
    "status unknown": refused(requests.ErrorKind.NOT_FOUND, "status unknown"),
    "tasks": task_infos(),
    "task status": requests.TaskState(task=0, state="RUNNING", worker_id=WORKER, version="4.3.1"),
    "task status unknown": refused(requests.ErrorKind.NOT_FOUND, "task status unknown"),
    "task status no number": None,
    "tasks-config": None,
    "topics": requests.ActiveTopics("src", ("t",)),
    "topics unknown": requests.ActiveTopics("nope", ()),
    "put same config": requests.Created(created=False, info=info("put same config")),
    "put new connector": requests.Created(created=True, info=info("put new connector")),
    "patch": requests.Created(created=False, info=info("patch")),
    "patch unknown": refused(requests.ErrorKind.NOT_FOUND, "patch unknown"),
    "restart connector": requests.Done(),
    "restart with tasks": state("restart with tasks"),
    "restart only failed": state("restart only failed"),
    "restart unknown": refused(requests.ErrorKind.NOT_FOUND, "restart unknown"),
    "restart bad flag": requests.Done(),
    "restart task": requests.Done(),
    "restart task unknown": refused(requests.ErrorKind.NOT_FOUND, "restart task unknown"),
    "pause": requests.Done(),
    "pause unknown": refused(requests.ErrorKind.NOT_FOUND, "pause unknown"),
    "resume": requests.Done(),
    "stop": requests.Done(),
    "offsets": requests.ConnectorOffsets((POSITION,)),
    "offsets reset": requests.ConnectorOffsets(()),
    "alter": requests.Message("The offsets for this connector have been altered successfully"),
    "alter while running": refused(requests.ErrorKind.BAD_REQUEST, "alter while running"),
    "alter empty": None,
    "alter no offsets": None,
    "alter negative": refused(requests.ErrorKind.CONNECT, "alter negative"),
    "reset": requests.Message("The offsets for this connector have been reset successfully"),
    "topics reset": requests.Done(),
    "delete": requests.Created(created=False),
    "delete unknown": refused(requests.ErrorKind.NOT_FOUND, "delete unknown"),
    "internal unsigned": refused(requests.ErrorKind.BAD_REQUEST, "internal unsigned"),
    "internal bad mac": requests.RequestFailed(
        kind=requests.ErrorKind.CONNECT_REST,
        message="Internal request contained invalid signature.",
        rest_status=403,
    ),
    "internal unknown algorithm": None,
    "internal bad base64": None,
    "fence unsigned": refused(requests.ErrorKind.BAD_REQUEST, "fence unsigned"),
    "validate mismatch": None,
    "validate no class": None,
    "logger root": None,
    "logger unknown": None,
    "logger set none": None,
    "logger set bad": None,
    "logger set cluster": requests.Done(),
    "options": None,
    "head": ("snk", "src"),
}
"""Recorded exchange -> what the herder said in it; None where it was not asked."""


@pytest.mark.parametrize("name", OUTCOMES)
def test_the_answer_is_that_of_a_real_worker(name: str) -> None:
    """Status, content type, location and body are the recorded ones."""
    exchange = RECORDED[name]
    ours = shown(RestBench().ask(request_of(exchange), OUTCOMES[name]))
    theirs = exchange["response"]
    assert ours == theirs
    if isinstance(theirs["body"], dict):
        assert list(ours["body"]) == list(theirs["body"])


@pytest.mark.parametrize(
    "name",
    ["no body", "bad json", "body is list", "unknown field", "no config", "bad initial state"],
)
def test_a_body_that_cannot_be_read_is_an_internal_error(name: str) -> None:
    """The status is Java's; the message is our own."""
    response = shown(RestBench().ask(request_of(RECORDED[name])))
    assert response["status"] == RECORDED[name]["response"]["status"] == 500
    assert response["body"]["error_code"] == 500


@pytest.mark.parametrize("half", [b"\\ud800", b"\xed\xa0\x80"])
def test_half_a_surrogate_pair_is_an_internal_error(half: bytes) -> None:
    """As in Java, which reads it and fails to write it."""
    body = b'{"name":"a","config":{"file":"%s"}}' % half
    headers = {"content-type": "application/json"}
    request = HttpRequest(method="POST", target="/connectors", headers=headers, body=body)

    response = RestBench().ask(request)
    assert response.status == 500
    assert b"Request body is no JSON" in response.body


def test_the_page_of_the_bare_server_is_no_markup_of_the_client() -> None:
    """Jetty escapes the target that it shows."""
    response = RestBench(initialized=False).get("/<script>")
    assert b"/&lt;script&gt;</td>" in response.body


def test_before_the_resources_are_in_every_path_is_unknown() -> None:
    """The bare server answers with a page, not with JSON."""
    bench = RestBench(initialized=False)
    response = bench.get("/connectors")
    recorded = RECORDED["before resources"]["response"]
    assert response.status == recorded["status"] == 404
    assert dict(response.headers) == recorded["headers"]
    head = recorded["body"].split("<hr/>")[0]
    assert response.body.decode().startswith(head)
    bench.initialize()
    assert bench.get("/connectors", ()).status == 200


def test_an_encoded_slash_in_a_name_is_ambiguous() -> None:
    """The server itself refuses it, with a page."""
    response = RestBench().ask(request_of(RECORDED["name with slash"]))
    recorded = RECORDED["name with slash"]["response"]
    assert response.status == recorded["status"]
    assert response.body.decode().startswith(recorded["body"].split("<hr/>")[0])


def test_expansions_show_states_and_settings_of_each_connector() -> None:
    """A connector that goes meanwhile is left out; an unknown expansion shows nothing."""
    bench = RestBench()
    recorded = RECORDED["expand"]["response"]["body"]["src"]

    def answer(request: requests.Request) -> requests.Outcome:
        match type(request).__name__, getattr(request, "connector", ""):
            case "ListConnectors", _:
                return ("gone", "src")
            case _, "gone":
                return requests.RequestFailed(
                    kind=requests.ErrorKind.NOT_FOUND, message="No status found"
                )
            case "GetConnectorStatus", _:
                return state("status")
        return requests.ConnectorInfo(
            name="src",
            config=recorded["info"]["config"],
            tasks=(SRC_0,),
            type=requests.ConnectorType.SOURCE,
        )

    bench.herder.answer = answer
    effects = bench.start(
        HttpRequest(method="GET", target="/connectors?expand=status&expand=info&expand=x")
    )
    (only,) = effects
    body = json.loads(only.response.body)  # type: ignore[union-attr]
    assert body == {"src": recorded}


def test_what_the_herder_is_asked_says_what_the_user_asked() -> None:
    """Names, flags, states and bodies arrive as the request had them."""
    bench = RestBench()
    body = b'{"name":" x ","config":{"connector.class":"C","tasks.max":2,"on":true}}'
    json_body = {"content-type": "application/json"}
    bench.start(HttpRequest(method="POST", target="/connectors", headers=json_body, body=body))
    stopped = b'{"name":"x","config":{},"initial_state":"stopped"}'
    bench.start(HttpRequest(method="POST", target="/connectors", headers=json_body, body=stopped))
    patch = b'{"a":null,"b":"1"}'
    bench.start(
        HttpRequest(
            method="PATCH", target="/connectors/a%20b/config", headers=json_body, body=patch
        )
    )
    for target in ("x/restart", "x/restart?onlyFailed=TRUE", "x/tasks/3/restart"):
        bench.start(HttpRequest(method="POST", target=f"/connectors/{target}"))
    offsets = b'{"offsets":[{"partition":{"p":1},"offset":null}]}'
    bench.start(
        HttpRequest(method="PATCH", target="/connectors/x/offsets", headers=json_body, body=offsets)
    )
    config = {"connector.class": "C", "tasks.max": "2", "on": "true", "name": "x"}
    assert bench.herder.asked == [
        requests.PutConnectorConfig(connector="x", config=config, allow_replace=False),
        requests.PutConnectorConfig(
            connector="x",
            config={"name": "x"},
            allow_replace=False,
            target_state=TargetState.STOPPED,
        ),
        requests.PatchConnectorConfig(connector="a b", patch={"a": None, "b": "1"}),
        requests.RestartConnector("x"),
        requests.RestartConnectorAndTasks(connector="x", only_failed=True),
        requests.RestartTask(ConnectorTaskId("x", 3)),
        requests.AlterOffsets(connector="x", offsets=(requests.ConnectorOffset({"p": 1}, None),)),
    ]


def test_tasks_config_is_there_where_the_release_has_it() -> None:
    """Before 4.0 the configurations of all tasks came as one map."""
    response = RestBench(has_tasks_config=True).get("/connectors/src/tasks-config", task_infos())
    assert json.loads(response.body) == {"src-0": task_infos()[0].config}


def test_topics_need_tracking() -> None:
    """Neither reading nor resetting works with tracking off, resetting not with it forbidden."""
    off = RestBench(tracking=TopicTracking(is_enabled=False))
    disabled = error(403, "Topic tracking is disabled.")
    assert shown(off.get("/connectors/x/topics")) == disabled
    reset = HttpRequest(method="PUT", target="/connectors/x/topics/reset")
    assert shown(off.ask(reset)) == disabled
    kept = RestBench(tracking=TopicTracking(allows_reset=False))
    assert shown(kept.ask(reset)) == error(403, "Topic tracking reset is disabled.")


def test_a_failed_task_shows_its_trace() -> None:
    """The trace is there only when there is one, the version always."""
    failed = requests.TaskState(
        task=0, state="FAILED", worker_id=WORKER, trace="java.lang.Error: no\n"
    )
    response = RestBench().get("/connectors/src/tasks/0/status", failed)
    assert json.loads(response.body) == {
        "id": 0,
        "state": "FAILED",
        "worker_id": WORKER,
        "version": None,
        "trace": "java.lang.Error: no\n",
    }


def test_loggers_keep_what_was_set_here_or_by_the_cluster() -> None:
    """A namespace reaches what begins with it; the cluster's levels are followed."""
    bench = RestBench()
    headers = {"content-type": "application/json"}

    def put(target: str, level: str) -> list[str]:
        body = json.dumps({"level": level}).encode()
        request = HttpRequest(method="PUT", target=target, headers=headers, body=body)
        reached: list[str] = json.loads(bench.ask(request).body)
        return reached

    assert put("/admin/loggers/a.bc", "debug") == ["a.bc"]
    assert put("/admin/loggers/a.b", "INFO") == ["a.b", "a.bc"]
    bench.herder.logger_levels = {"z": "TRACE"}
    assert json.loads(bench.get("/admin/loggers").body) == {
        "a.b": {"level": "INFO", "last_modified": 0},
        "a.bc": {"level": "INFO", "last_modified": 0},
        "root": {"level": "ERROR", "last_modified": None},
        "z": {"level": "TRACE", "last_modified": 0},
    }
    assert put("/admin/loggers/root", "WARN") == ["a.b", "a.bc", "root", "z"]
