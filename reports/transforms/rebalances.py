"""Rebalances, generations and the chains they form, from events.

`coordinator_sim.trace` defines rebalances and their durations, group by group, as for `explain` and
`replay`: Spark only brings each group's events together, in order.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.kafka.states import GroupState
from coordinator_sim.replay.costs import RebalanceCost, costs_of_rebalances, place_of
from coordinator_sim.replay.storms import storm_numbers
from coordinator_sim.trace.events import Event, RebalanceReason, TimeKind, TraceEvent
from coordinator_sim.trace.history import (
    CLIENT_SOURCES,
    COORDINATOR_EVENTS,
    ENDS_COORDINATOR,
    home_partition,
    rebalances_of,
    steadied,
)
from coordinator_sim.trace.rebalances import NumberedRebalance, Rebalance
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import ddl_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BATCH_ROWS: Final = 10_000
_ENUMS: Final[dict[str, Any]] = {
    C.EVENT: Event,
    "ts_kind": TimeKind,
    C.REASON: RebalanceReason,
    "state_from": GroupState,
}
_LINE_COLUMNS: Final = (
    *("seq", "member_id", "group_instance_id", "client_id", "session_timeout_ms", "confidence"),
    *("source_ref", C.GROUP_ID, "offsets_partition", C.INCARNATION, C.GENERATION, C.PROTOCOL_NAME),
    *(C.TS_US, "ts_err_us", C.MEMBERS, "reason_text", "client_reason", *_ENUMS),
)
"""Columns of an event that a rebalance is read from."""
_DEFAULTS: Final[dict[str, Any]] = {
    "confidence": 1.0,
    C.INCARNATION: 0,
    "ts_err_us": 0,
    "seq": 0,
    "ts_kind": TimeKind.EVENT,
}
"""Values of columns of an event where a row has none."""
_KEPT: Final = frozenset({*C.GROUP_KEY, C.EVENT, C.TS_US, "seq"})
"""Columns that every event has."""
_REBALANCE_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in C.GROUP_KEY),
        (C.REBALANCE_NO, pa.int64()),
        (C.INCARNATION, pa.int32()),
        ("seen_us", pa.int64()),
        (C.START_US, pa.int64()),
        ("old_generation", pa.int32()),
        (C.GENERATION, pa.int32()),
        *((name, pa.string()) for name in (C.REASON, "reason_text", "client_reason")),
        *((name, pa.int64()) for name in (C.JOIN_DONE_US, C.SYNC_US, "empty_us", C.END_US)),
        (C.MEMBERS, pa.int32()),
        (C.PROTOCOL_NAME, pa.string()),
        (C.OUTCOME, pa.string()),
        *((name, pa.float64()) for name in ("join_ms", "sync_ms", "total_ms")),
        *((name, pa.bool_()) for name in ("is_exact", "initial_delay", C.FOLLOWUP)),
        ("chain_no", pa.int64()),
        ("trigger", pa.string()),
        ("trigger_client", pa.string()),
        ("root_no", pa.int64()),
        ("cause_confidence", pa.float64()),
        *((name, pa.float64()) for name in ("initial_ms", "dead_ms", "slow_ms")),
        ("restart", pa.string()),
        *((name, pa.int64()) for name in ("deploy_no", "storm_no")),
        ("source_refs", pa.list_(pa.string())),
    ]
)


def group_events(events: "DataFrame", kinds: Collection[str] | None = None) -> "DataFrame":
    """Return every event of a group, those of its coordinator's partition included.

    Input: events; `kinds`, those among them, or None where that is not known: without any
    resignation there is nothing to repeat, and nothing to find out for it.
    Output: the same columns, no null `group_id`: a broker's resignation of an offsets partition
    is repeated for each group of that partition that the same file has told of before, for one
    trace may hold logs of unrelated brokers. Other events of no group are dropped.
    """
    if kinds is not None and not repeats_events(kinds):
        return events.where(F.col(C.GROUP_ID).isNotNull())
    told = events.withColumn("file", F.coalesce(F.col("source_ref"), F.lit("")))
    named = told.where(F.col(C.GROUP_ID).isNotNull())
    home = F.udf(home_partition, "int", useArrow=False)
    homes = (
        named.groupBy(*C.GROUP_KEY, "file")
        .agg(
            F.min_by(
                "offsets_partition",
                F.when(F.col("offsets_partition").isNotNull(), F.col(C.ORDINAL)),
            ).alias("told"),
            F.min(C.ORDINAL).alias("since"),
        )
        .withColumn("offsets_partition", home(C.GROUP_ID, "told"))
        .drop("told")
    )
    resigned = [event.value for event in ENDS_COORDINATOR]
    shared = (
        told.where(F.col(C.GROUP_ID).isNull() & F.col(C.EVENT).isin(*resigned))
        .drop(C.GROUP_ID)
        .join(homes, [C.TRACE_ID, C.CLUSTER_ID, "offsets_partition", "file"])
        .where(F.col(C.ORDINAL) > F.col("since"))
        .drop("since")
    )
    return named.unionByName(shared).drop("file")


def repeats_events(kinds: Collection[str]) -> bool:
    """Whether `group_events` repeats events of a trace that has these kinds of them."""
    return any(event.value in kinds for event in ENDS_COORDINATOR)


def rebalances(events: "DataFrame") -> "DataFrame":
    """Return one row per rebalance: from PreparingRebalance to the next Stable or Empty.

    Input: events of groups (`group_events`), in any order; `ordinal` orders them.
    Output: key (trace_id, cluster_id, group_id, rebalance_no), numbered from 1. `seen_us`, the
    time of its first line; `start_us` (null where the trace begins later), `join_done_us`,
    `sync_us`, `empty_us`, `end_us` (null while open); `join_ms`, `sync_ms`, `total_ms`, never
    negative, null where either end is; `is_exact` (false where a clock ran backwards in it);
    `reason`, `reason_text`; `members` of the new generation; `outcome`: STABLE, EMPTY,
    COORDINATOR_MOVED, NO_SYNC (joined, then superseded), SUPERSEDED (by another before the join
    ended) or OPEN (no line tells its end); `initial_delay` (from an empty group), `followup` (a
    later round of one hand-over), `chain_no` (the first of the rebalances less than 30 s apart that
    it belongs to), `storm_no` (which storm of its group it is in, 0 for none). Cause and cost, as
    `coordinator_sim.replay.costs` defines them: `trigger`, `trigger_client`, `root_no`,
    `cause_confidence`; `initial_ms`, `dead_ms` and `slow_ms`, the parts of the join phase;
    `restart` (came back, went, or empty), `deploy_no` (0 for none); `source_refs`, the
    lines that tell its start, join and end, as `file:line`, or `event N` where no file is named.
    """
    kinds = [event.value for event in COORDINATOR_EVENTS]
    clients = [source.value for source in CLIENT_SOURCES]
    source = F.coalesce(F.col("source"), F.lit(""))
    return (
        events.where(F.col(C.EVENT).isin(*kinds) & ~source.isin(*clients))
        .select(C.TRACE_ID, C.CLUSTER_ID, C.ORDINAL, *_LINE_COLUMNS)
        .repartition(*C.GROUP_KEY)
        .sortWithinPartitions(*C.GROUP_KEY, C.ORDINAL)
        .mapInArrow(_rebalance_batches, ddl_of(_REBALANCE_SCHEMA))
    )


class _Line(TraceEvent, frozen=True, kw_only=True):
    """A line, and its trace."""

    trace_id: str
    cluster_id: str


def _rebalance_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of rebalances from lines that come group by group, in order."""
    rows: list[dict[str, object]] = []
    for _, group in groupby(_lines(batches), key=attrgetter(*C.GROUP_KEY)):
        rows.extend(_group_rows(list(group)))
        if len(rows) >= _BATCH_ROWS:
            yield pa.RecordBatch.from_pylist(rows, schema=_REBALANCE_SCHEMA)
            rows = []
    yield pa.RecordBatch.from_pylist(rows, schema=_REBALANCE_SCHEMA)


def _lines(batches: Iterable[pa.RecordBatch]) -> Iterator[_Line]:
    for batch in batches:
        names = [name for name in batch.schema.names if _is_told(name, batch.column(name))]
        columns = {name: _values(batch.column(name), _ENUMS.get(name)) for name in names}
        for name in _DEFAULTS.keys() & columns.keys():
            default = _DEFAULTS[name]
            columns[name] = [default if value is None else value for value in columns[name]]
        for values in zip(*columns.values(), strict=True):
            yield _Line(**dict(zip(names, values, strict=True)))


def _is_told(name: str, column: pa.Array) -> bool:
    """Whether lines are made with a column: the order of lines is no part of them, nor are nulls.

    A column without any value is left to the event's own default, which is cheaper.
    """
    return name != C.ORDINAL and (name in _KEPT or column.null_count < len(column))


def _values(column: pa.Array, kind: Any) -> list[Any]:  # noqa: ANN401 - an enum, or None
    """Return the values of a column, those of an enum as its members."""
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        values: list[Any] = column.to_pylist()
        return values
    encoded = column.dictionary_encode()
    words = encoded.dictionary.to_pylist()
    if kind is not None:
        words = [kind(word) for word in words]
    return [None if at is None else words[at] for at in encoded.indices.to_pylist()]


def _group_rows(lines: list[_Line]) -> Iterator[dict[str, object]]:
    key = {name: getattr(lines[0], name) for name in C.GROUP_KEY}
    held = list(steadied(lines))
    numbered = rebalances_of(lines[0].group_id or "", held)
    costs = costs_of_rebalances(numbered, held)
    storms = storm_numbers(costs)
    for told, cost in zip(numbered, costs, strict=True):
        yield key | _row(told) | _cost_row(cost) | {"storm_no": storms.get(cost.number, 0)}


def _cost_row(cost: RebalanceCost) -> dict[str, object]:
    return {
        "trigger": cost.trigger,
        "trigger_client": cost.client,
        "root_no": cost.root,
        "cause_confidence": cost.confidence,
        "initial_ms": float(cost.initial_ms),
        "dead_ms": float(cost.dead_ms),
        "slow_ms": float(cost.slow_ms),
        "restart": cost.restart,
        "deploy_no": cost.deploy,
    }


def _row(told: NumberedRebalance) -> dict[str, object]:
    rebalance = told.rebalance
    start = rebalance.start
    from_empty = start is not None and start.state_from is GroupState.EMPTY
    return {
        C.REBALANCE_NO: told.number,
        C.INCARNATION: rebalance.first_line.incarnation,
        "seen_us": rebalance.first_line.ts_us,
        C.START_US: _us(start),
        "old_generation": rebalance.old_generation,
        C.GENERATION: rebalance.generation,
        C.REASON: rebalance.reason.value,
        "reason_text": None if start is None else start.reason_text,
        "client_reason": None if start is None else start.client_reason,
        C.JOIN_DONE_US: _us(rebalance.join),
        C.SYNC_US: _us(rebalance.sync),
        "empty_us": _us(rebalance.empty),
        C.END_US: _us(rebalance.ended),
        C.MEMBERS: rebalance.members,
        C.PROTOCOL_NAME: _protocol_name(rebalance),
        C.OUTCOME: rebalance.outcome.value,
        "join_ms": _as_ms(rebalance.join_us),
        "sync_ms": _as_ms(rebalance.sync_us),
        "total_ms": _as_ms(rebalance.length_us),
        "is_exact": rebalance.is_exact,
        "initial_delay": from_empty or (start is not None and rebalance.old_generation == 0),
        C.FOLLOWUP: told.follows is not None,
        "chain_no": told.chain,
        "source_refs": _source_refs(rebalance),
    }


def _source_refs(rebalance: Rebalance) -> list[str]:
    lines = (rebalance.first_line, rebalance.start, rebalance.join, rebalance.ended)
    return list(dict.fromkeys(place_of(line) for line in lines if line is not None))


def _us(line: TraceEvent | None) -> int | None:
    return None if line is None else line.ts_us


def _as_ms(duration_us: int | None) -> float | None:
    return None if duration_us is None else duration_us / 1000


def _protocol_name(rebalance: Rebalance) -> str | None:
    lines = (rebalance.sync, rebalance.join, rebalance.empty)
    return next((line.protocol_name for line in lines if line and line.protocol_name), None)


def _first_time(event: str) -> Column:
    return F.min(F.when(F.col(C.EVENT) == event, F.col(C.TS_US)))


def generations(events: "DataFrame", rebalance_rows: "DataFrame") -> "DataFrame":
    """Return one row per generation of a trace, with or without assignments.

    Input: events of groups; rebalances.
    Output: key (group, incarnation, generation): `join_done_us`, `sync_us`, `until_us` (when the
    next rebalance began, or the group emptied; null when it lasts), `leader_id`,
    `protocol_name`, `members`, `static_members`, `stored` (the leader's assignment was accepted).
    Ghosts, generations known only by a gap in the numbers, have no rows; `ghosts_before` counts
    those right before this one.
    """
    told = events.where(
        F.col(C.EVENT).isin("JOIN_COMPLETE", "SYNC_LEADER", "GROUP_STABLE", "GROUP_EMPTY")
        & F.col(C.GENERATION).isNotNull()
    )
    history = Window.partitionBy(*C.LIFE_KEY).orderBy(C.GENERATION)
    rows = told.groupBy(*C.GENERATION_KEY).agg(
        _first_time("JOIN_COMPLETE").alias(C.JOIN_DONE_US),
        _first_time("SYNC_LEADER").alias(C.SYNC_US),
        _first_time("GROUP_EMPTY").alias("empty_us"),
        F.max("leader_id").alias("leader_id"),
        F.max(C.PROTOCOL_NAME).alias(C.PROTOCOL_NAME),
        F.max(C.MEMBERS).alias(C.MEMBERS),
        F.max("static_members").alias("static_members"),
    )
    ended = rebalance_rows.groupBy(*C.LIFE_KEY, F.col("old_generation").alias(C.GENERATION)).agg(
        F.min(C.START_US).alias("next_start_us")
    )
    ghosts = F.col(C.GENERATION) - F.lag(C.GENERATION).over(history) - 1
    return (
        rows.join(ended, list(C.GENERATION_KEY), "left")
        .withColumn("until_us", F.coalesce(F.col("next_start_us"), F.col("empty_us")))
        .withColumn("stored", F.col(C.SYNC_US).isNotNull())
        .withColumn("ghosts_before", F.coalesce(ghosts, F.lit(0)))
        .drop("empty_us", "next_start_us")
    )


def convergence(rebalance_rows: "DataFrame") -> "DataFrame":
    """Return how long each disturbance took to settle: rebalances less than 30 s apart are one.

    Input: rebalances.
    Output: key (group, chain_no): `rebalance_count`, `start_us` (null where the trace begins
    later), `settled_us` (when its last rebalance was Stable or Empty; null when it never was),
    `convergence_ms`, null when either is.
    """
    settled = F.coalesce(C.SYNC_US, "empty_us")
    return (
        rebalance_rows.groupBy(*C.GROUP_KEY, "chain_no")
        .agg(
            F.count("*").alias("rebalance_count"),
            F.min_by(C.START_US, C.REBALANCE_NO).alias(C.START_US),
            F.max_by(settled, C.REBALANCE_NO).alias("settled_us"),
        )
        .withColumn("convergence_ms", (F.col("settled_us") - F.col(C.START_US)) / 1000)
    )
