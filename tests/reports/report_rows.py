"""Rows of the page of a report, written by hand: groups, rebalances, findings, costs."""

from typing import Any

from coordinator_sim_reports.page_options import PageLimits, PageOptions
from coordinator_sim_reports.page_rows import ReportRows

S = 1_000_000
HOUR_US = 3_600 * S
START_US = 1_795_285_663_376_000
END_US = START_US + 10 * HOUR_US
KEY = {"trace_id": "log", "cluster_id": "east"}
RUN = {
    **KEY,
    "source": "broker_log",
    "scenario": None,
    "assignor": None,
    "seed": None,
    "profile": "ingested",
    "path": "traces/east",
    "first_ts_us": START_US,
    "last_ts_us": END_US,
}
QUALITY = {
    **RUN,
    **dict.fromkeys(("events", "unparsed", "clock_regressions", "ghost_generations"), 0),
    **dict.fromkeys(("rebalances", "unknown_reasons", "open_rebalances"), 0),
    "lockstep_groups": 0,
    "parsed_share": 1.0,
}
_NULL = (
    *("moved", "excess_moves", "interrupted", "spread", "unowned_s", "resource_count"),
    *("missing_assignments", "restarted_in_place"),
)


def group(number: int, rebalances: int, **columns: Any) -> dict[str, Any]:  # noqa: ANN401
    """A row of the groups of a broker log, which tells no assignments."""
    told = {
        "group_id": f"group-{number:02d} <app>",
        "rebalances": rebalances,
        "open_rebalances": 0,
        "rebalancing_ms": 1_000.0 * rebalances,
        "most_members": 3,
        "stopped_s": float(rebalances),
        "stopped_quality": "bound",
        "protocol_type": "unknown",
        "assignor": "range",
        **{f"{name}_quality": "n/a" for name in ("assignment", "ownership")},
        "timing_quality": "exact",
    }
    return KEY | dict.fromkeys(_NULL) | told | columns


def rebalance(of: dict[str, Any], number: int, reason: str) -> dict[str, Any]:
    """A rebalance of so many seconds, in the hour of its number."""
    start_us = START_US + number * HOUR_US
    return {
        **KEY,
        "group_id": of["group_id"],
        "rebalance_no": number,
        "seen_us": start_us,
        "start_us": start_us,
        "end_us": start_us + number * S,
        "total_ms": 1_000.0 * number,
        "join_ms": 900.0 * number,
        "sync_ms": 100.0 * number,
        "lasted_us": number * S,
        "reason": reason,
        "reason_text": None,
        "outcome": "STABLE",
        "old_generation": number - 1,
        "generation": number,
        "members": 3,
        "timing_quality": "exact",
        "initial_delay": False,
        "followup": False,
        "storm_no": 0,
        "source_refs": [f"/var/log/server.log:{100 * number}"],
    }


def finding(rank: int, **columns: Any) -> dict[str, Any]:  # noqa: ANN401 - any column
    """A row of the findings."""
    told = {
        "group_id": "group-01 <app>",
        "rank": rank,
        "kind": "dead-members-waited-for",
        "rebalances": 12,
        "cost_s": 300.0,
        "cost_unit": "seconds rebalancing",
        "what": "12 of 20 rebalances waited 25 s for members that were gone.",
        "change": "Set group.instance.id for each member.",
        "setting": "group.instance.id=stable",
        "assumes": ["a process keeps its group.instance.id"],
        "saves_s": 240.0,
        "saving": "240.000 of 300.000 seconds rebalancing, replayed with group.instance.id=stable",
        "more_rebalances": 2,
        "basis": "replayed",
        "confidence": 0.9,
        "source_refs": ["/var/log/server.log:1200", "/var/log/server.log:1300"],
        "first_us": START_US,
        "last_us": START_US + 90 * S,
    }
    return KEY | told | columns


def cost(scope: str, number: int, **columns: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    """A row of costs, the dearer the higher its number."""
    told = {
        "scope": scope,
        "group_id": None if scope == "day" else "group-01 <app>",
        "deploy_no": number if scope == "deploy" else None,
        "day": f"2026-03-{number:02}" if scope == "day" else None,
        "first_us": START_US + number * HOUR_US,
        "last_us": START_US + number * HOUR_US + 90 * S,
        "rebalances": 5 * number,
        "assigned": 0,
        "rebalancing_s": 10.0 * number,
        "paused_s": 30.0 * number,
        "stopped_s": 10.0 * number,
        "unowned_s": None,
        "moved": None,
        "voluntary": None,
        "needless": None,
        "reprocessed": None,
        "of_rows": 40,
    }
    return KEY | told | columns


def storm(number: int, **columns: Any) -> dict[str, Any]:  # noqa: ANN401 - any value
    """A row of storms."""
    told = {
        "storm_no": number,
        "kind": "loop",
        "members": 3,
        "clients": 2,
        "first_no": 7,
        "trigger": "poll timeout",
        "trigger_client": "app <2>",
    }
    return cost("deploy", number) | told | columns


def members_of(group_id: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Sessions of two members, and the wait for the one that failed."""
    session = {**KEY, "group_id": group_id, "first_seen_us": START_US, "of_rows": 2}
    ended = {"end_us": START_US + 3 * HOUR_US, "end_kind": "FAILED"}
    members = [
        {**session, **ended, "member_id": "a-1", "member_key": "a-1"},
        {**session, "end_us": None, "end_kind": "OPEN", "member_id": "b-1", "member_key": "b-1"},
    ]
    waited = {
        **KEY,
        "group_id": group_id,
        "member_key": "a-1",
        "kind": "FAILED",
        "from_us": START_US + 2 * HOUR_US,
        "to_us": START_US + 3 * HOUR_US,
    }
    return members, [waited]


def rows_of(count: int, **columns: Any) -> ReportRows:  # noqa: ANN401 - any of its fields
    """Rows of a broker log with so many groups, the n-th with fewer rebalances than the one before.

    The first two have their rebalances drawn; two members are known of the first.
    """
    groups = [group(number, 3 * (count + 1 - number)) for number in range(1, count + 1)]
    drawn = [
        rebalance(of, number, reason)
        for of in groups[:2]
        for number, reason in ((1, "MEMBER_LEFT"), (2, "MEMBER_JOINED"), (3, "MEMBER_LEFT"))
    ]
    reasons = [
        {
            **KEY,
            "group_id": of["group_id"],
            "reason": reason,
            "count": amount * of["rebalances"] // 3,
        }
        | {"open": 0, "followups": 0, "p50_ms": 1_500.0, "max_ms": 1_000.0 * amount}
        for of in groups
        for reason, amount in (("MEMBER_LEFT", 2), ("MEMBER_JOINED", 1))
    ]
    totals = {
        "groups": count,
        "rebalances": sum(of["rebalances"] for of in groups),
        "logical_rebalances": sum(of["rebalances"] for of in groups),
        "open_rebalances": 0,
        "moved": None,
        "interrupted": None,
        "restarted_in_place": None,
        "unowned_s": None,
    }
    members, waits = members_of(groups[0]["group_id"])
    is_dense = count > PageLimits().drawn_groups
    told: dict[str, Any] = {
        "options": PageOptions(),
        "totals": totals,
        "told_totals": totals,
        "runs": [RUN],
        "told": [RUN],
        "quality": [QUALITY],
        "sources": [],
        "skews": [],
        "findings": [],
        "costs": [],
        "storms": [],
        "comparison": [],
        "groups": groups,
        "reasons": reasons,
        "reason_counts": {"MEMBER_LEFT": 2 * count, "MEMBER_JOINED": count},
        "drawn": drawn,
        "listed": drawn,
        "windows": [],
        "window_count": 0,
        "effects": [],
        "durations": [],
        "sessions": members,
        "waits": waits,
        "owners": [],
        "imbalance": [],
        "densities": [
            {**KEY, "group_id": of["group_id"], "slice": 7, "count": of["rebalances"]}
            for of in groups
        ]
        if is_dense
        else [],
        "ranged": [],
        "share_records": [],
    }
    return ReportRows(**{**told, **columns})
