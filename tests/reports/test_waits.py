"""For whom a rebalance waited, in histories of a few lines."""

from typing import Any

import pytest

pytest.importorskip("pyspark", reason="needs the spark extra")

from coordinator_sim_reports.transforms.rebalances import group_events, rebalances
from coordinator_sim_reports.transforms.sessions import member_sessions
from coordinator_sim_reports.transforms.waits import waits

pytestmark = pytest.mark.spark

S = 1_000_000
KEY = {"trace_id": "t", "cluster_id": "c", "group_id": "g"}


def told(frame: Any, *events: tuple[str, float, str | None]) -> dict[tuple[int, str], Any]:  # noqa: ANN401
    """The waits of a group: length in seconds and kind, by rebalance and member.

    Args:
        frame: Makes frames.
        events: Kind, seconds and member of each event, in order.
    """
    generation = 0
    rows = []
    for ordinal, (kind, seconds, member) in enumerate(events):
        row = {
            **KEY,
            "incarnation": 0,
            "seq": 10 + ordinal,
            "ordinal": ordinal,
            "event": kind,
            "ts_us": int(seconds * S),
            "ts_kind": "event",
            "member_id": member,
            "generation": generation,
            "reason": "MEMBER_JOINED" if kind == "PREPARE_REBALANCE" else None,
        }
        generation += kind == "PREPARE_REBALANCE"
        rows.append(row)
    grouped = group_events(frame("events", rows))
    found = waits(grouped, rebalances(grouped), member_sessions(grouped)).collect()
    return {
        (row.rebalance_no, row.member_id): ((row.to_us - row.from_us) / S, row.kind)
        for row in found
    }


FIRST = (
    ("JOIN_REQ", 0, "a"),
    ("PREPARE_REBALANCE", 0, None),
    ("JOIN_REQ", 1, "b"),
    ("JOIN_COMPLETE", 3, None),
    ("SYNC_LEADER", 3, None),
)


def test_old_members_are_waited_for_until_they_rejoin(frame: Any) -> None:  # noqa: ANN401
    """The member that begins a rebalance, and one that is new in it, keep nobody waiting."""
    rows = told(
        frame,
        *FIRST,
        ("JOIN_REQ", 10, "a"),
        ("PREPARE_REBALANCE", 10, None),
        ("JOIN_REQ", 11, "new"),
        ("JOIN_REQ", 14, "b"),
        ("JOIN_COMPLETE", 14, None),
        ("SYNC_LEADER", 14.5, None),
        ("LEAVE_REQ", 20, "b"),
    )
    assert rows == {(2, "b"): (4.0, "JOINED")}


def test_a_dead_member_is_waited_for_in_vain(frame: Any) -> None:  # noqa: ANN401
    """Until the coordinator removes it, and not until it comes back later as itself."""
    rows = told(
        frame,
        *FIRST,
        ("PREPARE_REBALANCE", 10, None),
        ("JOIN_REQ", 10.5, "a"),
        ("MEMBER_FAILED", 55, "b"),
        ("JOIN_COMPLETE", 55, None),
        ("SYNC_LEADER", 55, None),
        ("JOIN_REQ", 70, "b"),
    )
    assert rows == {(2, "a"): (0.5, "JOINED"), (2, "b"): (45.0, "FAILED")}


def test_a_rebalance_that_is_cut_off_tells_who_came(frame: Any) -> None:  # noqa: ANN401
    """An open join phase has no end: what came after its start counts for nothing."""
    rows = told(frame, *FIRST, ("PREPARE_REBALANCE", 10, None), ("JOIN_REQ", 12, "a"))
    assert rows == {}


def test_a_rebalance_names_the_lines_behind_it(frame: Any) -> None:  # noqa: ANN401
    """The file and the numbers of its first line, the join's end, and its own end."""
    lines = [("PREPARE_REBALANCE", 7), ("JOIN_COMPLETE", 9), ("SYNC_LEADER", 12)]
    rows = [
        {
            **KEY,
            "incarnation": 0,
            "source_ref": "logs/server.log",
            "seq": number,
            "ordinal": number,
            "event": kind,
            "ts_us": number * S,
            "generation": 0 if kind == "PREPARE_REBALANCE" else 1,
        }
        for kind, number in lines
    ]
    (found,) = rebalances(group_events(frame("events", rows))).collect()
    assert found.source_refs == ["logs/server.log:7", "logs/server.log:9", "logs/server.log:12"]
