"""Rows of tables about owners in one group: moves, balance, intervals, faults, records."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, Final

from msgspec.structs import asdict

from coordinator_sim.replay.charges import Passed, empty_times
from coordinator_sim.replay.moves import balances_of
from coordinator_sim.replay.share_records import share_records
from coordinator_sim.runs.holdings import Interval
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.schema import GenerationRow
from coordinator_sim.trace.work import connector_of, count_work, stretches_in, total_of
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.group import FaultWindow, Group

Row = dict[str, Any]
_SHARE_EVENTS: Final = frozenset(
    {
        Event.RECORDS_DELIVERED,
        Event.RECORDS_ACKNOWLEDGED,
        Event.RECORDS_ARCHIVED,
        Event.LOCK_TIMED_OUT,
    }
)
_FATES: Final = (
    *("deliveries", "again", "rejected", "used_up", "delivery_limit", "held_us", "lost_locks"),
    *("late", "silent_us", "late_us"),
)


def move_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `moves`: a completed generation beside the previous completed one."""
    for move in group.costs.moves:
        ideal = move.ideal_stickiness
        yield {
            **asdict(move),
            **_generation(move.row),
            C.PROTOCOL_TYPE: move.row.protocol_type,
            C.PROTOCOL_NAME: move.row.protocol_name,
            "stickiness": move.stickiness,
            "ideal_stickiness": ideal,
            "relative_stickiness": move.stickiness / ideal if ideal else None,
            "churn_ratio": move.moved / move.resource_count if move.resource_count else None,
        }


def balance_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `imbalance`."""
    for balance in balances_of(group.costs.handed, group.facts.end_us):
        yield {**asdict(balance), **_generation(balance.row)}


def _generation(row: GenerationRow) -> Row:
    return {
        C.INCARNATION: row.incarnation,
        C.GENERATION: row.generation,
        C.SYNC_US: row.sync_us,
    }


def ownership_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `ownership`."""
    return map(asdict, group.held)


def unowned_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `unowned`."""
    return map(asdict, group.costs.unowned)


def stopped_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `stopped`, of a group whose owners are known."""
    if group.held:
        for number, stopped_us in group.costs.stopped.items():
            yield {C.REBALANCE_NO: number, "stopped_us": stopped_us}


def effect_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `window_effects`, of a group with rebalances.

    `rebalances_during` began in the window; `rebalances_after` from its end on, within the longest
    session timeout of the group and before the next window: null where the window has no end or the
    trace has no timeout of a member.
    """
    if not group.facts.faults or not group.shown:
        return
    found = (each.rebalance.start for each in group.shown)
    starts = sorted(start.ts_us for start in found if start is not None)
    unowned = Passed(_unowned_in(group))
    session_us = max(
        (line.session_timeout_ms or 0 for line in group.lines if line.event is Event.JOIN_REQ),
        default=0,
    )
    for window in group.facts.faults:
        yield {
            "window_no": window.window_no,
            "unowned_us": unowned.within(window.from_us, window.to_us),
            "rebalances_during": _begun(starts, window.from_us, window.to_us),
            "rebalances_after": _after(window, starts, session_us * 1000),
        }


def _after(window: FaultWindow, starts: list[int], session_us: int) -> int | None:
    if not window.is_ended or not session_us:
        return None
    until_us = window.to_us + session_us
    if window.next_from_us is not None:
        until_us = min(until_us, window.next_from_us)
    return _begun(starts, window.to_us, until_us)


def _begun(starts: list[int], from_us: int, to_us: int) -> int:
    """Return how many starts lie from one instant to just before another."""
    return bisect_left(starts, to_us) - bisect_left(starts, from_us)


def _unowned_in(group: Group) -> Iterator[Interval]:
    """Yield the times without an owner that are shown, without those in which nobody was there."""
    empty = empty_times(group.shown, group.facts.last_ts_us or 0)
    ends = [to_us for _, to_us in empty]
    for gap in group.costs.unowned:
        if group.span is None or not group.span.holds(gap.to_us):
            continue
        begin_us = gap.from_us
        for from_us, to_us in empty[bisect_left(ends, begin_us) :]:
            if from_us >= gap.to_us:
                break
            if from_us > begin_us:
                yield begin_us, from_us
            begin_us = max(begin_us, to_us)
        if gap.to_us > begin_us:
            yield begin_us, gap.to_us


def work_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `work`, of what was processed in the window."""
    window = group.facts.window
    for count in count_work(line for line in group.lines if window.holds(line.ts_us)):
        yield asdict(count)


def lag_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `lag`: one for each stretch of processed records."""
    for line, ordinal in zip(group.lines, group.records.ordinals, strict=True):
        if line.event is Event.RECORDS_PROCESSED:
            for stretch in stretches_in(line):
                topic, partition = stretch.partition
                yield {
                    "connector": connector_of(line),
                    "topic": topic,
                    "partition": partition,
                    "at_us": line.ts_us,
                    C.ORDINAL: ordinal,
                    "lag": stretch.lag,
                    "max_lag": stretch.max_lag,
                }


def share_rows(group: Group) -> Iterator[Row]:
    """Yield rows of `share_records`, a topic each, of what happened in the window."""
    by_topic: defaultdict[str, list[TraceEvent]] = defaultdict(list)
    for line in group.lines:
        is_done = line.event is Event.RECORDS_PROCESSED and line.attrs.get("run") == "share"
        if (is_done or line.event in _SHARE_EVENTS) and group.facts.window.holds(line.ts_us):
            by_topic[line.offsets[0].topic].append(line)
    for topic, lines in by_topic.items():
        yield {"topic": topic, **_fates(lines)}


def _fates(lines: list[TraceEvent]) -> Row:
    work, records = total_of(count_work(lines)), share_records(lines)
    row = {
        "done": work.processed - work.duplicates,
        "max_lag": work.max_lag,
        "final_lag": work.final_lag,
    }
    if records is None:
        return dict.fromkeys(_FATES, 0) | row
    return {
        **row,
        "deliveries": records.deliveries,
        "again": records.again,
        "rejected": records.rejected,
        "used_up": len(records.used_up),
        "delivery_limit": records.limit,
        "held_us": records.held_us,
        "lost_locks": sum(each.records for each in records.lost_locks),
        "late": sum(each.late for each in records.lost_locks),
        "silent_us": sum(each.silent_us for each in records.lost_locks),
        "late_us": max((each.late_us for each in records.lost_locks), default=0),
    }
