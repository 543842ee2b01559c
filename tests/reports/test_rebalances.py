"""Rebalances, generations, sessions and waits, in histories of a few lines."""

from typing import Any

from coordinator_sim_reports.local_engine import LocalEngine
from coordinator_sim_reports.transforms.sessions import member_sessions
from coordinator_sim_reports.transforms.summary import durations, reasons
from tests.reports.groups import KEY, Line, S, given, group, rows


def story(*events: Line) -> list[dict[str, Any]]:
    """Rows of one group from (event, seconds, columns), in emission order."""
    return [
        {
            **KEY,
            "incarnation": 0,
            "event": event,
            "ts_us": int(seconds * S),
            "ordinal": ordinal,
            "ts_kind": "event",
            **columns,
        }
        for ordinal, (event, seconds, columns) in enumerate(events)
    ]


def prepare(at: float, old: int, **columns: object) -> tuple[str, float, dict[str, Any]]:
    """A group leaves generation `old`."""
    values: dict[str, Any] = {"generation": old, "reason": "MEMBER_JOINED"}
    return "PREPARE_REBALANCE", at, values | columns


def joined(at: float, new: int, **columns: object) -> tuple[str, float, dict[str, Any]]:
    """The join phase ends."""
    values: dict[str, Any] = {"generation": new, "members": 2, "protocol_name": "range"}
    return "JOIN_COMPLETE", at, values | columns


def synced(at: float, new: int) -> tuple[str, float, dict[str, Any]]:
    """The leader's assignment is accepted."""
    return "SYNC_LEADER", at, {"generation": new}


def rows_of(*lines: Line) -> list[dict[str, Any]]:
    """The rebalances of these events in order."""
    return rows(group(*lines), "rebalances")


def test_a_rebalance_runs_from_prepare_to_the_leaders_sync() -> None:
    """Join and sync phases add up to the whole."""
    (row,) = rows_of(prepare(1, 0), joined(4, 1), synced(4.5, 1))
    assert (row["outcome"], row["join_ms"], row["sync_ms"], row["total_ms"]) == (
        "STABLE",
        3000.0,
        500.0,
        3500.0,
    )
    assert (row["old_generation"], row["generation"], row["members"]) == (0, 1, 2)
    assert (row["reason"], row["initial_delay"], row["followup"]) == ("MEMBER_JOINED", True, False)


def test_every_outcome_is_told_apart() -> None:
    """No sync, superseded, emptied, moved away with the coordinator, still open."""
    rows = rows_of(
        prepare(0, 1),
        joined(1, 2),
        prepare(5, 2),
        prepare(6, 2),
        ("GROUP_EMPTY", 7, {"generation": 3}),
        prepare(8, 3, offsets_partition=9),
        ("COORD_RESIGNED", 9, {"group_id": None, "offsets_partition": 9}),
        prepare(10, 3),
    )
    assert [row["outcome"] for row in rows] == [
        "NO_SYNC",
        "SUPERSEDED",
        "EMPTY",
        "COORDINATOR_MOVED",
        "OPEN",
    ]
    assert [row["end_us"] for row in rows] == [5 * S, 6 * S, 7 * S, 9 * S, None]


def test_order_is_that_of_emission_not_of_clocks() -> None:
    """A clock that steps back neither swaps two lines nor makes a duration negative."""
    (row,) = rows_of(prepare(1, 0), joined(3, 1), synced(2.9, 1))
    assert (row["outcome"], row["sync_ms"], row["is_exact"]) == ("STABLE", 0.0, False)


def test_a_clients_log_tells_the_first_cause() -> None:
    """As `explain` tells it: lines of clients give reasons, and are no lines of a rebalance."""
    log = {"source": "connect_log", "client_id": "w", "source_ref": "connect.log", "seq": 7}
    member = "w-7f000000-0000-4000-8000-000000000001"
    (row,) = rows_of(
        ("LOST", 5, {"attrs": {"unreachable_ms": "3000"}, **log}),
        prepare(10, 1, member_id=member, reason="METADATA_CHANGED"),
        joined(11, 2),
        synced(11.5, 2),
        ("ASSIGNED", 11.6, {"generation": 2, "error_code": 0, **log}),
    )
    assert row["first_cause"] == "w had no coordinator for 3000 ms, and gave up its work"
    assert (row["client_cause"], row["total_ms"]) == ("unreachable", 1500.0)


def test_a_missing_reason_is_unknown() -> None:
    """A rebalance without a reason is reported as UNKNOWN, not left out."""
    (row,) = rows_of(prepare(1, 0, reason=None))
    assert row["reason"] == "UNKNOWN"


def test_follow_ups_are_known_by_reason_or_by_time() -> None:
    """A cooperative round that starts within a second of the last, same members, goes with it."""
    cooperative = {"protocol_name": "cooperative-sticky"}
    rows = rows_of(
        prepare(0, 0),
        joined(1, 1, **cooperative),
        synced(1, 1),
        prepare(1.5, 1),
        joined(2, 2, **cooperative),
        synced(2, 2),
        prepare(9, 2, client_reason="need to revoke partitions and re-join"),
        joined(10, 3, **cooperative),
        synced(10, 3),
        prepare(10.5, 3),
        joined(11, 4, members=3, **cooperative),
        synced(11, 4),
    )
    assert [row["followup"] for row in rows] == [False, True, True, False]


def test_follow_ups_in_a_broker_log_are_known_by_who_rejoins() -> None:
    """A broker log names no protocol: the leader's own rejoin goes with the last round."""
    unnamed = {"protocol_name": None}
    rows = rows_of(
        prepare(0, 0),
        joined(1, 1, **unnamed),
        synced(1, 1),
        prepare(1.5, 1, reason="LEADER_REJOIN"),
        joined(2, 2, **unnamed),
        synced(2, 2),
        prepare(2.5, 2, reason="MEMBER_LEFT"),
        joined(3, 3, **unnamed),
        synced(3, 3),
    )
    assert [row["followup"] for row in rows] == [False, True, False]


def test_five_rebalances_within_five_minutes_are_a_storm() -> None:
    """Four are busy, five are a storm, and an hour later it is over."""
    rows = rows_of(*(prepare(at, at) for at in (0, 60, 120, 180, 240, 4_000)))
    assert [row["storm_no"] for row in rows] == [1, 1, 1, 1, 1, 0]


def test_rebalances_close_together_converge_as_one() -> None:
    """Convergence lasts from the first prepare to the last sync of a chain."""
    lines = (
        *(prepare(0, 0), joined(1, 1), synced(2, 1)),
        *(prepare(20, 1), joined(21, 2), synced(22, 2), prepare(90, 2)),
    )
    found = rows(group(*lines), "convergence")
    assert [(row["rebalance_count"], row["convergence_ms"]) for row in found] == [
        (2, 22000.0),
        (1, None),
    ]


def test_generations_end_where_the_next_rebalance_begins() -> None:
    """Gaps in the numbers are ghosts of the next generation told."""
    lines = (
        *(prepare(0, 0), joined(1, 1), synced(2, 1), prepare(5, 1), joined(6, 4)),
        ("GROUP_EMPTY", 9, {"generation": 5}),
    )
    names = ("generation", "stored", "until_us", "ghosts_before", "members")
    found = [tuple(row[name] for name in names) for row in rows(group(*lines), "generations")]
    assert found == [
        (1, True, 5 * S, 0, 2),
        (4, False, None, 2, 2),
        (5, False, 9 * S, 0, None),
    ]


def test_durations_leave_open_rebalances_out_but_count_them(engine: LocalEngine) -> None:
    """Percentiles are of what ended."""
    held = rows(group(prepare(0, 0), joined(1, 1), synced(2, 1), prepare(5, 1)), "rebalances")
    table = given(engine, "rebalances", [{**KEY, **row} for row in held])
    found = {row["phase"]: row for row in engine.rows(durations(engine, table))}
    assert (found["total"]["count"], found["total"]["open"], found["total"]["max_ms"]) == (
        1,
        1,
        2000.0,
    )
    (reason,) = engine.rows(reasons(engine, table))
    assert (reason["count"], reason["open"], reason["p50_ms"]) == (2, 1, 2000.0)


def test_member_sessions_say_how_each_member_ended(engine: LocalEngine) -> None:
    """Left, failed, replaced by its own instance, or still there."""
    member = {"session_timeout_ms": 10_000}
    events = given(
        engine,
        "events",
        story(
            ("JOIN_REQ", 0, {"member_id": "a", **member}),
            ("SYNC_RESP", 2, {"member_id": "a", "generation": 1, "error_code": 0}),
            ("JOIN_REQ", 3, {"member_id": "a", **member}),
            ("SYNC_RESP", 4, {"member_id": "a", "generation": 2, "error_code": 27}),
            ("LEAVE_REQ", 8, {"member_id": "a"}),
            ("MEMBER_LEFT", 8, {"member_id": "a"}),
            ("JOIN_REQ", 0, {"member_id": "b", **member}),
            ("MEMBER_FAILED", 60, {"member_id": "b"}),
            ("JOIN_REQ", 0, {"member_id": "c1", "group_instance_id": "c", **member}),
            ("JOIN_REQ", 30, {"member_id": "c2", "group_instance_id": "c", **member}),
            ("JOIN_REQ", 30, {"member_id": ""}),
        ),
    )
    rows = {row["member_id"]: row for row in engine.rows(member_sessions(engine, events))}
    assert {name: row["end_kind"] for name, row in rows.items()} == {
        "a": "LEFT",
        "b": "FAILED",
        "c1": "REPLACED",
        "c2": "OPEN",
    }
    assert rows["a"]["generations"] == 1
    assert rows["a"]["rejoin_count"] == 1
    assert rows["a"]["first_assignment_ms"] == 2000.0
    assert (rows["a"]["flapped"], rows["b"]["flapped"]) == (True, False)
    assert rows["c1"]["end_us"] == 30 * S


# -- For whom a rebalance waited, in histories of a few lines ----------------------------------


def told(*events: tuple[str, float, str | None]) -> dict[tuple[int, str], Any]:
    """The waits of a group: length in seconds and kind, by rebalance and member.

    Args:
        events: Kind, seconds and member of each event, in order.
    """
    generation = 0
    lines: list[Line] = []
    for kind, seconds, member in events:
        reason = "MEMBER_JOINED" if kind == "PREPARE_REBALANCE" else None
        lines.append(
            (kind, seconds, {"member_id": member, "generation": generation, "reason": reason})
        )
        generation += kind == "PREPARE_REBALANCE"
    return {
        (row["rebalance_no"], row["member_id"]): ((row["to_us"] - row["from_us"]) / S, row["kind"])
        for row in rows(group(*lines), "waits")
    }


FIRST = (
    ("JOIN_REQ", 0, "a"),
    ("PREPARE_REBALANCE", 0, None),
    ("JOIN_REQ", 1, "b"),
    ("JOIN_COMPLETE", 3, None),
    ("SYNC_LEADER", 3, None),
)


def test_old_members_are_waited_for_until_they_rejoin() -> None:
    """The member that begins a rebalance, and one that is new in it, keep nobody waiting."""
    rows = told(
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


def test_a_dead_member_is_waited_for_in_vain() -> None:
    """Until the coordinator removes it, and not until it comes back later as itself."""
    rows = told(
        *FIRST,
        ("PREPARE_REBALANCE", 10, None),
        ("JOIN_REQ", 10.5, "a"),
        ("MEMBER_FAILED", 55, "b"),
        ("JOIN_COMPLETE", 55, None),
        ("SYNC_LEADER", 55, None),
        ("JOIN_REQ", 70, "b"),
    )
    assert rows == {(2, "a"): (0.5, "JOINED"), (2, "b"): (45.0, "FAILED")}


def test_a_rebalance_that_is_cut_off_tells_who_came() -> None:
    """An open join phase has no end: what came after its start counts for nothing."""
    rows = told(*FIRST, ("PREPARE_REBALANCE", 10, None), ("JOIN_REQ", 12, "a"))
    assert rows == {}


def test_a_rebalance_names_the_lines_behind_it() -> None:
    """The file and the numbers of its first line, the join's end, and its own end."""
    told = [("PREPARE_REBALANCE", 7), ("JOIN_COMPLETE", 9), ("SYNC_LEADER", 12)]
    lines = [
        (kind, number, {"source_ref": "logs/server.log", "seq": number, "generation": int(at > 0)})
        for at, (kind, number) in enumerate(told)
    ]
    (found,) = rows(group(*lines), "rebalances")
    assert found["source_refs"] == [
        "logs/server.log:7",
        "logs/server.log:9",
        "logs/server.log:12",
    ]
