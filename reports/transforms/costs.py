"""Costs of rebalances summed by group, by deploy and by day.

The sums of `coordinator_sim.replay.cost_sums`, for any number of traces.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.replay.cost_sums import DAY, DEPLOY, GROUP
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

MOVES: Final = ("moved", "voluntary", "needless")
DURATIONS: Final = ("rebalancing", "paused", "stopped", "unowned")
SUMS: Final = (*(f"{name}_s" for name in DURATIONS), *MOVES, "reprocessed")
"""Columns of `costs` and `storms` that are sums over rebalances, null where none of them knows."""
_US_PER_S: Final = 1_000_000


def _sums() -> list["Column"]:
    return [
        *((F.sum(f"{name}_us") / _US_PER_S).alias(f"{name}_s") for name in DURATIONS),
        *(F.sum(name).alias(name) for name in (*MOVES, "reprocessed")),
    ]


def costs(of_rebalances: "DataFrame") -> "DataFrame":
    """Return the costs of rebalances by group, by deploy of a group, and by day of a cluster.

    Input: costs of rebalances.
    Output: key (scope, trace_id, cluster_id, group_id, deploy_no, day), `scope` group, deploy or
    day; `group_id` is null for a day, `deploy_no` but for a deploy, `day` but for a day.
    `first_us` and `last_us` of its rebalances; `rebalances`, of which `assigned` have known
    assignments; `SUMS` over the rebalances that tell: null where none does. Group by group and day
    by day the sums are the same.
    """
    keys: dict[str, list[Column | str]] = {
        GROUP: [*C.GROUP_KEY],
        DEPLOY: [*C.GROUP_KEY, "deploy_no"],
        DAY: [C.TRACE_ID, C.CLUSTER_ID, "day"],
    }
    scope = (
        F.when(F.grouping("day") == 0, DAY)
        .when(F.grouping("deploy_no") == 0, DEPLOY)
        .otherwise(GROUP)
    )
    return (
        of_rebalances.groupingSets(list(keys.values()), *C.GROUP_KEY, "deploy_no", "day")
        .agg(
            scope.alias("scope"),
            F.min("seen_us").alias("first_us"),
            F.max(F.coalesce(C.END_US, "seen_us")).alias("last_us"),
            F.count("*").alias("rebalances"),
            F.count("unowned_us").alias("assigned"),
            *_sums(),
        )
        .where((F.col("scope") != DEPLOY) | (F.col("deploy_no") > 0))
        .select(
            "scope",
            *C.GROUP_KEY,
            *("deploy_no", "day", "first_us", "last_us", "rebalances", "assigned"),
            *SUMS,
        )
    )
