from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim_reports.transforms import availability, ownership
from coordinator_sim_reports.transforms.rebalances import rebalances

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
Test = Callable[..., None]
S = 1_000_000
KEY = "trace_id string, cluster_id string, group_id string"
INTERVALS = f"{KEY}, resource string, member_key string, from_us bigint, to_us bigint"
GROUP = {"trace_id": "t", "cluster_id": "c", "group_id": "g", "incarnation": 0}


def events(*told: tuple[str, float, dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of one group from (event, seconds, columns), in emission order."""
    return [
        {**GROUP, "event": event, "ts_us": int(at * S), "ordinal": ordinal, **columns}
        for ordinal, (event, at, columns) in enumerate(told)
    ]


def mark(event: str, at: float, member: str, **columns: object) -> tuple[str, float, Any]:
    """An event of a member."""
    return event, at, {"member_id": member, "error_code": 0, **columns}


def dense(number: int, at: float, members: str, owners: list[int], **columns: Any) -> Any:  # noqa: ANN401
    """A dense row whose assignment was accepted at that second."""
    row = {
        **GROUP,
        "generation": number,
        "sync_us": int(at * S),
        "protocol_type": "consumer",
        "protocol_name": "range",
        "member_ids": list(members),
        "member_keys": list(members),
        "resource_list_id": 0,
        "owners": owners,
    }
    return row | columns


STORIES: dict[str, tuple[list[Any], list[Any], float]] = {}
"""Events, generations and last second by trace id; who owned what is asked in one job."""


def story(told: list[Any], generations: list[Any], end: float) -> Callable[[Test], Test]:
    """Give a test the ownership that follows from these rows as `owned`."""

    def remembered(test: Test) -> Test:
        STORIES[test.__name__] = (told, generations, end)
        return test

    return remembered


@pytest.fixture(scope="module")
def all_owned(frame: Frame) -> dict[str, set[Any]]:
    """Ownership as (resource, member, from, to) in seconds, for every story."""
    told, generations = [], []
    for each, (events_of_it, generations_of_it, _) in STORIES.items():
        told += [row | {"trace_id": each} for row in events_of_it]
        generations += [row | {"trace_id": each} for row in generations_of_it]
    ends = [{"trace_id": each, "last_ts_us": end * S} for each, (_, _, end) in STORIES.items()]
    lists = [
        {"trace_id": each, "resource_list_id": 0, "resources": ["p0", "p1"]} for each in STORIES
    ]
    rows = frame("generations", generations)
    kinds = {row["event"] for row in told}
    marks = ownership.member_marks(frame("events", told), kinds)
    held = ownership.holds(rows, marks, frame("trace_id string, last_ts_us bigint", ends))
    assigned = ownership.assignments(rows, frame("resources", lists))
    found: dict[str, set[Any]] = {each: set() for each in STORIES}
    for row in ownership.ownership(assigned, held).collect():
        found[row.trace_id].add((row.resource, row.member_key, row.from_us / S, row.to_us / S))
    return found


@pytest.fixture
def owned(request: pytest.FixtureRequest, all_owned: dict[str, set[Any]]) -> set[Any]:
    """Ownership in a test's story."""
    return all_owned[request.node.name]


def intervals(frame: Frame, *rows: tuple[str, str, float, float]) -> Any:  # noqa: ANN401
    """An ownership table from (resource, member, from, to) in seconds."""
    return frame(
        INTERVALS,
        [
            {
                **GROUP,
                "resource": resource,
                "member_key": member,
                "from_us": int(start * S),
                "to_us": int(end * S),
            }
            for resource, member, start, end in rows
        ],
    )


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
    [dense(1, 1, "a", [0, -1], member_keys=["i"])],
    20,
)
def test_a_killed_process_owns_nothing(owned: set[Any]) -> None:
    """The process of a static member dies and comes back within the same generation."""
    assert owned == {("p0", "i", 1, 5), ("p0", "i", 8, 20)}


@story(events(), [dense(1, 1, "a", [0, 0]), dense(2, 6, "b", [0, -1])], 9)
def test_without_marks_a_generation_lasts_until_the_next(owned: set[Any]) -> None:
    """Sources that tell of assignments only give whole generations."""
    assert owned == {("p0", "a", 1, 6), ("p1", "a", 1, 6), ("p0", "b", 6, 9)}


def test_unowned_time_is_split_by_what_the_group_did(frame: Frame) -> None:
    """Two seconds undetected, three joining, one syncing; empty times do not count."""
    held = rebalances(
        frame(
            "events",
            events(
                ("PREPARE_REBALANCE", 0, {"generation": 0}),
                ("SYNC_LEADER", 1, {"generation": 1}),
                ("PREPARE_REBALANCE", 12, {"generation": 1}),
                ("JOIN_COMPLETE", 15, {"generation": 2}),
                ("SYNC_LEADER", 16, {"generation": 2}),
                ("PREPARE_REBALANCE", 20, {"generation": 2}),
                ("GROUP_EMPTY", 20, {"generation": 3}),
            ),
        )
    )
    runs = frame("trace_id string, last_ts_us bigint", [{"trace_id": "t", "last_ts_us": 30 * S}])
    table = intervals(frame, ("p0", "a", 1, 10), ("p0", "b", 16, 20), ("p1", "b", 1, 20))
    (row,) = availability.unowned(table, held, runs).collect()
    assert (row.resource, row.unowned_us, row.waiting_us) == ("p0", 6 * S, 2 * S)
    assert (row.joining_us, row.syncing_us) == (3 * S, 1 * S)
    (seen,) = availability.observed(held, runs).collect()
    assert seen.observed_s == 20.0


def test_the_world_stops_only_when_nobody_owns_anything(frame: Frame) -> None:
    """Two of the six seconds of a rebalance had no owner at all."""
    held = rebalances(
        frame(
            "events",
            events(
                ("PREPARE_REBALANCE", 10, {"generation": 1}),
                ("JOIN_COMPLETE", 15, {"generation": 2}),
                ("SYNC_LEADER", 16, {"generation": 2}),
            ),
        )
    )
    runs = frame("trace_id string, last_ts_us bigint", [{"trace_id": "t", "last_ts_us": 30 * S}])
    table = intervals(
        frame, ("p0", "a", 1, 11), ("p1", "b", 1, 14), ("p0", "a", 16, 30), ("p1", "b", 17, 30)
    )
    (row,) = availability.stop_the_world(table, held, runs).collect()
    assert row.stopped_us == 2 * S


def test_double_ownership_is_the_overlap_of_two_members(frame: Frame) -> None:
    """A zombie that holds on for three seconds costs three partition-seconds."""
    table = intervals(frame, ("p0", "a", 0, 10), ("p0", "b", 7, 20), ("p1", "b", 0, 20))
    (row,) = availability.double_ownership(table).collect()
    assert row.double_owned_s == 3.0
