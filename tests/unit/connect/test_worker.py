"""A whole worker by its verbs: the order of its start, its REST API, its end."""

import json
from typing import Any

import pytest

from coordinator_sim.clients.effects import Closed, Send
from coordinator_sim.connect.effects import (
    CreateTopic,
    DescribeCluster,
    Died,
    HttpRequest,
    HttpResponse,
    Listen,
    ListEndOffsets,
    Ready,
    StartConnector,
    StartReading,
    StartTask,
    StopConnector,
    StopListening,
    TargetState,
)
from coordinator_sim.connect.plugins.file_stream import SOURCE_CLASS
from coordinator_sim.connect.start_up import StartUpTimes
from coordinator_sim.connect.stores.config_records import (
    commit_tasks_key,
    commit_value,
    connector_key,
    properties_value,
    target_state_key,
    target_state_value,
    task_key,
)
from coordinator_sim.kafka.resources import ConnectorTaskId
from coordinator_sim.messages.join_group import JoinGroupRequest
from coordinator_sim.messages.leave_group import LeaveGroupRequest
from tests.unit.connect.rest_bench import exchanges, request_of, shown
from tests.unit.connect.worker_bench import WorkerBench

CONFIGS = "connect-configs"
STARTED = TargetState.STARTED
SOURCE = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "t", "tasks.max": "1"}


def request(method: str, target: str, body: object = None) -> HttpRequest:
    """A request with a JSON body."""
    headers = {} if body is None else {"content-type": "application/json"}
    data = b"" if body is None else json.dumps(body).encode()
    return HttpRequest(method=method, target=target, headers=headers, body=data)


def body_of(response: HttpResponse) -> Any:  # noqa: ANN401 - any JSON
    """What a response says."""
    return json.loads(response.body)


def running() -> WorkerBench:
    """A worker that has started."""
    bench = WorkerBench().start()
    bench.run(1_000)
    return bench


def test_the_start_goes_through_kafkas_steps() -> None:
    """Cluster id, REST server, offset store, status store, config store, group."""
    bench = WorkerBench().start()
    order: list[str] = []
    for effect in bench.asked:
        match effect:
            case DescribeCluster() | Listen() | Ready():
                order.append(type(effect).__name__)
            case CreateTopic(topic=topic) | StartReading(topic=topic):
                order.append(f"{type(effect).__name__} {topic}")
            case Send(request=JoinGroupRequest()):
                order.append("JoinGroup")
    assert list(dict.fromkeys(order)) == [
        *("DescribeCluster", "Listen", "CreateTopic connect-offsets"),
        *("StartReading connect-offsets", "CreateTopic connect-status"),
        *("StartReading connect-status", "CreateTopic connect-configs"),
        *("StartReading connect-configs", "JoinGroup", "Ready"),
    ]


def test_the_steps_take_their_time() -> None:
    """The server answers 404 from when it listens until its resources are in."""
    bench = WorkerBench(times=StartUpTimes()).start()
    root = request("GET", "/")
    bench.run(2_149)
    assert not bench.worker.is_listening
    bench.run(1)
    assert bench.times_of(DescribeCluster) == [1_750]
    assert bench.times_of(Listen) == [2_150]
    assert bench.ask(root).status == 404
    bench.run(130 + 1_299)
    assert bench.ask(root).status == 404
    bench.run(1)
    assert bench.ask(root).status == 200


def test_a_scan_of_all_classes_takes_longer() -> None:
    """All modes but service_load look at every class."""
    bench = WorkerBench({"plugin.discovery": "only_scan"}, times=StartUpTimes()).start()
    bench.run(20_000)
    assert bench.times_of(Listen) == [9_150]


def test_a_request_waits_for_the_first_tick() -> None:
    """With its resources in, a worker that still reads its topics lets requests wait."""
    bench = WorkerBench()
    bench.held.add(ListEndOffsets)
    bench.start()
    exchange = bench.send(request("GET", "/connectors/x"))
    health = bench.send(request("GET", "/health"))
    assert bench.ask(request("GET", "/connectors")).status == 200
    bench.run(10_000)
    assert exchange not in bench.answers
    assert bench.answers[health].status == 503
    assert body_of(bench.answers[health])["status"] == "starting"
    bench.run(80_000)
    assert bench.answers[exchange].status == 500
    assert body_of(bench.answers[exchange])["message"].startswith(
        "Request timed out. The worker is currently initializing and reading to the end of "
        "internal topics, which began at 1970-01-01T00:00:00Z."
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"group.id": None}, 'ConfigException: Missing required configuration "group.id" which'),
        ({"key.converter": "No"}, "ConfigException: Invalid value No for configuration key.conv"),
        ({"heartbeat.interval.ms": "10000"}, "ConfigException: heartbeat.interval.ms=10000 must"),
        ({"plugin.discovery": "luck"}, "ConfigException: Invalid plugin.discovery value, must be"),
    ],
)
def test_a_wrong_setting_ends_the_process(settings: dict[str, str | None], reason: str) -> None:
    """Before anything is asked of a broker."""
    bench = WorkerBench(settings).start()
    (died,) = bench.asked
    assert isinstance(died, Died)
    assert died.reason.startswith(reason)
    assert bench.worker.has_ended
    assert bench.worker.next_deadline_ms() is None
    assert bench.worker.expire(1) == ()


def test_a_worker_without_coordinator_is_unhealthy() -> None:
    """What the herder's thread does not get to fails after its time; what it need not do works."""
    bench = WorkerBench()
    bench.held.add(Send)
    bench.start()
    health = bench.send(request("GET", "/health"))
    bench.run(10_000)
    assert bench.answers[health].status == 500
    assert body_of(bench.answers[health])["message"].startswith(
        "Worker was unable to handle this request and may be unable to handle other requests. "
        "The worker is currently ensuring membership in the cluster, which began at "
    )
    assert bench.ask(request("GET", "/connectors?expand=status")).status == 200


def test_without_a_cluster_id_the_process_ends() -> None:
    """The worker never listens."""
    bench = WorkerBench()
    bench.errors[DescribeCluster] = "TimeoutException"
    bench.start()
    assert bench.asked[1:] == [
        Died(
            "ConnectException: Failed to connect to and describe Kafka cluster. "
            "Check worker's broker connection and security properties."
        )
    ]


def test_a_connector_is_created_run_and_shown() -> None:
    """From POST to the status that its tasks have written."""
    bench = running()
    created = bench.ask(request("POST", "/connectors", {"name": "src", "config": SOURCE}))
    assert created.status == 201
    assert created.headers["location"] == "http://127.0.0.1:8083/connectors/src"
    bench.run(5_000)
    started = [each for each in bench.asked if isinstance(each, StartConnector | StartTask)]
    assert [type(each).__name__ for each in started] == ["StartConnector", "StartTask"]
    status = body_of(bench.ask(request("GET", "/connectors/src/status")))
    assert status == exchanges()["status"]["response"]["body"]
    tasks = body_of(bench.ask(request("GET", "/connectors/src/tasks")))
    assert tasks == exchanges()["tasks"]["response"]["body"]
    again = bench.ask(request("POST", "/connectors", {"name": "src", "config": SOURCE}))
    assert shown(again) == exchanges()["create again"]["response"]


def test_a_connector_that_asks_has_only_other_tasks_written() -> None:
    """Equal task configurations are not written: that ends a loop of reconfigurations."""
    bench = running()
    bench.ask(request("POST", "/connectors", {"name": "src", "config": SOURCE}))
    bench.run(5_000)
    configs = bench.topics["connect-configs"]
    written = len(configs)
    bench.ask_for_tasks("src")
    bench.run(5_000)
    assert len(configs) == written
    bench.write("connect-configs", b"task-src-0", b'{"properties":{"file":"another"}}')
    bench.write("connect-configs", b"commit-src", b'{"tasks":1}')
    bench.run(5_000)
    bench.ask_for_tasks("src")
    bench.run(5_000)
    assert [record.key for record in configs[written + 2 :]] == [b"task-src-0", b"commit-src"]


@pytest.mark.parametrize(
    "name",
    [
        *("health", "list empty", "no class", "unknown class", "missing topic", "tasks.max zero"),
        *("tasks.max text", "null config value", "no name", "blank name", "sink without topics"),
        *("get unknown", "config unknown", "status unknown", "tasks unknown"),
        *("task status unknown", "patch unknown", "delete unknown", "pause unknown"),
        *("stop unknown", "restart unknown", "restart unknown tasks", "restart task of unknown"),
        *("offsets unknown", "topics unknown", "internal unsigned", "internal bad mac"),
        *("internal other algorithm", "internal unknown algorithm", "internal bad base64"),
        "fence unsigned",
    ],
)
def test_refusals_are_those_of_a_real_worker(name: str) -> None:
    """Herder and REST together answer what a worker of 4.3.1 answered."""
    exchange = exchanges()[name]
    assert shown(running().ask(request_of(exchange))) == exchange["response"]


def worker_without_plugins() -> WorkerBench:
    """A worker that lacks the class of two connectors, which another has configured."""
    bench = WorkerBench(plugins=()).start()
    bench.run(1_000)
    for name in ("a", "b"):
        properties = {**SOURCE, "name": name}
        bench.write(CONFIGS, connector_key(name).encode(), properties_value(properties))
        bench.write(CONFIGS, target_state_key(name).encode(), target_state_value(STARTED))
    task = {**SOURCE, "name": "b", "task.class": SOURCE_CLASS.replace("Connector", "Task")}
    key = task_key(ConnectorTaskId("b", 0)).encode()
    bench.write(CONFIGS, key, properties_value(task))
    bench.write(CONFIGS, commit_tasks_key("b").encode(), commit_value(1))
    bench.run(10_000)
    return bench


def test_without_its_class_a_connector_fails_as_on_a_real_worker() -> None:
    """Status, type, restart and the refusal of a configuration are the recorded ones."""
    bench = worker_without_plugins()
    for name, exchange in exchanges("rest-missing-plugin-4.3.1").items():
        ours = shown(bench.ask(request_of(exchange)))
        if name == "status b":
            # The connector itself ran on the other worker there.
            ours["body"]["connector"] = exchange["response"]["body"]["connector"]
        if name == "restart tasks a":
            # The leader there was the other worker, which had the class.
            ours["body"]["type"] = "source"
        assert ours == exchange["response"], name


def test_a_failed_task_is_shown_and_restarted() -> None:
    """What the driver reports is in the status; a restart of what failed starts it again."""
    bench = running()
    bench.ask(request("POST", "/connectors", {"name": "src", "config": SOURCE}))
    bench.run(5_000)
    task = ConnectorTaskId("src", 0)
    bench.fail(task, "java.lang.RuntimeException: no more\n")
    state = body_of(bench.ask(request("GET", "/connectors/src/tasks/0/status")))
    assert (state["state"], state["trace"]) == ("FAILED", "java.lang.RuntimeException: no more\n")
    target = "/connectors/src/restart?includeTasks=true&onlyFailed=true"
    plan = bench.ask(request("POST", target))
    assert plan.status == 202
    assert body_of(plan)["tasks"][0]["state"] == "RESTARTING"
    bench.run(5_000)
    state = body_of(bench.ask(request("GET", "/connectors/src/tasks/0/status")))
    assert state["state"] == "RUNNING"


def test_an_orderly_end_stops_the_server_first_and_leaves_the_group_last() -> None:
    """No request is taken in once the end has begun."""
    bench = running()
    bench.ask(request("POST", "/connectors", {"name": "src", "config": SOURCE}))
    bench.run(5_000)
    before = len(bench.asked)
    bench.stop()
    bench.run(30_000)
    ends = [
        type(each.request if isinstance(each, Send) else each)
        for each in bench.asked[before:]
        if isinstance(each, StopListening | StopConnector | Closed)
        or (isinstance(each, Send) and isinstance(each.request, LeaveGroupRequest))
    ]
    assert ends == [StopListening, StopConnector, LeaveGroupRequest, Closed]
    assert bench.send(request("GET", "/")) not in bench.answers


def test_a_request_in_progress_keeps_the_end_waiting() -> None:
    """At most a minute, then the herder is stopped all the same."""
    bench = WorkerBench()
    bench.held.add(Send)
    bench.start()
    bench.send(request("GET", "/connectors/x"))
    bench.stop()
    bench.run(59_999)
    assert not bench.worker.has_ended
    bench.run(60_000)
    assert bench.worker.has_ended


def test_a_stop_during_the_start_ends_the_process_at_once() -> None:
    """A stop before the shutdown hook is installed ends the process without a shutdown."""
    bench = WorkerBench(times=StartUpTimes()).start()
    bench.run(1_000)
    bench.stop()
    assert bench.asked == [Closed()]
