"""Who owned what when, and what nobody owned."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="needs the columns extra")

from coordinator_sim.trace.schema import GenerationRow
from coordinator_sim_reports.workers.group_tables import GROUP_TABLES, GROUPS, tables_of
from tests.reports.groups import Line, S, generation, group, rows

Test = Callable[..., None]


def events(*told: Line) -> Sequence[Line]:
    """Events in emission order."""
    return told


def mark(event: str, at: float, member: str, **columns: object) -> Line:
    """An event of a member."""
    return event, at, {"member_id": member, "error_code": 0, **columns}


def dense(number: int, at: float, members: str, owners: list[int], **columns: Any) -> Any:  # noqa: ANN401
    """A dense row whose assignment was accepted at that second."""
    return generation(number, members, owners, sync_us=int(at * S), **columns)


STORIES: dict[str, tuple[Sequence[Line], list[GenerationRow], float]] = {}
"""Events, generations and last second by the name of a test."""


def story(told: Sequence[Line], generations: list[Any], end: float) -> Callable[[Test], Test]:
    """Give a test the ownership that follows from these rows as `owned`."""

    def remembered(test: Test) -> Test:
        STORIES[test.__name__] = (told, generations, end)
        return test

    return remembered


@pytest.fixture
def owned(request: pytest.FixtureRequest) -> set[Any]:
    """Ownership in a test's story, as (resource, member, from, to) in seconds."""
    told, generations, end = STORIES[request.node.name]
    found = rows(group(*told, dense=generations, end=end), "ownership")
    return {
        (row["resource"], row["member_key"], row["from_us"] / S, row["to_us"] / S) for row in found
    }


@story(
    events(
        mark("SYNC_RESP", 1, "a", generation=1),
        mark("SYNC_RESP", 2, "b", generation=1),
        mark("JOIN_REQ", 10, "a"),
        mark("JOIN_REQ", 12, "b"),
        mark("SYNC_RESP", 13, "a", generation=2),
        mark("SYNC_RESP", 13, "b", generation=2),
    ),
    [dense(1, 1, "ab", [0, 1]), dense(2, 13, "ab", [0, 1])],
    20,
)
def test_an_eager_member_lets_go_when_it_rejoins(owned: set[Any]) -> None:
    """An eager member owns from its own SyncGroup answer to its own next JoinGroup request."""
    assert owned == {
        ("p0", "a", 1, 10),
        ("p1", "b", 2, 12),
        ("p0", "a", 13, 20),
        ("p1", "b", 13, 20),
    }


@story(
    events(
        mark("SYNC_RESP", 1, "a", generation=1),
        mark("JOIN_REQ", 10, "a"),
        mark("SYNC_RESP", 13, "a", generation=2),
        mark("SYNC_RESP", 16, "b", generation=3),
        mark("SYNC_RESP", 16, "a", generation=3),
    ),
    [
        dense(1, 1, "a", [0, 0], protocol_name="cooperative-sticky"),
        dense(2, 13, "ab", [0, -1], protocol_name="cooperative-sticky"),
        dense(3, 16, "ab", [0, 1], protocol_name="cooperative-sticky"),
    ],
    20,
)
def test_a_cooperative_member_keeps_what_it_keeps(owned: set[Any]) -> None:
    """A kept partition is one interval; a revoked one ends with the answer that takes it."""
    assert owned == {("p0", "a", 1, 20), ("p1", "a", 1, 13), ("p1", "b", 16, 20)}


@story(
    events(
        mark("SYNC_RESP", 1, "a", generation=1),
        mark("HEARTBEAT", 30, "a", generation=1),
        mark("MEMBER_FAILED", 40, "a", session_timeout_ms=10_000),
    ),
    [dense(1, 1, "a", [0, -1])],
    50,
)
def test_a_failed_member_owned_until_its_last_sign_of_life(owned: set[Any]) -> None:
    """Not until its removal, a session timeout later."""
    assert owned == {("p0", "a", 1, 30)}


@story(
    events(
        mark("ASSIGNED", 1, "a", generation=1, client_id="host", group_instance_id="i"),
        mark("SYNC_RESP", 1, "a", generation=1, group_instance_id="i"),
        ("LIFECYCLE", 5, {"client_id": "host", "reason_text": "crashed"}),
        mark("SYNC_RESP", 8, "a2", generation=1, group_instance_id="i"),
    ),
    [dense(1, 1, "a", [0, -1], member_keys=("i",))],
    20,
)
def test_a_killed_process_owns_nothing(owned: set[Any]) -> None:
    """The process of a static member dies and comes back within the same generation."""
    assert owned == {("p0", "i", 1, 5), ("p0", "i", 8, 20)}


@story(events(), [dense(1, 1, "a", [0, 0]), dense(2, 6, "b", [0, -1])], 9)
def test_without_marks_a_generation_lasts_until_the_next(owned: set[Any]) -> None:
    """Sources that tell of assignments only give whole generations."""
    assert owned == {("p0", "a", 1, 6), ("p1", "a", 1, 6), ("p0", "b", 6, 9)}


ROUNDS = (
    ("PREPARE_REBALANCE", 0, {"generation": 0}),
    ("SYNC_LEADER", 1, {"generation": 1}),
    ("PREPARE_REBALANCE", 12, {"generation": 1}),
    ("JOIN_COMPLETE", 15, {"generation": 2}),
    ("SYNC_LEADER", 16, {"generation": 2}),
)


def test_unowned_time_is_split_by_what_the_group_did() -> None:
    """Two seconds undetected, three joining, one syncing; empty times do not count."""
    of_group = group(
        *ROUNDS,
        mark("SYNC_RESP", 1, "a", generation=1),
        mark("MEMBER_LEFT", 10, "a"),
        mark("SYNC_RESP", 16, "b", generation=2),
        ("PREPARE_REBALANCE", 20, {"generation": 2}),
        mark("MEMBER_LEFT", 20, "b"),
        ("GROUP_EMPTY", 20, {"generation": 3}),
        dense=[dense(1, 1, "a", [0, -1]), dense(2, 16, "b", [0, -1])],
        end=30,
    )
    (row,) = rows(of_group, "unowned")
    assert (row["resource"], row["unowned_us"], row["waiting_us"]) == ("p0", 6 * S, 2 * S)
    assert (row["joining_us"], row["syncing_us"]) == (3 * S, 1 * S)
    (seen,) = tables_of(of_group, (*GROUP_TABLES, GROUPS))[GROUPS]
    assert seen["observed_s"] == 20.0
    assert seen["availability"] == pytest.approx(1 - 6 / 20)


def test_the_world_stops_only_when_nobody_owns_anything() -> None:
    """Two of the six seconds of a rebalance had no owner at all."""
    of_group = group(
        ("PREPARE_REBALANCE", 10, {"generation": 1}),
        mark("SYNC_RESP", 1, "a", generation=1),
        mark("SYNC_RESP", 1, "b", generation=1),
        mark("JOIN_REQ", 11, "a"),
        mark("JOIN_REQ", 14, "b"),
        ("JOIN_COMPLETE", 15, {"generation": 2}),
        ("SYNC_LEADER", 16, {"generation": 2}),
        mark("SYNC_RESP", 16, "a", generation=2),
        mark("SYNC_RESP", 17, "b", generation=2),
        dense=[dense(1, 1, "ab", [0, 1]), dense(2, 16, "ab", [0, 1])],
        end=30,
    )
    (row,) = rows(of_group, "stopped")
    assert row["stopped_us"] == 2 * S


def test_double_ownership_is_the_overlap_of_two_members() -> None:
    """A zombie that holds on for three seconds costs three partition-seconds."""
    of_group = group(
        ("PREPARE_REBALANCE", 0, {"generation": 0}),
        ("SYNC_LEADER", 0, {"generation": 1}),
        mark("SYNC_RESP", 0, "a", generation=1),
        mark("SYNC_RESP", 7, "b", generation=2),
        mark("JOIN_REQ", 10, "a"),
        dense=[
            dense(1, 0, "a", [0, -1]),
            dense(2, 10, "b", [0, 0]),
        ],
        end=20,
    )
    (seen,) = tables_of(of_group, (*GROUP_TABLES, GROUPS))[GROUPS]
    assert seen["double_owned_s"] == 3.0
