"""The row of a group in `groups`: every metric of one group in one run."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from coordinator_sim.messages.embedded.contents import is_cooperative
from coordinator_sim.replay.charges import EXACT_SOURCES, empty_times
from coordinator_sim.runs.holdings import covered
from coordinator_sim.trace.epoch_groups import SHARE_PROTOCOL
from coordinator_sim.trace.epoch_records import SHARE
from coordinator_sim.trace.events import Source
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.group import Group

Row = dict[str, Any]
Rows = Mapping[str, Sequence[Row]]
EXACT: Final = "exact"
BOUND: Final = "bound"
ESTIMATE: Final = "estimate"
UNAVAILABLE: Final = "n/a"
MOVE_COUNTS: Final = (
    "kept",
    "moved",
    "orphaned",
    "voluntary",
    "added",
    "dropped",
    "held_by_survivors",
    "lb_balanced",
    "excess_moves",
)
INTERRUPTIONS: Final = ("interrupted", "restarted_in_place")
TIMES: Final = ("unowned_s", "joining_s", "syncing_s", "waiting_s")
MISSING: Final = "missing_assignments"
RECORD_SOURCES: Final = frozenset(
    {
        Source.OFFSETS_TOPIC,
        Source.OFFSETS_SEGMENT,
        Source.FORMATTER_TEXT,
        Source.FORMATTER_JSON,
        Source.DUMP_LOG,
    }
)
"""Sources that show no more of a rebalance than the end of its join."""
_US_PER_S: Final = 1_000_000


def summary_rows(group: Group, rows: Rows) -> Iterator[Row]:
    """Yield the row of `groups`; of a group without a rebalance in the window none.

    Args:
        group: The group.
        rows: Its rows of other tables, in the window.
    """
    held = rows["rebalances"]
    if not held:
        return
    missing = _missing(group, rows["generations"])
    is_known = bool(group.dense) and missing is None
    row = {
        **_run(group),
        **_counts(held),
        "assigned_generations": len(group.dense) or None,
        **_protocols(group, held),
        **_move_sums(rows["moves"]),
        **_balance(rows["imbalance"]),
        **_times(rows["unowned"]),
        **_interruptions(rows["ownership"]),
        "observed_s": _observed_us(group, held) / _US_PER_S,
        MISSING: missing,
        **_qualities(group, is_known=is_known, is_exact=all(each["is_exact"] for each in held)),
    }
    stopped_us = [each["stopped_us"] for each in rows["stopped"]]
    row["stopped_s"] = sum(stopped_us) / _US_PER_S if is_known else _bound_s(held)
    if not is_known:
        row |= dict.fromkeys(_OF_ASSIGNMENTS)
    possible_s = (row["resource_count"] or 0) * row["observed_s"]
    row["availability"] = 1 - row["unowned_s"] / possible_s if is_known and possible_s else None
    yield row


_OF_ASSIGNMENTS: Final = (
    *(*MOVE_COUNTS, *INTERRUPTIONS, *TIMES, "double_owned_s", "ideal_kept", "stickiness"),
    *("relative_stickiness", "spread", "cv", "gini", "resource_count"),
)
"""Columns that are null without the assignments of all generations."""


def _run(group: Group) -> Row:
    facts = group.facts
    return {
        "source": facts.source.value,
        "profile": facts.profile,
        "version": facts.version,
        "seed": facts.seed,
        "undecodable_assignments": facts.undecodable_assignments,
        "first_ts_us": facts.first_ts_us,
        "last_ts_us": facts.last_ts_us,
        "scenario": facts.scenario or group.records.key[C.CLUSTER_ID],
    }


def _counts(held: Sequence[Row]) -> Row:
    told_ms = [each["total_ms"] for each in held if each["total_ms"] is not None]
    members = max((each[C.MEMBERS] or 0 for each in held), default=0)
    return {
        "rebalances": len(held),
        "logical_rebalances": sum(not each[C.FOLLOWUP] for each in held),
        "open_rebalances": sum(each[C.OUTCOME] == "OPEN" for each in held),
        "unsynced_rebalances": sum(each[C.OUTCOME] == "NO_SYNC" for each in held),
        "rebalancing_ms": sum(told_ms) if told_ms else None,
        "most_members": members or None,
    }


def _protocol_named(held: Sequence[Row]) -> str | None:
    return max((each[C.PROTOCOL_NAME] for each in held if each[C.PROTOCOL_NAME]), default=None)


def _protocols(group: Group, held: Sequence[Row]) -> Row:
    told = _protocol_named(held)
    kind = max((row.protocol_type for row in group.dense), default=None)
    named = [row for row in group.dense if row.protocol_name is not None]
    last = max(named, key=lambda row: row.generation, default=None)
    name = None if last is None else last.protocol_name
    # A share group has epochs and no assignments that could tell its type.
    kind = kind or (SHARE if told == SHARE_PROTOCOL else "unknown")
    return {
        C.PROTOCOL_TYPE: kind,
        C.PROTOCOL_NAME: name,
        "assignor": group.facts.assignor or name or told or "unknown",
    }


def _missing(group: Group, generations: Sequence[Row]) -> str | None:
    """Describe the missing assignments of a group that has some; None if it has all, or none.

    Beside a broker's log, the log of one client has only the generations that this client led.
    """
    if not group.dense or group.facts.source in EXACT_SOURCES:
        return None
    given = {(row.incarnation, row.generation): len(row.member_ids) for row in group.dense}
    stored = [row for row in generations if row["stored"]]
    whole = [
        row
        for row in stored
        if given.get((row[C.INCARNATION], row[C.GENERATION]), -1) >= (row[C.MEMBERS] or 0)
    ]
    if len(whole) == len(stored):
        return None
    return f"assignments of {len(whole)} of {len(stored)} generations are known"


def _move_sums(moves: Sequence[Row]) -> Row:
    sums: Row = {name: _sum(move[name] for move in moves) for name in MOVE_COUNTS}
    ideal_kept = _sum(
        None
        if move["lb_balanced"] is None
        else move["held_by_survivors"] - (move["lb_balanced"] - move["orphaned"])
        for move in moves
    )
    held = sums["held_by_survivors"]
    stickiness = None if held is None else sums["kept"] / held if held else 1.0
    return {
        **sums,
        "ideal_kept": ideal_kept,
        "compared_generations": len(moves) or None,
        "stickiness": stickiness,
        "relative_stickiness": sums["kept"] / ideal_kept if (ideal_kept or 0) > 0 else None,
    }


def _sum(values: Iterable[int | None]) -> int | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None


def _balance(balances: Sequence[Row]) -> Row:
    """Return the imbalance over time."""
    timed = [each for each in balances if each["lasted_us"] is not None]
    weight_us = sum(each["lasted_us"] for each in timed)

    def weighted(name: str) -> float | None:
        total = sum(each[name] * each["lasted_us"] for each in timed)
        return total / weight_us if weight_us else None

    return {name: weighted(name) for name in ("spread", "cv", "gini")}


def _times(unowned: Sequence[Row]) -> Row:
    return {
        name: sum(gap[f"{name.removesuffix('_s')}_us"] for gap in unowned) / _US_PER_S
        for name in TIMES
    }


def _interruptions(owned: Sequence[Row]) -> Row:
    """Count holds that ended before the trace did; `double_owned_s` is 0 for eager clients."""
    of: dict[str, list[tuple[int, int, str]]] = {}
    for each in owned:
        of.setdefault(each[C.RESOURCE], []).append(
            (each[C.FROM_US], each[C.TO_US], each[C.MEMBER_KEY])
        )
    interrupted = again = double_us = 0
    for own in of.values():
        own.sort()
        interrupted += len(own) - 1
        again += sum(before[2] == after[2] for before, after in pairwise(own))
        union = covered((from_us, to_us) for from_us, to_us, _ in own)
        double_us += sum(to_us - from_us for from_us, to_us, _ in own)
        double_us -= sum(to_us - from_us for from_us, to_us in union)
    return {
        "resource_count": len(of) or None,
        "interrupted": interrupted if of else None,
        "restarted_in_place": again if of else None,
        "double_owned_s": double_us / _US_PER_S,
    }


def _observed_us(group: Group, held: Sequence[Row]) -> int:
    """Return how long the group was seen with members, from its first rebalance in the window."""
    first_us: int = min(each["seen_us"] for each in held)
    end_us = group.facts.last_ts_us or 0
    empty = empty_times(group.shown, end_us)
    return end_us - first_us - sum(to_us - from_us for from_us, to_us in empty)


def _bound_s(held: Sequence[Row]) -> float | None:
    """Return the most that a group can have stood still: nobody has to in a cooperative one."""
    if is_cooperative(_protocol_named(held)):
        return 0.0
    told_ms = [each["total_ms"] for each in held if each["total_ms"] is not None]
    return sum(told_ms) / 1000 if told_ms else None


def _qualities(group: Group, *, is_known: bool, is_exact: bool) -> Row:
    """Return how far the families of metrics can be trusted.

    Durations are `exact` unless a source shows only the join's end, or a clock ran backwards in
    one. Times of ownership need each member's own times to be so.
    """
    source = group.facts.source
    of_times = EXACT if source in EXACT_SOURCES else ESTIMATE
    return {
        "timing_quality": ESTIMATE if source in RECORD_SOURCES or not is_exact else EXACT,
        "assignment_quality": EXACT if is_known else UNAVAILABLE,
        "ownership_quality": of_times if is_known else UNAVAILABLE,
        "stopped_quality": of_times if is_known else BOUND,
    }
