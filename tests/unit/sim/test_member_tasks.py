"""Members of groups as tasks: consumers, Connect workers, and who commits without joining."""

from typing import Any

import msgspec
import pytest

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario.files import scenario_from_json
from coordinator_sim.sim.scenario.happenings import StopMember
from coordinator_sim.sim.scenario.world import ConnectGroupSpec, ConsumerGroupSpec
from coordinator_sim.trace.events import Event
from tests.unit.sim.test_workloads import run, said

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
