from collections.abc import Callable
from typing import Any

import pytest

from coordinator_sim_reports.transforms.fault_windows import fault_windows
from coordinator_sim_reports.workers.group import FaultWindow
from tests.reports.groups import generation, group
from tests.reports.groups import rows as rows_of

Test = Callable[..., None]
Fault = tuple[str, float, dict[str, str]]
S = 1_000_000
WORKLOAD = "org.apache.kafka.trogdor.workload"
RUN = {"cluster_id": "c"}

STORIES: dict[str, tuple[list[Fault], float]] = {}
"""Faults and the last second by trace id; the windows of all are found together."""


def running(task: str, at: float) -> Fault:
    """A task that begins to run."""
    return "TaskRunning", at, {"task": task, "kind": "x.NoOpTaskSpec"}


def done(task: str, at: float) -> Fault:
    """A task that is done."""
    return "TaskDone", at, {"task": task, "kind": "x.NoOpTaskSpec"}


def story(*faults: Fault, end: float) -> Callable[[Test], Test]:
    """Give a test the windows that follow from these faults as `found`."""

    def remembered(test: Test) -> Test:
        STORIES[test.__name__] = (list(faults), end)
        return test

    return remembered


@pytest.fixture(scope="module")
def all_rows() -> dict[str, list[Any]]:
    """Rows of windows, in order, for every story."""
    events = [
        {
            **RUN,
            "trace_id": trace_id,
            "ordinal": ordinal,
            "ts_us": int(at * S),
            "reason_text": what,
            "attrs": attrs,
        }
        for trace_id, (faults, _) in STORIES.items()
        for ordinal, (what, at, attrs) in enumerate(faults)
    ]
    ends = {each: int(end * S) for each, (_, end) in STORIES.items()}
    rows = fault_windows(events, ends)
    by_story = {story: [row for row in rows if row["trace_id"] == story] for story in STORIES}
    for own in by_story.values():
        assert [row["window_no"] for row in own] == list(range(1, len(own) + 1))
    return by_story


@pytest.fixture
def found(request: pytest.FixtureRequest, all_rows: dict[str, list[Any]]) -> list[Any]:
    """Windows of a test's story as (name, kind, from, to, is_ended), in seconds."""
    return [
        (row["name"], row["kind"], row["from_us"] / S, row["to_us"] / S, row["is_ended"])
        for row in all_rows[request.node.name]
    ]


@pytest.fixture
def nexts(request: pytest.FixtureRequest, all_rows: dict[str, list[Any]]) -> list[Any]:
    """When the window after each window of a test's story begins, in seconds."""
    told = [row["next_from_us"] for row in all_rows[request.node.name]]
    return [None if next_us is None else next_us / S for next_us in told]


@story(running("a", 30), done("a", 50), running("b", 80), done("b", 140), end=200)
def test_a_window_lasts_while_its_task_runs(found: list[Any]) -> None:
    """A window runs from TaskRunning to TaskDone; both ends are in the trace."""
    assert found == [("a", "x.NoOpTaskSpec", 30, 50, True), ("b", "x.NoOpTaskSpec", 80, 140, True)]


@story(running("a", 10), running("b", 20), done("a", 30), done("b", 40), end=60)
def test_tasks_that_overlap_have_a_window_each(found: list[Any]) -> None:
    """The end of one task is not that of another."""
    assert [each[0:1] + each[2:4] for each in found] == [("a", 10, 30), ("b", 20, 40)]


@story(
    *(running("a", 10), running("b", 20), done("b", 20), running("c", 20), done("a", 30)),
    *(running("d", 30), done("c", 31), done("d", 40)),
    end=60,
)
def test_the_next_window_begins_after_this_one_has_ended(
    found: list[Any], nexts: list[Any]
) -> None:
    """A window that begins at the end is next; windows that begin with it or in it are not."""
    assert [each[0] for each in found] == ["a", "b", "c", "d"]
    assert nexts == [30, 30, None, None]


@story(
    ("TaskRunning", 5, {"task": "w", "kind": f"{WORKLOAD}.ProduceBenchSpec"}),
    ("TaskRunning", 6, {"task": "m", "kind": "coordinatorsim.GroupMember"}),
    *(running("a", 10), done("a", 20)),
    ("PauseMember", 30, {"member": "m", "for_ms": "1000"}),
    end=60,
)
def test_clients_are_no_faults(found: list[Any]) -> None:
    """Workloads and members make no windows; the run is one of tasks all the same."""
    assert [each[0] for each in found] == ["a"]


@story(running("a", 10), end=60)
def test_a_task_without_an_end_lasts_to_the_end_of_the_trace(found: list[Any]) -> None:
    """The window says that no end was seen."""
    assert found == [("a", "x.NoOpTaskSpec", 10, 60, False)]


@story(running("a", 10), done("a", 20), running("a", 30), done("a", 45), end=60)
def test_one_id_twice_is_two_windows(found: list[Any]) -> None:
    """Each window has its own end."""
    assert [each[2:4] for each in found] == [(10, 20), (30, 45)]


@story(running("a", 10), running("a", 30), done("a", 45), end=60)
def test_a_task_that_runs_again_had_ended(found: list[Any]) -> None:
    """A task of one id does not run twice at a time: the next TaskRunning ends the window."""
    assert [each[2:4] for each in found] == [(10, 30), (30, 45)]


@story(done("a", 5), running("b", 7), done("b", 7), end=60)
def test_a_task_that_never_ran_has_no_window(found: list[Any]) -> None:
    """A task may be stopped before it runs; a task of no length has a window of no length."""
    assert [each[0:1] + each[2:4] for each in found] == [("b", 7, 7)]


@story(
    ("PauseMember", 10, {"member": "m-1", "for_ms": "5000"}),
    ("PartitionNetwork", 12, {"member": "m-1", "broker": "2", "for_ms": "20000"}),
    ("RestartMember", 40, {"member": "m-2", "down_ms": "3000", "graceful": "True"}),
    ("HoldReplication", 50, {"partition": "7", "for_ms": "1500"}),
    ("StopMember", 51, {"member": "m-1"}),
    ("NetworkHealed", 52, {"member": "m-1"}),
    ("CrashBroker", 55, {"broker": "1", "for_ms": "15000"}),
    end=60,
)
def test_happenings_that_tell_their_length_are_windows(found: list[Any]) -> None:
    """A run without tasks has the windows of its happenings, cut at the end of the trace."""
    assert found == [
        ("PauseMember m-1", "PauseMember", 10, 15, True),
        ("PartitionNetwork m-1, broker 2", "PartitionNetwork", 12, 32, True),
        ("RestartMember m-2", "RestartMember", 40, 43, True),
        ("HoldReplication partition 7", "HoldReplication", 50, 51.5, True),
        ("CrashBroker broker 1", "CrashBroker", 55, 60, False),
    ]


@story(
    running("pause", 10),
    ("PauseMember", 10, {"member": "m-1", "for_ms": "5000"}),
    done("pause", 15),
    end=60,
)
def test_what_a_task_does_makes_no_window_of_its_own(found: list[Any]) -> None:
    """The happenings of a run with tasks are those of its tasks."""
    assert [each[0] for each in found] == ["pause"]


@story(("StopMember", 10, {"member": "m-1"}), end=60)
def test_a_run_without_faults_has_no_window(found: list[Any]) -> None:
    """A happening without a length makes none, and the tasks of other runs are not its own."""
    assert found == []


# -- what happened to the groups -----------------------------------------------------------------


def effects(**told: Any) -> list[Any]:  # noqa: ANN401 - what is told, by name
    """Effects as (window, during, after, unowned seconds) of a group.

    Args:
        told: `windows` as (from, to, is_ended), `starts` of rebalances with what follows each,
            `gaps` of partitions as (from, to), `session_ms`, `next_s` of the windows.
    """
    nexts = told.get("next_s") or [None] * len(told["windows"])
    faults = [
        FaultWindow(
            window_no=number,
            from_us=int(from_s * S),
            to_us=int(to_s * S),
            is_ended=is_ended,
            next_from_us=None if next_s is None else next_s * S,
        )
        for number, ((from_s, to_s, is_ended), next_s) in enumerate(
            zip(told["windows"], nexts, strict=True), 1
        )
    ]
    lines = [("JOIN_REQ", 0, {"member_id": "z", "session_timeout_ms": told["session_ms"]})]
    for number, (at, then) in enumerate(told["starts"]):
        lines += [("PREPARE_REBALANCE", at, {"generation": number}), *then]
    for number, (from_s, to_s) in enumerate(told.get("gaps", ())):
        member = {"member_id": f"m{number}", "error_code": 0, "generation": 1}
        lines += [("SYNC_RESP", 1, member), ("MEMBER_LEFT", from_s, member)]
        lines += [("SYNC_RESP", to_s, member)]
    gaps = len(told.get("gaps", ()))
    members = [f"m{number}" for number in range(gaps)]
    dense = [
        generation(1, "", range(gaps), member_ids=(*members,), member_keys=(*members,))
    ] * bool(gaps)
    of_group = group(*lines, dense=dense, names=[f"p:{n}" for n in range(gaps)], faults=(*faults,))
    return [
        (
            row["window_no"],
            row["rebalances_during"],
            row["rebalances_after"],
            row["unowned_us"] / S,
        )
        for row in rows_of(of_group, "window_effects")
    ]


def test_rebalances_count_in_the_window_in_which_they_begin() -> None:
    """The start of a window belongs to it; its end belongs to the session timeout after it.

    The second window overlaps the first, so a rebalance at 45 s is in both.
    """
    told = {
        "windows": [(30, 50, True), (40, 60, True), (100, 110, False)],
        "starts": [(at, ()) for at in (29, 30, 45, 50, 59.999, 70, 105)],
        "session_ms": 10_000,
    }
    assert effects(**told) == [(1, 2, 2, 0), (2, 3, 0, 0), (3, 1, None, 0)]


def test_what_came_after_ends_where_the_next_window_begins() -> None:
    """Each rebalance of a rolling restart belongs to the restart before it."""
    told = {
        "windows": [(30, 35, True), (50, 55, True)],
        "starts": [(at, ()) for at in (31, 36, 51, 56)],
        "session_ms": 45_000,
        "next_s": [50, None],
    }
    assert effects(**told) == [(1, 1, 1, 0), (2, 1, 1, 0)]


def test_without_a_session_timeout_the_count_after_is_unknown() -> None:
    """Broker logs tell no session timeouts: the count after the window is unknown, not zero."""
    told = {"windows": [(30, 50, True)], "starts": [(40, ()), (51, ())], "session_ms": None}
    assert effects(**told) == [(1, 1, None, 0)]


def test_time_without_an_owner_counts_as_far_as_it_is_in_the_window() -> None:
    """Two resources have no owner for a while, cut by the window; an empty group counts nothing.

    The group is empty from 45 s on, until it rebalances at 48 s.
    """
    told = {
        "windows": [(30, 50, True), (200, 210, True)],
        "starts": [(44, [("GROUP_EMPTY", 45, {"generation": 1})]), (48, ())],
        "gaps": [(20, 40), (35, 60)],
        "session_ms": 10_000,
    }
    assert effects(**told) == [(1, 2, 0, 10 + 15 - 3), (2, 0, 0, 0)]
