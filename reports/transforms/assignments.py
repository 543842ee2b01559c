"""Assignments as long rows."""

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def assignments(generations: "DataFrame", resources: "DataFrame") -> "DataFrame":
    """Return the long view of the dense form.

    Input: dense generations; resource lists, key (trace_id, resource_list_id).
    Output: one row per (generation, resource) that has an owner: `member_key`, `member_id`,
    `owned_from_us` (when the assignment was accepted).
    """
    owned = generations.select(
        *C.GENERATION_KEY,
        C.RESOURCE_LIST_ID,
        C.MEMBER_IDS,
        C.MEMBER_KEYS,
        F.col(C.SYNC_US).alias("owned_from_us"),
        F.posexplode(C.OWNERS).alias("position", "owner"),
    ).where(F.col("owner") >= 0)
    return owned.join(resources, [C.TRACE_ID, C.RESOURCE_LIST_ID]).select(
        *C.GENERATION_KEY,
        F.expr(f"{C.RESOURCES}[position]").alias(C.RESOURCE),
        F.expr(f"{C.MEMBER_KEYS}[owner]").alias(C.MEMBER_KEY),
        F.expr(f"{C.MEMBER_IDS}[owner]").alias(C.MEMBER_ID),
        "owned_from_us",
    )
