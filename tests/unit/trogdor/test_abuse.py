"""Malformed requests, and very many good ones: clear refusals, no hang, bounded memory."""

import resource
import time
import tracemalloc
from typing import Any

import pytest

from coordinator_sim.sim.environment import Environment
from coordinator_sim.trogdor.agent import Agent, Progress, Work
from coordinator_sim.trogdor.contract import Quirks, StartWork
from coordinator_sim.trogdor.specs import SampleTaskSpec
from coordinator_sim.trogdor.topology import topology_of
from coordinator_sim.trogdor.virtual_work import virtual_work
from coordinator_sim_conformance.trogdor_cases.trogdor import Reply, Setup
from coordinator_sim_conformance.trogdor_cases.virtual import VirtualNode, VirtualTrogdor
from tests.unit.trogdor.lying_agents import NO_OP

STOPPED_PROCESS = "org.apache.kafka.trogdor.fault.ProcessStopFaultSpec"
PARTITION = "org.apache.kafka.trogdor.fault.NetworkPartitionFaultSpec"
PRODUCER = "org.apache.kafka.trogdor.workload.ProduceBenchSpec"
SAMPLE = "org.apache.kafka.trogdor.task.SampleTaskSpec"
NODE = "node02"
CREATE = ("POST", "/coordinator/task/create")
DIGITS = b"9" * 5_000


def no_op(**fields: object) -> dict[str, object]:
    """A task that does nothing for a minute."""
    return {"class": NO_OP, "startMs": 0, "durationMs": 60_000, **fields}


def create(world: VirtualTrogdor, task_id: str, spec: dict[str, Any]) -> Reply:
    """Ask for a task."""
    return world.coordinator(*CREATE, {"id": task_id, "spec": spec})


def on_task(before: bytes, after: bytes = b"") -> bytes:
    """A creation whose spec has these bytes inside."""
    return b'{"id":"t","spec":{"class":"%s",%b%b}}' % (NO_OP.encode(), before, after)


# -- malformed requests ------------------------------------------------------------------------

MALFORMED = {
    "nothing": (b"", 500),
    "blanks": (b" " * 100_000, 500),
    "null": (b"null", 500),
    "half an object": (b'{"id":"t","spec":{"class":', 400),
    "half a name": (b'{"id', 500),
    "a list": (b"[]", 400),
    "a text": (b'"t"', 400),
    "no UTF-8": (b'{"id":"\xff\xfe"}', 500),
    "a comment without an end": (b"/* {}", 500),
    "a control character": (b'{"id":"\x00"}', 400),
    "lists in lists": (on_task(b'"startMs":' + b"[" * 100_000), 400),
    "objects in objects": (on_task(b'"startMs":' + b'{"a":' * 100_000), 400),
    "101 objects deep": (on_task(b'"x":' + b'{"a":' * 101 + b"1" + b"}" * 101), 400),
    "a number of 5000 digits": (on_task(b'"startMs":' + DIGITS), 400),
    "a text of 5000 digits": (on_task(b'"startMs":"' + DIGITS + b'"'), 400),
    "a text of 5000 other digits": (on_task(b'"startMs":"' + "٣".encode() * 5_000 + b'"'), 400),
    "a huge exponent": (on_task(b'"startMs":1e999999999'), 400),
    "no number": (on_task(b'"startMs":NaN'), 400),
    "an unknown property": (on_task(b'"colour":"red"'), 400),
    "100,000 unknown properties": (
        on_task(b",".join(b'"p%d":1' % each for each in range(100_000))),
        400,
    ),
    "an unknown class": (b'{"id":"t","spec":{"class":"x.Y"}}', 501),
    "a class with a long name": (b'{"id":"t","spec":{"class":"' + b"x" * 1_000_000 + b'"}}', 501),
    "a class that is no task": (
        b'{"id":"t","spec":{"class":"org.apache.kafka.trogdor.task.TaskSpec"}}',
        501,
    ),
    "a class that is a list": (b'{"id":"t","spec":{"class":[]}}', 501),
    "no class": (b'{"id":"t","spec":{}}', 501),
    "no spec": (b'{"id":"t"}', 500),
    "no id": (b'{"spec":{"class":"%s"}}' % NO_OP.encode(), 500),
    "an empty id": (b'{"id":"","spec":{"class":"%s"}}' % NO_OP.encode(), 400),
}


@pytest.mark.parametrize(
    ("body", "code"), [pytest.param(*each, id=name) for name, each in MALFORMED.items()]
)
def test_a_malformed_request_is_refused_in_a_line(body: bytes, code: int) -> None:
    """The status of Kafka, and a message that is short whatever was sent; nothing is created."""
    world = VirtualTrogdor(Setup())
    reply = world.raw("", *CREATE, body, "application/json")

    assert reply.status == code
    assert reply.body["code"] == code
    assert 0 < len(reply.body["message"]) < 300
    assert world.coordinator("GET", "/coordinator/tasks").body == {}


TARGETS = [
    ("GET", "//[", 404),
    ("GET", "/coordinator/tasks/?%ff=%ff&&&==&taskId", 200),
    ("GET", "/coordinator/tasks?firstStartMs=" + "9" * 5_000, 500),
    ("GET", "/coordinator/tasks?state=" + "X" * 5_000, 400),
    ("GET", "/coordinator/tasks/%00%ff", 404),
    ("DELETE", "/coordinator/tasks?taskId=%ED%A0%80", 200),
    ("BREW", "/coordinator/tasks", 500),
    ("GET", "", 404),
    ("GET", "?", 404),
]


@pytest.mark.parametrize(("method", "target", "code"), TARGETS)
def test_an_odd_target_is_answered(method: str, target: str, code: int) -> None:
    """No path and no query is too odd for an answer."""
    world = VirtualTrogdor(Setup())
    assert world.raw("", method, target, b"", None).status == code


def test_zeros_that_nobody_sent_are_bounded() -> None:
    """A spec of forty bytes does not become gigabytes; that a value is repeated costs nothing."""
    world = VirtualTrogdor(Setup())

    def reply(generator: dict[str, Any]) -> Reply:
        return create(world, "t", {"class": PRODUCER, "valueGenerator": generator})

    large = {"type": "constant", "size": 2**31 - 1}
    refused = reply(large)
    assert refused.status == 400
    assert "2147483647 bytes of zeros: at most 1048576" in refused.body["message"]
    component = {"percent": 1, "component": {"type": "constant", "size": 1_000_000}}
    assert reply({"type": "randomComponent", "components": [component] * 100}).status == 400
    assert reply({**large, "value": "AQ=="}).status == 200


def test_an_id_may_be_anything_that_json_can_say() -> None:
    """Blanks, quotes, half a pair of surrogates: stored, shown, stopped and destroyed."""
    world = VirtualTrogdor(Setup())
    for body in (b'" "', b'"\\ud800"', b'"\\u0000"', b'"\\"}"', '"\U0001d11e"'.encode(), b"5"):
        request = b'{"id":%b,"spec":{"class":"%b","durationMs":1}}' % (body, NO_OP.encode())
        assert world.raw("", *CREATE, request, "application/json").status == 200
        stop = b'{"id":%b}' % body
        stopped = world.raw("", "PUT", "/coordinator/task/stop", stop, "application/json")
        assert stopped.status == 200
    world.at(3_000)

    tasks = world.coordinator("GET", "/coordinator/tasks").body["tasks"]
    assert len(tasks) == 6


# -- the same id -------------------------------------------------------------------------------


def test_the_same_id_a_thousand_times() -> None:
    """With its spec nothing happens, with another one 409: the task runs once."""
    world = VirtualTrogdor(Setup())
    for _ in range(500):
        assert create(world, "t", no_op()).status == 200
        refused = create(world, "t", no_op(durationMs=1))
        assert refused.status == 409
        assert refused.body["message"].startswith("Task ID t already exists")
    world.at(1_000)

    assert world.calls(NODE, 0) == {"start": 1, "stop": 0}
    assert world.calls(NODE, 1) == {"start": 0, "stop": 0}


# -- agents that die ---------------------------------------------------------------------------


@pytest.mark.parametrize("quirks", list(Quirks))
def test_an_agent_that_dies_while_it_starts_work_is_asked_again(quirks: Quirks) -> None:
    """QUIRK: as in Kafka, an agent that is back runs the work from its start, to the same end."""
    world = VirtualTrogdor(Setup(), quirks)
    create(world, "t", {"class": SAMPLE, "durationMs": 10_000, "startTakesMs": 500})
    world.at(200)
    world.kill_agent(NODE)
    world.start_agent(NODE)
    world.at(12_000)

    task = world.coordinator("GET", "/coordinator/tasks/t").body
    assert task["state"] == "DONE"
    assert world.calls(NODE, 0) == {"start": 2, "stop": 1}


# -- very many ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "agent_count"), [(2_000, 200), pytest.param(10_000, 1_000, marks=pytest.mark.nightly)]
)
def test_many_tasks_on_many_agents_end(count: int, agent_count: int) -> None:
    """All are done, in less than 6 ms and 20 kB each, the agents among it."""
    agents = [f"n{each:04}" for each in range(agent_count)]
    world = VirtualTrogdor(Setup(agents=tuple(agents)))
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    for each in range(count - 10):
        node = agents[each % agent_count]
        spec = {"class": STOPPED_PROCESS, "durationMs": 2_000, "nodeNames": [node]}
        assert create(world, f"t{each}", spec).status == 200
    for each in range(10):
        assert create(world, f"everywhere{each}", no_op(durationMs=2_000)).status == 200
    world.at(5_000)

    tasks = world.coordinator("GET", "/coordinator/tasks?state=DONE").body["tasks"]
    assert len(tasks) == count
    assert len(tasks["everywhere0"]["status"]) == agent_count
    assert time.process_time() - began < 0.006 * count
    grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    assert grown_kb < 20 * count


def test_a_partition_of_a_thousand_nodes_is_made_and_taken_back() -> None:
    """Each node runs a command for every other one."""
    near, far = ["near"], [f"far{each:03}" for each in range(999)]
    nodes = {name: {"trogdor.agent.port": "8888"} for name in (*near, *far)}
    world = VirtualTrogdor(Setup(agents=("near",), nodes=nodes))
    create(world, "t", {"class": PARTITION, "durationMs": 2_000, "partitions": [near, far]})
    world.at(4_000)

    ran = world.commands("near")
    assert [sum(action in each for each in ran) for action in ("-A INPUT", "-D INPUT")] == [
        999,
        999,
    ]


def test_thousands_of_tasks_that_wait_for_one_agent_end() -> None:
    """Their agent was away; it creates all workers in one heartbeat."""
    world = VirtualTrogdor(Setup())
    world.kill_agent(NODE)
    for each in range(2_000):
        create(world, f"t{each}", no_op(durationMs=2_000))
    world.start_agent(NODE)
    world.at(5_000)

    tasks = world.coordinator("GET", "/coordinator/tasks?state=DONE").body["tasks"]
    assert len(tasks) == 2_000
    assert world.status_requests(NODE) == 2_005


@pytest.mark.parametrize("fails", [False, True])
def test_workers_that_are_destroyed_take_no_memory(fails: bool) -> None:
    """An agent's work that was to last for ever, or whose start failed, leaves nothing."""
    environment = Environment()
    nodes = topology_of({NODE: {}})
    host = VirtualNode(NODE, nodes, Setup(), {})

    def work_of(start: StartWork, progress: Progress) -> Work:
        work = virtual_work(host, environment, start, progress)
        assert work is not None
        return work

    agent = Agent(environment, work_of)
    spec = SampleTaskSpec(duration_ms=10**15, start_throws="no" if fails else "")

    def rounds(first: int, count: int) -> None:
        for each in range(first, first + count):
            agent.create_worker(each, "t", spec, lambda: None)
            agent.stop_worker(each, must_destroy=True)

    rounds(0, 1_000)
    tracemalloc.start()
    rounds(1_000, 2_000)
    grown = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert agent.workers() == {}
    assert grown < 20_000
