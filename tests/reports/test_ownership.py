from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim_reports.transforms import availability, ownership
from coordinator_sim_reports.transforms.rebalances import rebalances

pytestmark = pytest.mark.spark

Frame = Callable[..., Any]
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


def owned(frame: Frame, told: list[Any], generations: list[Any], end: float) -> set[Any]:
    """Ownership as (resource, member, from, to) in seconds."""
    runs = frame("trace_id string, last_ts_us bigint", [{"trace_id": "t", "last_ts_us": end * S}])
    resources = frame(
        "resources", [{"trace_id": "t", "resource_list_id": 0, "resources": ["p0", "p1"]}]
    )
    rows = frame("generations", generations)
    held = ownership.holds(rows, ownership.member_marks(frame("events", told)), runs)
    table = ownership.ownership(ownership.assignments(rows, resources), held)
    return {
        (row.resource, row.member_key, row.from_us / S, row.to_us / S) for row in table.collect()
    }


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


def test_an_eager_member_lets_go_when_it_rejoins(frame: Frame) -> None:
    """An eager member owns from its own SyncGroup answer to its own next JoinGroup request."""
    told = events(
        mark("SYNC_RESP", 1, "a", generation=1),
        mark("SYNC_RESP", 2, "b", generation=1),
        mark("JOIN_REQ", 10, "a"),
        mark("JOIN_REQ", 12, "b"),
        mark("SYNC_RESP", 13, "a", generation=2),
        mark("SYNC_RESP", 13, "b", generation=2),
    )
    generations = [dense(1, 1, "ab", [0, 1]), dense(2, 13, "ab", [0, 1])]
    assert owned(frame, told, generations, 20) == {
        ("p0", "a", 1, 10),
        ("p1", "b", 2, 12),
        ("p0", "a", 13, 20),
        ("p1", "b", 13, 20),
    }


def test_a_cooperative_member_keeps_what_it_keeps(frame: Frame) -> None:
    """A kept partition is one interval; a revoked one ends with the answer that takes it."""
    name = {"protocol_name": "cooperative-sticky"}
    told = events(
        mark("SYNC_RESP", 1, "a", generation=1),
        mark("JOIN_REQ", 10, "a"),
        mark("SYNC_RESP", 13, "a", generation=2),
        mark("SYNC_RESP", 16, "b", generation=3),
        mark("SYNC_RESP", 16, "a", generation=3),
    )
    generations = [
        dense(1, 1, "a", [0, 0], **name),
        dense(2, 13, "ab", [0, -1], **name),
        dense(3, 16, "ab", [0, 1], **name),
    ]
    assert owned(frame, told, generations, 20) == {
        ("p0", "a", 1, 20),
        ("p1", "a", 1, 13),
        ("p1", "b", 16, 20),
    }


def test_a_failed_member_owned_until_its_last_sign_of_life(frame: Frame) -> None:
    """Not until its removal, a session timeout later."""
    told = events(
        mark("SYNC_RESP", 1, "a", generation=1),
        mark("HEARTBEAT", 30, "a", generation=1),
        mark("MEMBER_FAILED", 40, "a", session_timeout_ms=10_000),
    )
    assert owned(frame, told, [dense(1, 1, "a", [0, -1])], 50) == {("p0", "a", 1, 30)}


def test_a_killed_process_owns_nothing(frame: Frame) -> None:
    """The process of a static member dies and comes back within the same generation."""
    instance = {"group_instance_id": "i"}
    told = events(
        mark("ASSIGNED", 1, "a", generation=1, client_id="host", **instance),
        mark("SYNC_RESP", 1, "a", generation=1, **instance),
        ("LIFECYCLE", 5, {"client_id": "host", "reason_text": "crashed"}),
        mark("SYNC_RESP", 8, "a2", generation=1, **instance),
    )
    generations = [dense(1, 1, "a", [0, -1], member_keys=["i"])]
    assert owned(frame, told, generations, 20) == {("p0", "i", 1, 5), ("p0", "i", 8, 20)}


def test_without_marks_a_generation_lasts_until_the_next(frame: Frame) -> None:
    """Sources that tell of assignments only give whole generations."""
    generations = [dense(1, 1, "a", [0, 0]), dense(2, 6, "b", [0, -1])]
    assert owned(frame, events(), generations, 9) == {
        ("p0", "a", 1, 6),
        ("p1", "a", 1, 6),
        ("p0", "b", 6, 9),
    }


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
