"""Findings: what rebalances cost each group most, and what to change.

`coordinator_sim.replay.findings` finds them, group by group, as for the command `findings`: Spark
only brings each group's rebalances together. What a change would save needs replays, which `jobs`
makes for the findings of the page.
"""

from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import ddl_of
from coordinator_sim_reports.transforms.keys import group_hash
from coordinator_sim_reports.transforms.windows import Windows
from coordinator_sim_reports.workers.finding_batches import (
    COST_COLUMNS,
    FINDING_SCHEMA,
    finding_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def findings(
    rebalance_rows: "DataFrame", of_rebalances: "DataFrame", windows: Windows | None = None
) -> "DataFrame":
    """Return what rebalances cost each group most, and what to change, worst first.

    Input: rebalances; their costs; the windows that the findings are of, None for the whole.
    Output: key (trace_id, cluster_id, rank), `rank` from 1 within a trace: `group_id`, `kind`,
    `rebalances`, `cost_s` in `cost_unit`, `what` and `change` (a sentence each), `setting` (what
    `replay --set` takes to try it; null for nothing to try), `assumes` (what such a replay assumes
    beside what every replay does), `saves_s` and `more_rebalances` (null: not computed here),
    `basis`, `confidence` (0 to 1), `source_refs` (the first lines behind it, at most five),
    `first_us` and `last_us` (the first lines of the first and the last rebalance behind it).
    Findings of one group overlap. Groups without any are absent.
    """
    worst = Window.partitionBy(C.TRACE_ID).orderBy(
        F.col("cost_s").desc(), C.CLUSTER_ID, C.GROUP_ID, "kind"
    )
    key = (*C.GROUP_KEY, C.REBALANCE_NO)
    of = {} if windows is None else dict(windows.of)
    downtime = of_rebalances.select(
        *(*key, "paused_us", "stopped_us"), F.col("unowned_us").isNull().alias("is_bound")
    )
    found = (
        rebalance_rows.join(downtime, list(key))
        .select(group_hash(), *COST_COLUMNS)
        .repartition(C.GROUP_HASH)
        .sortWithinPartitions(C.GROUP_HASH, C.REBALANCE_NO)
        .mapInArrow(partial(finding_batches, windows=of), ddl_of(FINDING_SCHEMA))
    )
    ranked = found.withColumn("rank", F.row_number().over(worst))
    others = [name for name in FINDING_SCHEMA.names if name not in C.GROUP_KEY]
    return ranked.select(*C.GROUP_KEY, "rank", *others)
