"""Rebalances of groups from their lines, as Arrow batches.

`coordinator_sim.trace` defines rebalances, and `coordinator_sim.replay` their causes and costs.
"""

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa

from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.states import GroupState
from coordinator_sim.replay.costs import RebalanceCost, costs_of_rebalances, place_of
from coordinator_sim.replay.storms import storm_numbers
from coordinator_sim.trace.client_reasons import CAUSE, with_client_reasons
from coordinator_sim.trace.events import Event, RebalanceReason, Source, TimeKind, TraceEvent
from coordinator_sim.trace.history import CLIENT_SOURCES, rebalances_of, steadied
from coordinator_sim.trace.rebalances import NumberedRebalance, Rebalance
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.group_runs import groups_of

_BATCH_ROWS: Final = 10_000
_ENUMS: Final[dict[str, Any]] = {
    C.EVENT: Event,
    "ts_kind": TimeKind,
    C.REASON: RebalanceReason,
    "state_from": GroupState,
    "source": Source,
}
_READ: Final[dict[str, Any]] = {
    "attrs": lambda pairs: None if pairs is None else dict(pairs),
    "error_code": lambda number: None if number is None else ErrorCode(number),
}
LINE_COLUMNS: Final = (
    *("seq", "member_id", "group_instance_id", "client_id", "session_timeout_ms", "confidence"),
    *("source_ref", C.GROUP_ID, "offsets_partition", C.INCARNATION, C.GENERATION, C.PROTOCOL_NAME),
    *(C.TS_US, "ts_err_us", C.MEMBERS, "reason_text", "client_reason", "attrs", "error_code"),
    *_ENUMS,
)
"""Columns of an event that a rebalance is read from."""
_DEFAULTS: Final[dict[str, Any]] = {
    "confidence": 1.0,
    C.INCARNATION: 0,
    "ts_err_us": 0,
    "ts_kind": TimeKind.EVENT,
    "attrs": {},
}
"""Values of columns where a row has none, as the events' own."""
_SEQ: Final = "seq"
REBALANCE_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in C.GROUP_KEY),
        (C.REBALANCE_NO, pa.int64()),
        (C.INCARNATION, pa.int32()),
        ("seen_us", pa.int64()),
        (C.START_US, pa.int64()),
        ("old_generation", pa.int32()),
        (C.GENERATION, pa.int32()),
        *(
            (name, pa.string())
            for name in (C.REASON, "reason_text", "client_reason", "first_cause", "client_cause")
        ),
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
        ("client_kind", pa.string()),
        ("source_refs", pa.list_(pa.string())),
    ]
)


def rebalance_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows of rebalances (`REBALANCE_SCHEMA`) from lines that come group by group, in order.

    Args:
        batches: A group's key, and those of `LINE_COLUMNS` of which any line has a value.
    """
    rows: list[dict[str, object]] = []
    with _nothing_collected():
        for key, lines in groups_of(batches, _lines):
            rows.extend(_group_rows(key, lines))
            if len(rows) >= _BATCH_ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema=REBALANCE_SCHEMA)
                rows = []
        yield pa.RecordBatch.from_pylist(rows, schema=REBALANCE_SCHEMA)


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Let no cycles be looked for: lines and rows have none, and the search took a sixth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _lines(batch: pa.RecordBatch) -> list[TraceEvent]:
    told = [name for name in batch.schema.names if name in LINE_COLUMNS]
    columns = {name: _values(batch.column(name), _ENUMS.get(name)) for name in told}
    columns |= {
        name: list(map(read, columns[name])) for name, read in _READ.items() if name in told
    }
    columns[_SEQ] = [number or 0 for number in columns.get(_SEQ, [0] * batch.num_rows)]
    for name, default in _DEFAULTS.items():
        if name in columns:
            columns[name] = [default if value is None else value for value in columns[name]]
    kept = {name: values for name, values in columns.items() if not _is_default(name, values)}
    rows = zip(*kept.values(), strict=True)
    return [TraceEvent(**dict(zip(kept, values, strict=True))) for values in rows]


def _is_default(name: str, values: list[Any]) -> bool:
    """Whether every line has the value that events have by themselves: to leave it is cheaper."""
    return name != _SEQ and values.count(_DEFAULTS.get(name)) == len(values)


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


def _group_rows(key: dict[str, str], lines: list[TraceEvent]) -> Iterator[dict[str, object]]:
    clients = [line for line in lines if line.source in CLIENT_SOURCES]
    own = [line for line in lines if line.source not in CLIENT_SOURCES]
    held = list(steadied(with_client_reasons(own, clients)))
    numbered = rebalances_of(key[C.GROUP_ID], held)
    costs = costs_of_rebalances(numbered, held)
    storms = storm_numbers(costs)
    for told, cost in zip(numbered, costs, strict=True):
        row = {**key, **_row(told), **_cost_row(cost)}
        row["storm_no"] = storms.get(cost.number, 0)
        yield row


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
        "client_kind": cost.client_kind.value,
        "client_cause": cost.client_cause,
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
        "first_cause": None if start is None else start.attrs.get(CAUSE),
        C.JOIN_DONE_US: _us(rebalance.join),
        C.SYNC_US: _us(rebalance.sync),
        "empty_us": _us(rebalance.empty),
        C.END_US: _us(rebalance.ended),
        C.MEMBERS: rebalance.members,
        C.PROTOCOL_NAME: rebalance.protocol_name,
        C.OUTCOME: rebalance.outcome.value,
        "join_ms": _as_ms(rebalance.join_us),
        "sync_ms": _as_ms(rebalance.sync_us),
        "total_ms": _as_ms(rebalance.length_us),
        "is_exact": rebalance.is_exact,
        "initial_delay": not rebalance.is_epoch
        and (from_empty or (start is not None and rebalance.old_generation == 0)),
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
