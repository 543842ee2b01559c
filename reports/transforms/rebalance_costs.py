"""Costs of each rebalance, and their sums by group, by deploy and by day; storms of rebalances.

The same figures as `coordinator_sim.replay.charges`, for any number of traces. A cost belongs to
the last rebalance that began before the cost ended, and to the day of that rebalance.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name
from pyspark.sql.window import Window

from coordinator_sim.replay.cost_sums import DAY, DEPLOY, GROUP, LOOP_COUNT
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.transforms import quality as Q  # noqa: N812 - quality labels, as in `Q.EXACT`
from coordinator_sim_reports.transforms.overlaps import with_latest
from coordinator_sim_reports.transforms.work import repetitions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from coordinator_sim_reports.transforms.summary import Derived

MOVES: Final = ("moved", "voluntary", "needless")
DURATIONS: Final = ("rebalancing", "paused", "stopped", "unowned")
SUMS: Final = (*(f"{name}_s" for name in DURATIONS), *MOVES, "reprocessed")
"""Columns of `costs` and `storms` that are sums over rebalances, null where none of them knows."""
_DAY_US: Final = 86_400_000_000
_US_PER_S: Final = 1_000_000
_KEY: Final = (*C.GROUP_KEY, C.REBALANCE_NO)
_FIRST: Final = 1
"""Number of a group's first rebalance."""


@dataclass(frozen=True, slots=True)
class Charged:
    """Input tables of rebalance costs; empty if the trace lacks the events.

    Args:
        derived: Tables of a summary.
        paused: Pauses of members.
        groups: The summary made of them.
        events: Events of groups.
        has_charges: Whether the trace tells more than when rebalances were.
        has_records: Whether it tells of processed records.
    """

    derived: "Derived"
    paused: "DataFrame"
    groups: "DataFrame"
    events: "DataFrame"
    has_charges: bool
    has_records: bool


def rebalance_costs(tables: Charged) -> "DataFrame":
    """Return what each rebalance cost.

    Output: key (group, rebalance_no): `day` (UTC, of its first line), `seen_us`, `end_us`,
    `deploy_no`, `storm_no` (0 for none), `trigger`, `trigger_client`, `members`; `rebalancing_us`
    (null while open), `paused_us` (pauses of members, summed) and `stopped_us` (time in which
    nobody owned anything), upper bounds both where no assignments are known, `unowned_us` (summed
    over resources), `moved`, `voluntary` (moved, the old owner stayed), `needless` (moved beyond
    the fewest that a balanced result needs), `reprocessed` (records). What the trace does not tell
    is null, never 0.
    """
    length_us = F.round(F.col("total_ms") * 1000).cast("bigint")
    history = Window.partitionBy(*C.GROUP_KEY).orderBy(C.REBALANCE_NO)
    # Nobody had anything to give up in a group that was empty.
    before = F.lag(C.MEMBERS).over(history)
    most = F.when(F.col("initial_ms") > 0, F.lit(0)).when(
        # Logs up to 2.x count members nowhere but in a group that is empty.
        before.isNotNull() | (F.col(C.MEMBERS) > 0),
        F.greatest(before, C.MEMBERS),
    )
    rows = tables.derived.rebalances.select(
        *_KEY,
        most.cast("bigint").alias("most_members"),
        F.date_format(_date(F.col("seen_us")), "yyyy-MM-dd").alias("day"),
        *("seen_us", C.END_US, "deploy_no", "storm_no", "trigger", "trigger_client", C.MEMBERS),
        length_us.alias("rebalancing_us"),
    )
    flags = tables.groups.select(
        *C.GROUP_KEY,
        (F.col("assignment_quality") != Q.UNAVAILABLE).alias("is_assigned"),
        # Of a cooperative group without assignments nothing is known to have stopped.
        (F.col("stopped_s") == 0).alias("is_bound_zero"),
    )
    if tables.has_records:
        told = tables.events.where(F.col(C.EVENT) == "RECORDS_PROCESSED").select(*C.GROUP_KEY)
        flags = flags.join(
            told.distinct().withColumn("has_records", F.expr("true")), list(C.GROUP_KEY), "left"
        )
    else:
        flags = flags.withColumn("has_records", F.expr("false"))
    rows = rows.join(flags, list(C.GROUP_KEY))
    if not tables.has_charges:
        absent = {name: F.lit(None).cast("bigint") for name in ("stopped_us", *_CHARGES)}
        return _known(rows.withColumns(absent | {"unbounded": F.lit(0), "rows": F.lit(0)}))
    charged = _charged(_charges(tables), tables.derived.rebalances)
    return _known(
        rows.join(tables.derived.stopped, list(_KEY), "left").join(charged, list(_KEY), "left")
    )


_CHARGES: Final = ("paused_us", "unowned_us", *MOVES, "reprocessed")


def _date(at_us: "Column") -> "Column":
    days = F.floor(at_us / _DAY_US).cast("int")
    return F.date_add(F.lit("1970-01-01").cast("date"), days)


def _charges(tables: Charged) -> "DataFrame":
    """Return what is charged, each with the instant at which it ended."""
    gaps = tables.derived.unowned.select(
        *C.GROUP_KEY, F.col(C.TO_US).alias(C.FROM_US), "unowned_us"
    )
    moved = tables.derived.moves.select(
        *C.GROUP_KEY,
        F.col(C.SYNC_US).alias(C.FROM_US),
        *("moved", "voluntary", F.col("excess_moves").alias("needless")),
        F.col("excess_moves").isNull().cast("int").alias("unbounded"),
    )
    both = gaps.unionByName(tables.paused, allowMissingColumns=True).unionByName(
        moved, allowMissingColumns=True
    )
    again = repetitions(tables.events) if tables.has_records else None
    if again is None:
        return both.withColumn("reprocessed", F.lit(None).cast("bigint"))
    return both.unionByName(again, allowMissingColumns=True)


def _charged(charges: "DataFrame", rebalance_rows: "DataFrame") -> "DataFrame":
    """Return the sums of what is charged to each rebalance."""
    marks = rebalance_rows.groupBy(*C.GROUP_KEY, F.col("seen_us").alias(C.FROM_US)).agg(
        F.max(C.REBALANCE_NO).alias(C.REBALANCE_NO)
    )
    number = F.coalesce(C.REBALANCE_NO, F.lit(_FIRST).cast("bigint"))
    return (
        with_latest(charges, marks, C.REBALANCE_NO)
        .groupBy(*C.GROUP_KEY, number.alias(C.REBALANCE_NO))
        .agg(
            *(F.sum(name).cast("bigint").alias(name) for name in _CHARGES),
            F.coalesce(F.sum("unbounded"), F.lit(0)).alias("unbounded"),
        )
    )


def _known(rows: "DataFrame") -> "DataFrame":
    """Make what is not told null, and what is told and was not 0."""
    bound = F.when(F.col("is_bound_zero"), F.lit(0)).otherwise(F.col("rebalancing_us"))
    most_paused = F.when(F.col("is_bound_zero"), F.lit(0)).otherwise(
        F.col("rebalancing_us") * F.col("most_members")
    )
    zero = F.lit(0).cast("bigint")
    assigned = {
        name: F.when(F.col("is_assigned"), F.coalesce(name, zero)).alias(name)
        for name in ("unowned_us", "moved", "voluntary")
    }
    is_bounded = F.coalesce(F.col("unbounded"), F.lit(0)) == 0
    return rows.select(
        *_KEY,
        *("day", "seen_us", C.END_US, "deploy_no", "storm_no", "trigger", "trigger_client"),
        C.MEMBERS,
        "rebalancing_us",
        F.when(F.col("is_assigned"), F.coalesce("paused_us", zero))
        .otherwise(most_paused)
        .alias("paused_us"),
        F.when(F.col("is_assigned"), F.coalesce("stopped_us", zero))
        .otherwise(bound)
        .alias("stopped_us"),
        *assigned.values(),
        F.when(F.col("is_assigned") & is_bounded, F.coalesce("needless", zero)).alias("needless"),
        F.when(F.col("has_records"), F.coalesce("reprocessed", zero)).alias("reprocessed"),
    )


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


def storms(of_rebalances: "DataFrame") -> "DataFrame":
    """Return storms: rebalances of a group of which any five came within five minutes.

    Input: costs of rebalances.
    Output: key (group, storm_no), numbered from 1: `first_us`, `last_us`, `kind` (`deploy`
    where most of them are a deploy's, `loop` where most were begun by clients that go and come
    back twice or more, or `storm`), `rebalances`, of which `assigned` have known assignments,
    `members` (the most in it; null where unknown), `clients` (how many began one), `first_no`,
    `trigger` and `trigger_client` of the first, `SUMS`.
    """
    own = of_rebalances.where(F.col("storm_no") > 0)
    client = F.nullif(F.col("trigger_client"), F.lit(""))
    of_client = Window.partitionBy(*C.GROUP_KEY, "storm_no", "trigger_client")
    many = F.count("*")
    kind = (
        F.when(F.count_if(F.col("deploy_no") > 0) * 2 > many, "deploy")
        .when(F.count_if(F.col("of_client") >= LOOP_COUNT) * 2 > many, "loop")
        .otherwise("storm")
    )
    return (
        own.withColumn("of_client", F.when(client.isNotNull(), F.count("*").over(of_client)))
        .groupBy(*C.GROUP_KEY, "storm_no")
        .agg(
            F.min("seen_us").alias("first_us"),
            F.max(F.coalesce(C.END_US, "seen_us")).alias("last_us"),
            kind.alias("kind"),
            many.alias("rebalances"),
            F.count("unowned_us").alias("assigned"),
            F.nullif(F.max(C.MEMBERS), F.lit(0)).alias(C.MEMBERS),
            F.count_distinct(client).alias("clients"),
            F.min(C.REBALANCE_NO).alias("first_no"),
            *(F.min_by(name, C.REBALANCE_NO).alias(name) for name in ("trigger", "trigger_client")),
            *_sums(),
        )
    )
