"""Findings of groups from their rebalances, as Arrow batches.

`coordinator_sim.replay.findings` finds them, group by group.
"""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from coordinator_sim.clients.client_kind import ClientKind
from coordinator_sim.replay.costs import RebalanceCost
from coordinator_sim.replay.findings import Finding, findings_of
from coordinator_sim.trace.rebalances import RebalanceOutcome
from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.group_runs import groups_of

FINDING_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in C.GROUP_KEY),
        ("kind", pa.string()),
        ("rebalances", pa.int64()),
        ("cost_s", pa.float64()),
        *((name, pa.string()) for name in ("cost_unit", "what", "change", "setting")),
        ("assumes", pa.list_(pa.string())),
        ("saves_s", pa.float64()),
        ("more_rebalances", pa.int64()),
        ("basis", pa.string()),
        ("confidence", pa.float64()),
        ("source_refs", pa.list_(pa.string())),
        *((name, pa.int64()) for name in ("first_us", "last_us")),
        ("client", pa.string()),
    ]
)
COST_COLUMNS: Final = (
    *C.GROUP_KEY,
    *(
        C.REBALANCE_NO,
        "seen_us",
        "total_ms",
        "trigger",
        "trigger_client",
        "root_no",
        "client_cause",
    ),
    *("cause_confidence", "initial_ms", "dead_ms", "slow_ms", "restart", "deploy_no"),
    *("client_kind", C.MEMBERS, C.OUTCOME, C.FOLLOWUP, C.PROTOCOL_NAME, "source_refs"),
    *("paused_us", "stopped_us", "is_bound"),
)
"""Columns of a rebalance, and of what it cost, that a `RebalanceCost` is made of."""


def finding_batches(
    batches: Iterable[pa.RecordBatch], windows: Mapping[str, Window] = MappingProxyType({})
) -> Iterator[pa.RecordBatch]:
    """Yield findings (`FINDING_SCHEMA`) from rebalances that come group by group, in order.

    Args:
        batches: `COST_COLUMNS` of rebalances.
        windows: The time that counts, by trace id; the whole of a trace that is not in it.
    """
    rows: list[dict[str, object]] = []
    for key, costs in groups_of(batches, _costs):
        window = windows.get(key[C.TRACE_ID], ALWAYS)
        found = findings_of(key[C.GROUP_ID], costs, window)
        rows.extend({**key, **_row(each)} for each in found)
    yield pa.RecordBatch.from_pylist(rows, schema=FINDING_SCHEMA)


def _costs(batch: pa.RecordBatch) -> list[RebalanceCost]:
    return [_cost(row) for row in batch.to_pylist()]


def _cost(row: dict[str, Any]) -> RebalanceCost:
    total_ms = row["total_ms"]
    return RebalanceCost(
        number=row[C.REBALANCE_NO],
        start_ms=row["seen_us"] // 1000,
        length_us=None if total_ms is None else round(total_ms * 1000),
        trigger=row["trigger"],
        client=row["trigger_client"],
        root=row["root_no"],
        confidence=row["cause_confidence"],
        initial_ms=int(row["initial_ms"]),
        dead_ms=int(row["dead_ms"]),
        slow_ms=int(row["slow_ms"]),
        restart=row["restart"],
        deploy=row["deploy_no"],
        members=row[C.MEMBERS],
        outcome=RebalanceOutcome(row[C.OUTCOME]),
        is_follow_up=row[C.FOLLOWUP],
        protocol_name=row[C.PROTOCOL_NAME],
        line=row["source_refs"][0],
        paused_us=row["paused_us"],
        stopped_us=row["stopped_us"],
        is_bound=row["is_bound"],
        client_kind=ClientKind(row["client_kind"]),
        client_cause=row["client_cause"],
    )


def _row(finding: Finding) -> dict[str, object]:
    return {
        "kind": finding.kind,
        "rebalances": finding.rebalances,
        "cost_s": finding.cost_s,
        "cost_unit": finding.cost_unit,
        "what": finding.what,
        "change": finding.change,
        "setting": finding.setting,
        "assumes": list(finding.assumes),
        "saves_s": finding.saves_s,
        "more_rebalances": finding.more_rebalances,
        "basis": finding.basis,
        "confidence": finding.confidence,
        "source_refs": list(finding.source_refs),
        "first_us": finding.first_us,
        "last_us": finding.last_us,
        "client": finding.client,
    }
