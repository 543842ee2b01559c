"""Columns of tables that are empty if the trace lacks their events, and need no plan then.

Planning such a table, only to find that it is empty, takes as long as a small job.
"""

from typing import TYPE_CHECKING, Final

from coordinator_sim_reports.local_frames import listed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

_GROUP: Final = "trace_id string, cluster_id string, group_id string"
_GENERATION: Final = f"{_GROUP}, incarnation int, generation int"
COLUMNS: Final["Mapping[str, str]"] = {
    "moves": f"{_GENERATION}, kind string, previous_generation int, chain_generations int, "
    "protocol_type string, protocol_name string, sync_us bigint, resource_count int, "
    "member_count int, kept int, moved int, orphaned int, voluntary int, added int, dropped int, "
    "held_by_survivors int, lb_sizes int, lb_balanced int, excess_moves int, stickiness double, "
    "ideal_stickiness double, relative_stickiness double, churn_ratio double",
    "imbalance": f"{_GENERATION}, kind string, sync_us bigint, lasted_us bigint, spread int, "
    "cv double, gini double",
    "assignments": f"{_GENERATION}, resource string, member_key string, member_id string, "
    "owned_from_us bigint",
    "ownership": f"{_GROUP}, resource string, member_key string, from_us bigint, to_us bigint, "
    "first_generation int, last_generation int",
    "unowned": f"{_GROUP}, resource string, from_us bigint, to_us bigint, joining_us bigint, "
    "syncing_us bigint, unowned_us bigint, waiting_us bigint",
    "paused": f"{_GROUP}, from_us bigint, paused_us bigint",
    "stopped": f"{_GROUP}, rebalance_no bigint, stopped_us bigint",
    "fault_windows": "trace_id string, cluster_id string, window_no int, name string, task string, "
    "kind string, from_us bigint, to_us bigint, is_ended boolean, next_from_us bigint",
    "window_effects": f"{_GROUP}, window_no int, unowned_us bigint, rebalances_during bigint, "
    "rebalances_after bigint",
    "waits": f"{_GROUP}, rebalance_no bigint, member_id string, member_key string, from_us bigint, "
    "to_us bigint, kind string",
    "work": f"{_GROUP}, connector string, processed bigint, duplicates bigint, reprocessed bigint, "
    "gaps bigint, span bigint, partitions bigint, max_lag bigint, final_lag bigint, "
    "double_run_us bigint",
    "lag": f"{_GROUP}, connector string, topic string, partition int, at_us bigint, "
    "ordinal bigint, lag bigint, max_lag bigint",
    "lockstep": f"{_GROUP}, starts_aligned boolean, compared bigint, aligned bigint, "
    "is_lockstep boolean",
    "double_owned": f"{_GROUP}, double_owned_s double",
}
"""Columns by table; `lockstep`, `paused` and `double_owned` go into others and are not kept."""


def nothing(spark: "SparkSession", name: str) -> "DataFrame":
    """Return a table of `COLUMNS` without rows, which plans know."""
    return listed(spark, [], COLUMNS[name])
