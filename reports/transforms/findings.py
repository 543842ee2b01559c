"""Findings: what rebalances cost each group most, and what to change.

`coordinator_sim.replay.findings` finds them, group by group, as for the command `findings`: Spark
only brings each group's rebalances together. What a change would save needs replays, which a report
does not make.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.replay.costs import RebalanceCost
from coordinator_sim.replay.findings import Finding, findings_of
from coordinator_sim.trace.rebalances import RebalanceOutcome
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import ddl_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FINDING_SCHEMA: Final = pa.schema(
    [
        *((name, pa.string()) for name in C.GROUP_KEY),
        ("kind", pa.string()),
        ("rebalances", pa.int64()),
        ("cost_s", pa.float64()),
        *((name, pa.string()) for name in ("cost_unit", "what", "change", "setting")),
        ("saves_s", pa.float64()),
        ("basis", pa.string()),
        ("confidence", pa.float64()),
        ("source_refs", pa.list_(pa.string())),
    ]
)
_COST_COLUMNS: Final = (
    *C.GROUP_KEY,
    *(C.REBALANCE_NO, "seen_us", "total_ms", "trigger", "trigger_client", "root_no"),
    *("cause_confidence", "initial_ms", "dead_ms", "slow_ms", "restart", "deploy_no"),
    *(C.MEMBERS, C.OUTCOME, C.FOLLOWUP, C.PROTOCOL_NAME, "source_refs"),
)


def findings(rebalance_rows: "DataFrame") -> "DataFrame":
    """Return what rebalances cost each group most, and what to change, worst first.

    Input: rebalances.
    Output: key (trace_id, cluster_id, rank), `rank` from 1 within a trace: `group_id`, `kind`,
    `rebalances`, `cost_s` in `cost_unit`, `what` and `change` (a sentence each), `setting` (what
    `replay --set` takes to try it; null for nothing to try), `saves_s` (null: not computed here),
    `basis`, `confidence` (0 to 1), `source_refs` (the first lines behind it, at most five).
    Findings of one group overlap. Groups without any are absent.
    """
    worst = Window.partitionBy(C.TRACE_ID).orderBy(
        F.col("cost_s").desc(), C.CLUSTER_ID, C.GROUP_ID, "kind"
    )
    found = (
        rebalance_rows.select(*_COST_COLUMNS)
        .repartition(*C.GROUP_KEY)
        .sortWithinPartitions(*C.GROUP_KEY, C.REBALANCE_NO)
        .mapInArrow(_finding_batches, ddl_of(_FINDING_SCHEMA))
    )
    ranked = found.withColumn("rank", F.row_number().over(worst))
    others = [name for name in _FINDING_SCHEMA.names if name not in C.GROUP_KEY]
    return ranked.select(*C.GROUP_KEY, "rank", *others)


def _finding_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield findings from rebalances that come group by group, in order."""
    rows: list[dict[str, object]] = []
    told = (row for batch in batches for row in batch.to_pylist())
    for key, group in groupby(told, key=itemgetter(*C.GROUP_KEY)):
        costs = [_cost(row) for row in group]
        named = dict(zip(C.GROUP_KEY, key, strict=True))
        rows.extend(named | _row(each) for each in findings_of(named[C.GROUP_ID], costs))
    yield pa.RecordBatch.from_pylist(rows, schema=_FINDING_SCHEMA)


def _cost(row: dict[str, Any]) -> RebalanceCost:
    total_ms = row["total_ms"]
    return RebalanceCost(
        number=row[C.REBALANCE_NO],
        start_ms=row["seen_us"] // 1000,
        length_ms=None if total_ms is None else int(total_ms),
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
        "saves_s": finding.saves_s,
        "basis": finding.basis,
        "confidence": finding.confidence,
        "source_refs": list(finding.source_refs),
    }
