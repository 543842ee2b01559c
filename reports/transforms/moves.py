"""Moves of an assignment: kept, moved, orphaned, added, dropped, and the least possible.

Everything is computed from the dense form: the owners of a generation are one array, and lining
two arrays up costs no string and no row per partition. Definitions: `docs/trace-schema.md`.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.window import Window

from coordinator_sim.messages.embedded.contents import COOPERATIVE_PROTOCOLS
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KIND: Final = "kind"
PARTITION_KIND: Final = "partition"
_TASK_KIND: Final = "task"
_CONNECT_KINDS: Final = (("connector", "c:"), ("task", "t:"))
_MOVE_KEY: Final = (*C.LIFE_KEY, KIND)

_SHIFT: Final = 20
"""Bits for an owner in a pair code: 2^20 members in a generation are far beyond Kafka's reach."""
_LOW: Final = (1 << _SHIFT) - 1
_GONE: Final = -2
"""Position of a member that left; distinct from -1, the position of a resource without owner."""


def by_kind(generations: "DataFrame", resources: "DataFrame") -> "DataFrame":
    """Return dense rows with resources of one kind, because assignors balance each kind alone.

    Input: dense generations; resource lists, key (trace_id, resource_list_id).
    Output: one row per (generation, kind) with `kind` in partition, connector, task: generations of
    consumers and of Kafka Streams as they are, those of Connect split in two. Within (incarnation,
    kind) positions in `owners` mean the same resource in every row.
    """
    connect = F.col(C.PROTOCOL_TYPE) == "connect"
    is_streams = F.col(C.PROTOCOL_TYPE) == "streams"
    whole = F.when(is_streams, _TASK_KIND).otherwise(PARTITION_KIND)
    plain = generations.where(~connect).withColumn(KIND, whole)
    listed = generations.where(connect).join(resources, [C.TRACE_ID, C.RESOURCE_LIST_ID])
    parts = plain
    for kind, prefix in _CONNECT_KINDS:
        part = (
            listed.withColumn(KIND, F.lit(kind))
            .withColumn(
                C.OWNERS,
                F.expr(f"filter(owners, (o, i) -> startswith(resources[i], '{prefix}'))"),
            )
            .withColumn(
                C.LOADS,
                F.expr("transform(member_ids, (m, i) -> size(filter(owners, o -> o = i)))"),
            )
        )
        parts = parts.unionByName(part.select(plain.columns))
    return parts


def chain_ends(generations: "DataFrame") -> "DataFrame":
    """Return the generations in which a hand-over is complete, to be compared end to end.

    A cooperative group takes a resource away in one generation and gives it out in a later one.
    Comparing neighbours would count a drop and an addition where there was one move, so the
    generations with a drop, or under a scheduled delay of Connect, are left out.

    Input: dense rows of one kind each (`by_kind`).
    Output: the same columns, only rows that end a chain, with `chain_generations`: how many
    generations the chain has, 1 for eager protocols.
    """
    history = Window.partitionBy(*_MOVE_KEY).orderBy(C.GENERATION)
    cooperative = F.coalesce(F.col(C.PROTOCOL_NAME), F.lit("")).rlike(COOPERATIVE_PROTOCOLS)
    drops = F.expr(
        "coalesce(exists(zip_with(before, owners, (p, c) -> p >= 0 AND c < 0), d -> d), false)"
    )
    open_chain = cooperative & ((F.col("delay_ms") > 0) | drops)
    numbered = (
        generations.withColumn("before", F.lag(F.when(cooperative, F.col(C.OWNERS))).over(history))
        .withColumn("nth", F.row_number().over(history))
        .withColumn("open_chain", open_chain & (F.size(C.MEMBER_KEYS) > 0))
        .drop("before")
        .where(~F.col("open_chain"))
    )
    nth_before = F.coalesce(F.lag("nth").over(history), F.lit(0))
    return numbered.withColumn("chain_generations", F.col("nth") - nth_before).drop(
        "nth", "open_chain"
    )


def moves(generations: "DataFrame", resources: "DataFrame") -> "DataFrame":
    """Return the moves between a completed generation and the previous completed one.

    Members are compared by key, so a static member stays itself across restarts. The first
    generation of an incarnation has nothing to be compared with and is absent.

    Input: dense generations; resource lists.
    Output: one row per (generation, kind), with `previous_generation`, `chain_generations`,
    `resource_count` (owned now), `member_count`, and counts of resources: `kept`, `moved`,
    `orphaned` (moved, old owner gone), `voluntary` (moved, old owner stayed), `added`, `dropped`;
    `held_by_survivors`; `lb_sizes` and `lb_balanced`, the fewest moves that reach these sizes, or
    any balanced assignment (null where subscriptions differ or are not known); `excess_moves`
    over `lb_balanced`, or over `lb_sizes` where the result is less balanced than that; and the
    ratios `stickiness`, `ideal_stickiness`, `relative_stickiness`, `churn_ratio`.
    """
    # Keys are only compared: as 64-bit hashes they make a row that is sorted half as long.
    hashed = by_kind(generations, resources).withColumn(
        C.MEMBER_KEYS, F.expr(f"transform({C.MEMBER_KEYS}, k -> xxhash64(k))")
    )
    ends = chain_ends(hashed)
    return _with_ratios(_with_bounds(_with_counts(_paired(ends))))


def _paired(ends: "DataFrame") -> "DataFrame":
    """Add the previous chain end's columns and its members' present positions (null: unchanged)."""
    history = Window.partitionBy(*_MOVE_KEY).orderBy(C.GENERATION)
    return (
        ends.withColumn("previous_generation", F.lag(C.GENERATION).over(history))
        .withColumn("old_owners", F.lag(C.OWNERS).over(history))
        .withColumn("old_keys", F.lag(C.MEMBER_KEYS).over(history))
        .withColumn("old_loads", F.lag(C.LOADS).over(history))
        .where(F.col("previous_generation").isNotNull())
        .withColumn("same_members", F.expr(f"{C.MEMBER_KEYS} = old_keys"))
        .withColumn(
            "now_at",
            F.expr(
                "CASE WHEN NOT same_members THEN "
                f"transform(old_keys, k -> coalesce(nullif(CAST(array_position({C.MEMBER_KEYS}, k) "
                f"AS INT), 0) - 1, {_GONE})) END"
            ),
        )
    )


def _with_counts(paired: "DataFrame") -> "DataFrame":
    """Add the counts. A pair code holds old owner + 1 and new owner + 1; 0 is no change."""
    code = f"shiftleft(CAST(coalesce(p, -1) + 1 AS BIGINT), {_SHIFT}) + c + 1"
    changed = (
        "array_remove(CASE WHEN same_members "
        f"THEN zip_with(old_owners, owners, (p, c) -> CASE WHEN p = c THEN 0L ELSE {code} END) "
        "ELSE zip_with(old_owners, owners, "
        f"(p, c) -> CASE WHEN get(now_at, p) = c THEN 0L ELSE {code} END) END, 0L)"
    )
    old = f"(shiftright(d, {_SHIFT}) - 1)"
    moved = f"d > {_LOW} AND d & {_LOW} > 0"
    # If everything has an owner before and after, every change is a move: no need to look.
    whole = (
        "size(owners) = resource_count AND size(old_owners) = size(owners) "
        "AND NOT array_contains(old_owners, -1)"
    )
    return (
        paired.withColumn("changed", F.expr(changed))
        .withColumn("member_count", F.size(C.MEMBER_KEYS))
        .withColumn(
            "resource_count",
            F.expr(
                "size(CASE WHEN array_contains(owners, -1) THEN array_remove(owners, -1) "
                "ELSE owners END)"
            ),
        )
        .withColumn("whole", F.expr(whole))
        .withColumn(
            "moved",
            F.expr(
                f"CASE WHEN whole THEN size(changed) ELSE size(filter(changed, d -> {moved})) END"
            ),
        )
        .withColumn(
            "orphaned",
            F.expr(
                "CASE WHEN same_members THEN 0 ELSE size(filter(changed, "
                f"d -> {moved} AND now_at[CAST({old} AS INT)] < 0)) END"
            ),
        )
        .withColumn("voluntary", F.col("moved") - F.col("orphaned"))
        .withColumn(
            "added",
            F.expr(f"CASE WHEN whole THEN 0 ELSE size(filter(changed, d -> d <= {_LOW})) END"),
        )
        .withColumn(
            "dropped",
            F.expr(f"CASE WHEN whole THEN 0 ELSE size(filter(changed, d -> d & {_LOW} = 0)) END"),
        )
        .withColumn("kept", F.col("resource_count") - F.col("moved") - F.col("added"))
        .withColumn(
            "held",
            F.expr(
                "CASE WHEN dropped = 0 THEN old_loads ELSE transform(old_loads, (n, i) -> n - "
                f"size(filter(changed, d -> d & {_LOW} = 0 AND {old} = i))) END"
            ),
        )
    )


def _with_bounds(counted: "DataFrame") -> "DataFrame":
    """Add the lower bounds. `held` is what old members had of the resources owned now."""
    over_sizes = (
        "aggregate(CASE WHEN same_members "
        "THEN zip_with(held, loads, (n, now) -> greatest(0, n - now)) "
        "ELSE zip_with(held, now_at, (n, i) -> CASE WHEN i < 0 THEN 0 "
        "ELSE greatest(0, n - get(loads, i)) END) END, 0, (s, x) -> s + x)"
    )
    survivors = (
        "CASE WHEN same_members THEN held ELSE "
        "filter(zip_with(held, now_at, (n, i) -> CASE WHEN i < 0 THEN -1 ELSE n END), "
        "n -> n >= 0) END"
    )
    # Of the survivors above the fair share, as many as the division's remainder may keep one more.
    fair = "CAST(resource_count DIV nullif(member_count, 0) AS INT)"
    over_balanced = (
        "aggregate(rich, 0, (s, n) -> s + n) - size(rich) * fair_share "
        "- least(size(rich), resource_count % member_count)"
    )
    balanced = F.when(
        F.col("subscriptions_equal") & (F.col("member_count") > 0),
        F.col("orphaned") + F.expr(over_balanced),
    )
    basis = F.when(F.col("moved") >= F.col("lb_balanced"), F.col("lb_balanced")).when(
        F.col("lb_balanced").isNotNull(), F.col("lb_sizes")
    )
    return (
        counted.withColumn("survivor_loads", F.expr(survivors))
        .withColumn("fair_share", F.expr(fair))
        .withColumn("rich", F.expr("filter(survivor_loads, n -> n > fair_share)"))
        .withColumn(
            "held_by_survivors",
            F.expr(
                "CASE WHEN same_members THEN kept + moved "
                "ELSE aggregate(survivor_loads, 0, (s, x) -> s + x) END"
            ),
        )
        .withColumn("lb_sizes", F.col("orphaned") + F.expr(over_sizes))
        .withColumn("lb_balanced", balanced)
        .withColumn("excess_moves", F.col("moved") - basis)
    )


def _with_ratios(bounded: "DataFrame") -> "DataFrame":
    held = F.col("held_by_survivors")
    stickiness = F.when(held == 0, 1.0).otherwise(F.col("kept") / held)
    ideal = F.when(held == 0, 1.0).otherwise(
        1.0 - (F.col("lb_balanced") - F.col("orphaned")) / held
    )
    ideal = F.when(F.col("lb_balanced").isNotNull(), ideal)
    return (
        bounded.withColumn("stickiness", stickiness)
        .withColumn("ideal_stickiness", ideal)
        .withColumn("relative_stickiness", F.try_divide("stickiness", "ideal_stickiness"))
        .withColumn("churn_ratio", F.try_divide(F.col("moved"), F.col("resource_count")))
        .select(
            *C.GENERATION_KEY,
            KIND,
            "previous_generation",
            "chain_generations",
            C.PROTOCOL_TYPE,
            C.PROTOCOL_NAME,
            C.SYNC_US,
            "resource_count",
            "member_count",
            "kept",
            "moved",
            "orphaned",
            "voluntary",
            "added",
            "dropped",
            "held_by_survivors",
            "lb_sizes",
            "lb_balanced",
            "excess_moves",
            "stickiness",
            "ideal_stickiness",
            "relative_stickiness",
            "churn_ratio",
        )
    )
