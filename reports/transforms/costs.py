"""Costs of rebalances summed by group, by deploy and by day.

The sums of `coordinator_sim.replay.cost_sums`, for any number of traces.
"""

from typing import Final

from coordinator_sim.replay.cost_sums import DAY, DEPLOY, GROUP
from coordinator_sim_reports.engine import Engine, Frame

MOVES: Final = ("moved", "voluntary", "needless")
DURATIONS: Final = ("rebalancing", "paused", "stopped", "unowned")
SUMS: Final = (*(f"{name}_s" for name in DURATIONS), *MOVES, "reprocessed")
"""Columns of `costs` and `storms` that are sums over rebalances, null where none of them knows."""
_GROUP: Final = "trace_id, cluster_id, group_id"
_SUMS: Final = ", ".join(
    (
        *(f"sum({name}_us) / 1000000 AS {name}_s" for name in DURATIONS),
        *(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in (*MOVES, "reprocessed")),
    )
)


def costs(engine: Engine, of_rebalances: Frame) -> Frame:
    """Return the costs of rebalances by group, by deploy of a group, and by day of a cluster.

    Input: costs of rebalances.
    Output: key (scope, trace_id, cluster_id, group_id, deploy_no, day), `scope` group, deploy or
    day; `group_id` is null for a day, `deploy_no` but for a deploy, `day` but for a day.
    `first_us` and `last_us` of its rebalances; `rebalances`, of which `assigned` have known
    assignments; `SUMS` over the rebalances that tell: null where none does. Group by group and day
    by day the sums are the same.
    """
    return engine.sql(
        f"""
        SELECT * FROM (
            SELECT
                CASE WHEN grouping(day) = 0 THEN '{DAY}'
                    WHEN grouping(deploy_no) = 0 THEN '{DEPLOY}' ELSE '{GROUP}' END AS scope,
                {_GROUP}, deploy_no, day,
                min(seen_us) AS first_us, max(coalesce(end_us, seen_us)) AS last_us,
                count(*) AS rebalances, count(unowned_us) AS assigned, {_SUMS}
            FROM {{of_rebalances}}
            GROUP BY GROUPING SETS (
                ({_GROUP}), ({_GROUP}, deploy_no), (trace_id, cluster_id, day)
            )
        )
        WHERE scope <> '{DEPLOY}' OR deploy_no > 0
        """,
        of_rebalances=of_rebalances,
    )
