"""Reliability of a trace, and the metrics that it can answer."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.transforms.overlaps import with_latest

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

EXACT: Final = "exact"
BOUND: Final = "bound"
ESTIMATE: Final = "estimate"
UNAVAILABLE: Final = "n/a"

LOCKSTEP_MEMBERS: Final = 3
"""Smallest group judged for lockstep: two members may well meet by chance."""
LOCKSTEP_US: Final = 1_000
"""One millisecond: simultaneous in an exact world; processes of a real cluster never are."""
_EXACT_SOURCES: Final = ("sim", "wire", "request_log")
_RECORD_SOURCES: Final = (
    "offsets_topic",
    "offsets_segment",
    "formatter_text",
    "formatter_json",
    "dump_log",
)


def data_quality(
    runs: "DataFrame",
    events: "DataFrame",
    rebalance_rows: "DataFrame",
    generation_rows: "DataFrame",
    lockstep_rows: "DataFrame",
) -> "DataFrame":
    """Return one row per trace: rows read, rows not understood, suspicious rows.

    Input: runs; events; rebalances; generations (`rebalances.generations`); groups in lockstep
    (`lockstep`).
    Output: key trace_id, with the columns of runs and: `unparsed`, `gaps`, `inferred` events;
    `clock_regressions` (an event of one file earlier than the one before it); `groups`;
    `rebalances`, `unknown_reasons`, `open_rebalances`, `ghost_generations`;
    `lockstep_groups`, whose members act in the same millisecond (`lockstep`);
    `assigned_generations`; parse rate `parsed_share`, null for an empty trace.
    """
    file_order = Window.partitionBy("file", C.TRACE_ID, "source_ref").orderBy(C.ORDINAL)
    # What is inferred from records and requests has a bound of its error without any clock.
    is_logged = ~F.col("source").isin(*_RECORD_SOURCES, "request_log", "wire")
    inferred = F.col("ts_kind") == "inferred"
    counts = {
        "unparsed": F.col(C.EVENT) == "UNPARSED",
        "gaps": F.col(C.EVENT) == "GAP",
        "inferred": inferred,
        "clock_regressions": is_logged & inferred & (F.col("ts_err_us") > 0),
    }
    # What an event tells is found before the sort: its texts are not sorted with it.
    told = events.select(
        F.xxhash64(C.TRACE_ID, "source_ref").alias("file"),
        *(C.TRACE_ID, "source_ref", C.GROUP_ID, C.ORDINAL, C.TS_US),
        *(condition.alias(name) for name, condition in counts.items()),
        F.when(F.col(C.EVENT) == "ASSIGNED", F.struct(C.GENERATION)).alias("assigned"),
    )
    earlier = F.col("clock_regressions") | (F.col(C.TS_US) < F.lag(C.TS_US).over(file_order))
    # Group by group first: distinct counts of all events would shuffle each of them three times.
    seen = (
        told.withColumn("clock_regressions", earlier)
        .groupBy(C.TRACE_ID, C.GROUP_ID)
        .agg(
            *(F.count_if(name).alias(name) for name in counts),
            F.size(F.collect_set("assigned")).alias("assigned"),
        )
        .groupBy(C.TRACE_ID)
        .agg(
            *(F.sum(name).alias(name) for name in counts),
            F.count(C.GROUP_ID).alias("groups"),
            F.sum("assigned").alias("assigned_generations"),
        )
    )
    held = rebalance_rows.groupBy(C.TRACE_ID).agg(
        F.count("*").alias("rebalances"),
        F.count_if(F.col(C.REASON) == "UNKNOWN").alias("unknown_reasons"),
        F.count_if(F.col(C.OUTCOME) == "OPEN").alias("open_rebalances"),
    )
    aligned = lockstep_rows.groupBy(C.TRACE_ID).agg(
        F.count_if("is_lockstep").alias("lockstep_groups")
    )
    ghosts = generation_rows.groupBy(C.TRACE_ID).agg(
        F.sum("ghosts_before").alias("ghost_generations")
    )
    joined = (
        runs.join(seen, C.TRACE_ID, "left")
        .join(held, C.TRACE_ID, "left")
        .join(aligned, C.TRACE_ID, "left")
        .join(ghosts, C.TRACE_ID, "left")
    )
    counted = [name for name in joined.columns if name not in runs.columns]
    understood = 1 - F.try_divide(F.col("unparsed"), F.col("events"))
    return joined.na.fill(0, counted).withColumn("parsed_share", understood)


def lockstep(events: "DataFrame", rebalance_rows: "DataFrame") -> "DataFrame":
    """Return whether the members of each group act in the same millisecond.

    Members of a cluster start one after another, and rejoin when they have processed what they
    hold. Where all of a group's members first join within one millisecond, or all rejoin so in most
    of its rebalances, they work in step; an eager rebalance then seems to stop no member, and its
    times without an owner and stop times mean nothing.

    Input: events; rebalances.
    Output: one row per group with a rebalance of at least `LOCKSTEP_MEMBERS` members whose
    JoinGroup requests are known: `starts_aligned`; `compared`, the rebalances after the first to
    which so many came back, follow-ups left out; `aligned`, those of them with all rejoins within
    `LOCKSTEP_US`; `is_lockstep`.
    """
    rounds = rebalance_rows.where(~F.col(C.FOLLOWUP)).select(
        *C.GROUP_KEY,
        F.col(C.START_US).alias(C.FROM_US),
        F.struct(C.REBALANCE_NO, F.coalesce(C.JOIN_DONE_US, C.END_US).alias("until_us")).alias(
            "round"
        ),
    )
    # A first join makes the rebalance that it belongs to, so both have the same instant.
    asked = events.where(F.col(C.EVENT) == "JOIN_REQ").select(
        *C.GROUP_KEY,
        F.col(C.TS_US).alias(C.FROM_US),
        C.MEMBER_ID,
        F.coalesce("client_id", F.nullif(C.MEMBER_ID, F.lit(""))).alias("who"),
    )
    joins = (
        with_latest(asked, rounds, "round")
        .where(F.col(C.FROM_US) <= F.col("round.until_us"))
        .groupBy(*C.GROUP_KEY, F.col(f"round.{C.REBALANCE_NO}").alias(C.REBALANCE_NO), "who")
        .agg(F.min(C.FROM_US).alias(C.TS_US), F.min(C.MEMBER_ID).alias("first_id"))
    )
    is_first = F.col(C.REBALANCE_NO) == 1
    rows = (
        joins.where(is_first | (F.col("first_id") != ""))
        .groupBy(*C.GROUP_KEY, C.REBALANCE_NO)
        .agg(F.count("*").alias("came"), (F.max(C.TS_US) - F.min(C.TS_US)).alias("apart_us"))
        .where(F.col("came") >= LOCKSTEP_MEMBERS)
        .groupBy(*C.GROUP_KEY)
        .agg(
            F.max(is_first & (F.col("apart_us") <= LOCKSTEP_US)).alias("starts_aligned"),
            F.count_if(~is_first).alias("compared"),
            F.count_if(~is_first & (F.col("apart_us") <= LOCKSTEP_US)).alias("aligned"),
        )
    )
    return rows.withColumn(
        "is_lockstep", F.col("starts_aligned") | (F.col("aligned") * 2 > F.col("compared"))
    )


def timing_quality(source: Column, is_exact: Column) -> Column:
    """Return the quality of rebalance durations.

    `exact` unless a source shows only the join's end, or a clock ran backwards in one.
    """
    return F.when(source.isin(*_RECORD_SOURCES) | ~is_exact, ESTIMATE).otherwise(EXACT)


def assignment_quality(has_assignments: Column) -> Column:
    """Return the quality of moves, stickiness and imbalance: exact with assignments."""
    return F.when(has_assignments, EXACT).otherwise(UNAVAILABLE)


def ownership_quality(source: Column, has_assignments: Column) -> Column:
    """Return the quality of unowned and doubly owned time; exact needs each member's own times."""
    return (
        F.when(~has_assignments, UNAVAILABLE)
        .when(source.isin(*_EXACT_SOURCES), EXACT)
        .otherwise(ESTIMATE)
    )


def stopped_quality(source: Column, has_assignments: Column) -> Column:
    """Return the quality of stop-the-world time; without assignments it is an upper bound."""
    return (
        F.when(~has_assignments, BOUND)
        .when(source.isin(*_EXACT_SOURCES), EXACT)
        .otherwise(ESTIMATE)
    )


def determines_assignments(source: Column) -> Column:
    """Whether a source with assignments has those of every generation it shows."""
    return source.isin(*_EXACT_SOURCES)


def worst(qualities: Column) -> Column:
    """Return the weakest of an array of qualities."""
    return (
        F.when(F.array_contains(qualities, UNAVAILABLE), UNAVAILABLE)
        .when(F.array_contains(qualities, ESTIMATE), ESTIMATE)
        .when(F.array_contains(qualities, BOUND), BOUND)
        .otherwise(EXACT)
    )
