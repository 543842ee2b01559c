"""Scenarios as lists of Trogdor tasks: read, written, and run."""

from typing import Any

import msgspec
import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario.files import scenario_from_json
from coordinator_sim.sim.scenario.happenings import (
    CrashBroker,
    DegradeNetwork,
    DuplicateResponse,
    FailOffsetsReads,
    PartitionNetwork,
    PauseBroker,
    PauseMember,
    ReorderResponses,
    SetClock,
    StopMember,
)
from coordinator_sim.sim.scenario.tasks import tasks_to_json
from coordinator_sim.sim.scenario.world import ConnectGroupSpec, ConsumerGroupSpec
from coordinator_sim.trace.events import Event
from coordinator_sim_scenarios.catalog import all_scenarios, scenario_named
from tests.simulated import events_of
from tests.unit.sim.test_workloads import run, said

WORKLOAD = "org.apache.kafka.trogdor.workload"
FAULT = "org.apache.kafka.trogdor.fault"
WORLD = {
    "name": "tasks",
    "title": "Tasks",
    "story": "Two consumers.",
    "duration_ms": 60_000,
    "brokers": 2,
    "topics": [{"name": "t", "partitions": 2}],
    "groups": [
        {
            "type": "consumer",
            "group_id": "g",
            "topics": ["t"],
            "members": [{"name": "c1"}, {"name": "c2"}],
        }
    ],
}


def file_of(*tasks: tuple[str, dict[str, Any]], **more: object) -> bytes:
    """A task file."""
    listed = [{"id": task_id, "spec": spec} for task_id, spec in tasks]
    return msgspec.json.encode({**WORLD, "tasks": listed, **more})


@pytest.mark.parametrize("name", all_scenarios())
def test_a_scenario_written_as_tasks_is_the_same_scenario(name: str) -> None:
    """Every happening is a task; one after the other they make the world that was written."""
    scenario = scenario_named(name)
    read = scenario_from_json(tasks_to_json(scenario), name)
    in_order = tuple(sorted(scenario.happenings, key=lambda each: each.at_ms))
    assert read.happenings == in_order
    assert msgspec.structs.replace(read, happenings=scenario.happenings, tasks=()) == scenario


def test_faults_that_the_catalogue_has_not_are_tasks_too() -> None:
    """Written and read again, each is the happening that it was."""
    plain = scenario_from_json(file_of())
    faults = (
        DuplicateResponse(at_ms=1, member="c1", api="HEARTBEAT"),
        ReorderResponses(at_ms=2, group_id="g", role="leader", api="SYNC_GROUP", within_ms=5),
        DegradeNetwork(at_ms=3, for_ms=9, latency_ms=4, broker=1),
        PauseBroker(at_ms=4, for_ms=7, broker=1),
        FailOffsetsReads(at_ms=5, for_ms=8, broker=2),
        SetClock(at_ms=6, broker=2, skew_ms=9),
    )
    scenario = msgspec.structs.replace(plain, happenings=faults)

    assert scenario_from_json(tasks_to_json(scenario), "f").happenings == faults


DEGRADED = f"{FAULT}.DegradedNetworkFaultSpec"


def test_kafkas_degraded_network_delays_what_every_process_of_a_node_sends() -> None:
    """Without a latency nothing happens, and a device is one of many names for one network."""
    nodes = {
        "both": {"networkDevice": "eth0", "latencyMs": 500},
        "broker-2": {"latencyMs": 90},
        "broker-1": {},
    }
    spec = {"class": DEGRADED, "startMs": 2_000, "durationMs": 3_000, "nodeSpecs": nodes}
    scenario = scenario_from_json(file_of(("d", spec), nodes={"both": ["c1", "c2"]}))

    assert scenario.happenings == (
        DegradeNetwork(at_ms=2_000, for_ms=3_000, latency_ms=500, member="c1"),
        DegradeNetwork(at_ms=2_000, for_ms=3_000, latency_ms=500, member="c2"),
        DegradeNetwork(at_ms=2_000, for_ms=3_000, latency_ms=90, broker=2),
    )
    ended = [e for e in events_of(scenario) if e.reason_text == "NetworkRestored"]
    assert [e.ts_us for e in ended] == [5_000_000] * 3


@pytest.mark.parametrize(
    ("node", "spec", "refusal"),
    [
        ("c1", {"rateLimitKbit": 8}, "rateLimitKbit of 'c1' is 8: rates are not simulated"),
        ("c1", {"latencyMs": -1}, "latencyMs of 'c1' is -1: must be at least 0"),
        ("rack", {"latencyMs": 1}, "node 'rack' has brokers and members, which would talk over"),
        ("c9", {"latencyMs": 1}, "there is no node 'c9'"),
    ],
)
def test_a_degraded_network_that_is_not_simulated_is_refused(
    node: str, spec: dict[str, int], refusal: str
) -> None:
    """One line says what is wrong, and what to do."""
    task = {"class": DEGRADED, "startMs": 0, "durationMs": 9, "nodeSpecs": {node: spec}}

    with pytest.raises(ScenarioError, match=f"task 'd': {refusal}"):
        scenario_from_json(file_of(("d", task), nodes={"rack": ["broker-1", "c2"]}))


def test_a_task_sets_the_clock_of_a_broker() -> None:
    """A field that is left out names nobody."""
    spec = {"class": "coordinatorsim.SetClock", "startMs": 7, "broker": 2, "skewMs": 90}
    scenario = scenario_from_json(file_of(("c", spec)))

    assert scenario.happenings == (SetClock(at_ms=7, broker=2, skew_ms=90),)


def test_a_task_doubles_answers() -> None:
    """Every happening is a class of tasks; its fields keep their names in Java's spelling."""
    spec = {
        "class": "coordinatorsim.ReorderResponses",
        "startMs": 20_000,
        "groupId": "g",
        "role": "leader",
        "api": "HEARTBEAT",
        "withinMs": 4_000,
    }
    scenario = scenario_from_json(file_of(("r", spec)))

    (fault,) = scenario.happenings
    assert fault == ReorderResponses(
        at_ms=20_000, group_id="g", role="leader", api="HEARTBEAT", within_ms=4_000
    )
    assert scenario.tasks[0].end_ms == 24_000


def test_kafkas_network_partition_cuts_members_off_from_brokers_of_other_sides() -> None:
    """Nodes may hold several processes; who is on no side keeps all links."""
    spec = {
        "class": f"{FAULT}.NetworkPartitionFaultSpec",
        "startMs": 1_000,
        "durationMs": 5_000,
        "partitions": [["rack", "broker-2"], ["c2"]],
    }
    scenario = scenario_from_json(file_of(("p", spec), nodes={"rack": ["broker-1", "c1"]}))
    assert scenario.happenings == (
        PartitionNetwork(at_ms=1_000, for_ms=5_000, member="c2", broker=1),
        PartitionNetwork(at_ms=1_000, for_ms=5_000, member="c2", broker=2),
    )


UNREADABLE = f"{FAULT}.FilesUnreadableFaultSpec"


def test_kafkas_unreadable_files_are_those_of_the_offsets_topic() -> None:
    """Of the brokers of the nodes; where Kibosh is mounted does not matter."""
    spec = {
        "class": UNREADABLE,
        "startMs": 1_000,
        "durationMs": 5_000,
        "nodeNames": ["rack", "c2"],
        "mountPath": "/mnt/kibosh",
        "prefix": "/kafka-logs/__consumer_offsets-1",
        "errorCode": 5,
    }
    scenario = scenario_from_json(file_of(("u", spec), nodes={"rack": ["c1", "broker-2"]}))

    assert scenario.happenings == (
        FailOffsetsReads(at_ms=1_000, for_ms=5_000, broker=2, prefix="__consumer_offsets-1"),
    )


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"errorCode": 0, "prefix": "__consumer_offsets"}, "task 'u': errorCode is 0: give an"),
        ({"errorCode": 5, "prefix": "/logs/orders-0"}, "prefix of .*'orders-0': must begin with"),
        ({"errorCode": 5}, "prefix of FailOffsetsReads='': must begin with __consumer_offsets"),
    ],
)
def test_unreadable_files_that_are_not_simulated_are_refused(
    fields: dict[str, object], refusal: str
) -> None:
    """Reads of other files than those of the offsets topic are no messages here."""
    spec = {"class": UNREADABLE, "durationMs": 9, "nodeNames": ["broker-1"], **fields}

    with pytest.raises(ScenarioError, match=refusal):
        scenario_from_json(file_of(("u", spec)))


@pytest.mark.parametrize("name", ["broker", "kafka.Kafka"])
def test_kafkas_process_stop_freezes_brokers_too(name: str) -> None:
    """Of a node with both, the processes of the name, or of Kafka's class."""
    spec = {
        "class": f"{FAULT}.ProcessStopFaultSpec",
        "startMs": 1_000,
        "durationMs": 5_000,
        "nodeNames": ["rack", "broker-2"],
        "javaProcessName": name,
    }
    scenario = scenario_from_json(file_of(("p", spec), nodes={"rack": ["c1", "broker-1"]}))
    assert {each.broker for each in scenario.happenings if isinstance(each, PauseBroker)} == {1, 2}
    assert len(scenario.happenings) == 2
    assert scenario.tasks[0].end_ms == 6_000


def test_kafkas_process_stop_freezes_the_members_of_a_name() -> None:
    """As `kill -SIGSTOP` does to the processes whose line has the name."""
    spec = {
        "class": f"{FAULT}.ProcessStopFaultSpec",
        "startMs": 1_000,
        "durationMs": 5_000,
        "nodeNames": ["c1", "c2"],
        "javaProcessName": "2",
    }
    scenario = scenario_from_json(file_of(("p", spec)))
    assert scenario.happenings == (PauseMember(at_ms=1_000, member="c2", for_ms=5_000),)


def test_the_trace_says_when_tasks_run() -> None:
    """From the start of a task to the end of its last effect."""
    spec = {"class": "coordinatorsim.CrashBroker", "startMs": 9_000, "durationMs": 7_000}
    scenario = scenario_from_json(file_of(("crash", {**spec, "broker": 1})))
    assert scenario.happenings == (CrashBroker(at_ms=9_000, broker=1, for_ms=7_000),)
    told = [
        (event.ts_us, event.reason_text)
        for event in events_of(scenario)
        if event.event is Event.FAULT and event.attrs.get("task") == "crash"
    ]
    assert told == [(9_000_000, "TaskRunning"), (16_000_000, "TaskDone")]


CRASH = {"class": "coordinatorsim.CrashBroker", "broker": 1, "durationMs": 1}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (file_of(("a", {"class": "no.Such"})), "f: task 'a': .*no.Such"),
        (file_of(("a", {**CRASH, "bogus": 1})), "f: task 'a': .*bogus"),
        (file_of(("a", {"class": "coordinatorsim.CrashBroker"})), "f: task 'a': .*broker"),
        (file_of(("a", {**CRASH, "broker": 3})), "broker.*3"),
        (file_of(("a", CRASH), ("a", CRASH)), "f: task id 'a': give each task one of its own"),
        (file_of(("", CRASH)), "f: task id ''"),
        (
            file_of(("a", {"class": "coordinatorsim.StopMember", "member": "c1", "durationMs": 5})),
            "f: task 'a': durationMs is 5, but StopMember takes no time: leave it out",
        ),
        (
            file_of(("a", {"class": f"{WORKLOAD}.ShareConsumeBenchSpec"})),
            "f: task 'a': org.apache.kafka.trogdor.workload.ShareConsumeBenchSpec has no effect in",
        ),
        (
            file_of(("a", {"class": f"{WORKLOAD}.ConsumeBenchSpec"})),
            "f: task 'a': name the node that the workload runs on",
        ),
        (
            file_of(
                (
                    "a",
                    {
                        "class": f"{WORKLOAD}.ProduceBenchSpec",
                        "producerNode": "n",
                        "transactionGenerator": {"type": "uniform", "messagesPerTransaction": 2},
                    },
                )
            ),
            "f: task 'a': transactionGenerator: workloads have no transactions in virtual time",
        ),
        (
            file_of(("a", {"class": f"{WORKLOAD}.ExternalCommandSpec", "commandNode": "n"})),
            "f: task 'a': a command has no effect in virtual time, unless its workload is",
        ),
        (
            file_of(("c1", {"class": f"{WORKLOAD}.ConsumeBenchSpec", "consumerNode": "n"})),
            "process 'c1'",
        ),
        (
            file_of(("a", {"class": f"{FAULT}.ProcessStopFaultSpec", "nodeNames": ["broker-1"]})),
            "for_ms of PauseBroker=0: must be from 1",
        ),
        (
            file_of(("a", {"class": f"{FAULT}.ProcessStopFaultSpec", "nodeNames": ["zed"]})),
            "f: task 'a': there is no node 'zed'; nodes are broker-1, broker-2, c1, c2",
        ),
        (file_of(nodes={"n": ["zed"]}), "f: node 'n' has 'zed', which is neither a member nor"),
        (file_of(("a", CRASH), happenings=[]), "f: tasks and happenings exclude each other"),
        (file_of(bogus=1), "f: .*bogus"),
    ],
)
def test_a_file_that_is_wrong_gets_one_line(text: bytes, problem: str) -> None:
    """The line names the file, the task and the value."""
    with pytest.raises(ScenarioError, match=problem) as raised:
        scenario_from_json(text, "f")
    assert "\n" not in str(raised.value)


# -- Members of groups as tasks: consumers, Connect workers, and who commits without joining ---


ORDERS = {"name": "orders", "partitions": 6, "records_per_s": 10}
MEMBER = {"class": "coordinatorsim.GroupMember", "groupId": "g", "topics": ["orders"]}
WORKER = {"class": "coordinatorsim.ConnectWorker", "groupId": "cluster"}


def task_file(*specs: dict[str, Any], **world: Any) -> bytes:  # noqa: ANN401 - JSON
    """A task file; the tasks are called t0, t1 and so on."""
    return msgspec.json.encode(
        {
            "name": "members",
            "title": "",
            "story": "",
            "duration_ms": 60_000,
            "topics": [ORDERS],
            "tasks": [{"id": f"t{number}", "spec": spec} for number, spec in enumerate(specs)],
            **world,
        }
    )


def test_members_join_when_their_tasks_start_and_leave_when_they_end() -> None:
    """One stays to the end of the run, the other leaves after twenty seconds."""
    text = task_file(MEMBER, {**MEMBER, "startMs": 10_000, "durationMs": 20_000})
    scenario = scenario_from_json(text)
    (group,) = scenario.groups
    assert isinstance(group, ConsumerGroupSpec)
    assert [(each.name, each.start_ms) for each in group.members] == [("t0", 0), ("t1", 10_000)]
    assert scenario.happenings == (StopMember(at_ms=30_000, member="t1"),)
    assert [(each.id, each.start_ms, each.end_ms) for each in scenario.tasks] == [
        ("t0", 0, 60_000),
        ("t1", 10_000, 30_000),
    ]
    assert [client for _, client, _ in said(run(text), Event.LEAVE_REQ)] == ["t1"]


def test_a_task_may_join_a_group_that_the_file_describes() -> None:
    """The members of both kinds are one group."""
    group = {"type": "consumer", "group_id": "g", "topics": ["orders"], "members": [{"name": "c1"}]}
    scenario = scenario_from_json(task_file(MEMBER, groups=[group]))
    assert [each.name for each in scenario.members()] == ["c1", "t0"]


def test_workers_of_a_cluster_share_the_connectors_of_the_first() -> None:
    """The cluster is described once; both join it."""
    first = {**WORKER, "connectors": {"files": 2}}
    text = task_file(first, {**WORKER, "startMs": 1_000})
    (group,) = scenario_from_json(text).groups
    assert isinstance(group, ConnectGroupSpec)
    assert group.connectors == {"files": 2}
    assert [client for _, client, _ in said(run(text), Event.MEMBER_ADDED)] == ["t0", "t1"]


def test_offsets_are_committed_without_a_member() -> None:
    """Every second, for a group that nobody joins."""
    committer = {
        "class": "coordinatorsim.OffsetCommitter",
        "durationMs": 10_500,
        "node": "host",
        "groupId": "simple",
        "partitions": ["orders:[0-5]"],
        "everyMs": 1_000,
    }
    events = run(task_file(committer))
    commits = [each for each in events if each.event is Event.OFFSET_COMMIT]
    assert {each.group_id for each in commits} == {"simple"}
    assert len(commits) in {9, 10}
    assert said(events, Event.MEMBER_ADDED) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            task_file(MEMBER, {**MEMBER, "assignors": ["sticky"]}),
            "f: task 't1': assignors sticky; the group 'g' has range, cooperative-sticky: give",
        ),
        (task_file(MEMBER, {**WORKER, "groupId": "g"}), "f: task 't1': 'g' is a consumer group"),
        (
            task_file(WORKER, {**MEMBER, "groupId": "cluster"}),
            "f: task 't1': 'cluster' is a Connect cluster",
        ),
        (
            task_file(WORKER, {**WORKER, "connectors": {"files": 1}}),
            "f: task 't1': connectors and connectProtocol stand in the cluster's first worker",
        ),
    ],
)
def test_members_that_cannot_be_one_group_get_one_line(text: bytes, expected: str) -> None:
    """The line names the task, the group and the fix."""
    with pytest.raises(ScenarioError) as refused:
        scenario_from_json(text, "f")
    assert str(refused.value).startswith(expected)
