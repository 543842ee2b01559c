"""The task assignor of streams groups: what holds of every assignment."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.assignors.streams_sticky import (
    AskedSubtopology,
    AskingMember,
    AssignedTasks,
    JavaPriorityQueue,
    assign_tasks,
)

Members = dict[str, AskingMember]

PARTS = {"0": AskedSubtopology(7, is_stateful=True), "1": AskedSubtopology(3, is_stateful=False)}


def newcomers(processes: dict[str, int]) -> Members:
    """Members without tasks, so many of each process."""
    return {
        f"{process}-{number}": AskingMember(process, {}, {})
        for process, count in processes.items()
        for number in range(count)
    }


def running(found: dict[str, AssignedTasks], members: Members) -> Members:
    """The members with what they were assigned."""
    return {
        name: AskingMember(members[name].process_id, each.active, each.standby)
        for name, each in found.items()
    }


def listed(tasks: dict[str, frozenset[int]]) -> list[tuple[str, int]]:
    """Tasks one by one."""
    return [(name, number) for name, numbers in tasks.items() for number in numbers]


groups = st.dictionaries(st.sampled_from("pqrs"), st.integers(1, 3), min_size=1).map(newcomers)


@pytest.mark.property
@given(groups, st.integers(0, 2), st.booleans())
def test_every_task_runs_once_and_copies_are_elsewhere(
    members: Members, standby_count: int, is_early: bool
) -> None:
    """No process has a task twice, and there are copies as far as they fit."""
    found = assign_tasks(members, PARTS, standby_count, is_early=is_early)
    assert list(found) == list(members)
    active = [task for each in found.values() for task in listed(each.active)]
    assert sorted(active) == sorted((n, i) for n, p in PARTS.items() for i in range(p.task_count))
    processes = {member.process_id for member in members.values()}
    for process in processes:
        of_process = [
            task
            for name, each in found.items()
            if members[name].process_id == process
            for task in (*listed(each.active), *listed(each.standby))
        ]
        assert len(of_process) == len(set(of_process))
    copies = [task for each in found.values() for task in listed(each.standby)]
    wanted = min(standby_count, len(processes) - 1)
    assert len(copies) == 7 * wanted
    assert {name for name, _ in copies} <= {"0"}


@pytest.mark.property
@given(groups, st.integers(0, 2), st.booleans())
def test_a_settled_group_keeps_its_active_tasks(
    members: Members, standby_count: int, is_early: bool
) -> None:
    """The same members ask again, and none of them gives a task up that it may have."""
    found = assign_tasks(members, PARTS, standby_count, is_early=is_early)
    settled = running(found, members)
    again = assign_tasks(settled, PARTS, standby_count, is_early=is_early)
    share = -(-10 // len(members))
    for name, each in again.items():
        before = listed(dict(settled[name].active))
        if len(before) <= share:
            assert set(before) <= set(listed(each.active))


def test_a_former_copy_runs_the_task_of_a_member_that_is_gone() -> None:
    """Who has the state goes on with it."""
    members = {
        "m2": AskingMember("q", {"0": frozenset({4, 5, 6})}, {"0": frozenset({0, 1})}),
        "m3": AskingMember("r", {"0": frozenset()}, {"0": frozenset({2, 3})}),
    }
    found = assign_tasks(members, {"0": PARTS["0"]}, 0)
    assert found["m3"].active["0"] == {1, 2, 3}
    assert found["m2"].active["0"] == {0, 4, 5, 6}


@pytest.mark.property
@given(st.lists(st.integers(0, 9), min_size=1))
def test_the_queue_hands_out_a_least_element(weights: list[int]) -> None:
    """Whatever the order of insertion."""
    queue = JavaPriorityQueue(weights, float)
    assert [queue.poll() for _ in weights] == sorted(weights)
