"""Task files run for real: what the plan is, and what the trace says afterwards."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator_sim.broker.faults.faults import Fault, Match, Phase
from coordinator_sim.errors import ScenarioError
from coordinator_sim.live.trogdor.rehearsal import Rehearsal
from coordinator_sim.runs.run_directory import read_run
from coordinator_sim.sim.scenario.files import plan_of
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trogdor.plan import ControlCall

KAFKA = "org.apache.kafka.trogdor"
MEMBER = {
    "class": "coordinatorsim.GroupMember",
    "groupId": "g",
    "topics": ["orders"],
    "settings": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "100"},
}
SLOW_POLL = {"class": "coordinatorsim.SlowPoll", "member": "t1", "durationMs": 5}
CRASH = {"class": "coordinatorsim.CrashBroker", "startMs": 100, "durationMs": 50, "broker": 1}


def task_file(*specs: dict[str, Any], **world: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """A task file; the tasks are called t0, t1 and so on."""
    return {
        "name": "story",
        "title": "",
        "story": "",
        "duration_ms": 6_000,
        "brokers": 2,
        "broker_settings": {"group.initial.rebalance.delay.ms": "0"},
        "topics": [{"name": "orders", "partitions": 4, "records_per_s": 0}],
        "tasks": [{"id": f"t{number}", "spec": spec} for number, spec in enumerate(specs)],
        **world,
    }


def test_a_plan_has_a_node_for_every_broker_and_every_place_of_a_task() -> None:
    """Brokers that the file puts nowhere are on nodes of their own."""
    no_op = {"class": f"{KAFKA}.task.NoOpTaskSpec", "durationMs": 10}
    cut = {
        "class": f"{KAFKA}.fault.NetworkPartitionFaultSpec",
        "durationMs": 10,
        "partitions": [["rack"], ["far"]],
    }
    nodes = {"rack": ["broker-2"], "far": ["t4"]}
    plan = plan_of(task_file(MEMBER, no_op, cut, CRASH, MEMBER, nodes=nodes), "f")

    assert plan.nodes == {"t0": (), "far": (), "rack": (2,), "broker-1": (1,)}
    assert [task.id for task in plan.tasks] == ["t1", "t2"]
    member, placed = plan.members
    assert (member.node, member.start_ms, member.duration_ms) == ("t0", 0, 6_000)
    assert placed.node == "far"
    (crash,) = plan.operations
    assert crash.calls == (
        ControlCall(100, "POST", "/v1/brokers/1/stop"),
        ControlCall(150, "POST", "/v1/brokers/1/resume"),
    )


@pytest.mark.parametrize(
    ("spec", "action"),
    [
        ({"class": "coordinatorsim.DropResponse"}, {"do": "drop"}),
        ({"class": "coordinatorsim.DelayResponse", "byMs": 70}, {"do": "delay", "ms": 70}),
        ({"class": "coordinatorsim.DuplicateResponse"}, {"do": "duplicate"}),
        ({"class": "coordinatorsim.ReorderResponses", "withinMs": 9}, {"do": "reorder", "ms": 9}),
    ],
)
def test_answers_are_spoilt_by_rules_of_the_served_cluster(
    spec: dict[str, Any], action: dict[str, Any]
) -> None:
    """The next two heartbeats of a member, or of a leader, as a rule that the cluster knows."""
    common = {"api": "HEARTBEAT", "count": 2, "startMs": 5}
    of_member = {**spec, **common, "member": "t0"}
    of_leader = {**spec, **common, "groupId": "g", "role": "leader"}
    plan = plan_of(task_file(MEMBER, of_member, of_leader), "f")

    matches = []
    for operation in plan.operations:
        (call,) = operation.calls
        assert (call.at_ms, call.method, call.path) == (5, "POST", "/v1/faults")
        rule = msgspec.convert(call.body, Fault)
        assert (rule.phase, rule.times) == (Phase.AFTER, 2)
        assert msgspec.to_builtins(rule.action) == action
        matches.append(rule.match)
    assert matches == [
        Match(api="HEARTBEAT", client_id="t0"),
        Match(api="HEARTBEAT", group="g", role="leader"),
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            task_file(
                {"class": "coordinatorsim.SlowPoll", "member": "t1", "durationMs": 5}, MEMBER
            ),
            "f: task 't0': coordinatorsim.SlowPoll is for virtual time; for real there are",
        ),
        (
            task_file(MEMBER, topics=[{"name": "orders", "partitions": 4}]),
            "f: topic 'orders' fills by itself: for real, set its records_per_s to 0",
        ),
        (
            task_file(
                groups=[
                    {
                        "type": "consumer",
                        "group_id": "g",
                        "topics": ["orders"],
                        "members": [{"name": "c1"}],
                    }
                ]
            ),
            "f: 'c1' is a member of the simulator's: for real, there are tasks of the class",
        ),
    ],
)
def test_what_only_virtual_time_has_is_refused(data: dict[str, Any], expected: str) -> None:
    """One line says what is not there for real, and what is."""
    with pytest.raises(ScenarioError, match=r"^f: ") as refused:
        plan_of(data, "f")
    assert str(refused.value).startswith(expected)


def test_a_partition_and_a_stopped_broker_hit_real_members(tmp_path: Path) -> None:
    """A member that is cut off sends nothing meanwhile; the trace has its heartbeats and marks."""
    cut = {
        "class": f"{KAFKA}.fault.NetworkPartitionFaultSpec",
        "startMs": 5_000,
        "durationMs": 1_500,
        "partitions": [["t0"], ["broker-1", "broker-2"]],
    }
    plan = plan_of(task_file(MEMBER, cut, {**CRASH, "startMs": 7_000}, duration_ms=8_000), "f")
    said: list[str] = []
    rehearsal = Rehearsal(plan, tmp_path / "trace", overwrite=False, say=said.append)
    assert asyncio.run(rehearsal.run()) == []

    events = list(read_run(tmp_path / "trace").events())
    begins = events[0]
    assert (begins.event, begins.reason_text) == (Event.FAULT, "PlanBegins")
    window = {each.reason_text: each.ts_us for each in marks(events, "t1")}
    beats = [each.ts_us for each in events if each.event is Event.HEARTBEAT]
    # What was under way when the link was cut may still arrive.
    slack_us = 300_000
    assert any(ts_us < window["TaskRunning"] for ts_us in beats)
    silent = (window["TaskRunning"] + slack_us, window["TaskDone"] - slack_us)
    assert not [ts_us for ts_us in beats if silent[0] < ts_us < silent[1]]
    assert any(ts_us > window["TaskDone"] for ts_us in beats)
    assert [each.reason_text for each in marks(events, "t2")] == ["TaskRunning", "TaskDone"]
    assert len([line for line in said if "TaskDone" in line]) == 3


def test_what_the_operator_cannot_do_has_failed(tmp_path: Path) -> None:
    """A coordinator is to move to a broker that is stopped: the trace and the run say so."""
    move = {
        "class": "coordinatorsim.MoveCoordinator",
        "startMs": 300,
        "partition": 0,
        "toBroker": 1,
    }
    plan = plan_of(task_file({**CRASH, "durationMs": 800}, move, duration_ms=1_000), "f")
    rehearsal = Rehearsal(plan, tmp_path / "trace", overwrite=False, say=lambda _line: None)
    assert asyncio.run(rehearsal.run()) == ["t1"]
    _, done = marks(list(read_run(tmp_path / "trace").events()), "t1")
    assert "error" in done.attrs


def marks(events: list[TraceEvent], task: str) -> list[TraceEvent]:
    """What the trace says of a task."""
    return [each for each in events if each.attrs.get("task") == task]
