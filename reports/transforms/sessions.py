"""Members from their first request to their end."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.workers.rebalance_tables import END_KINDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FLAP_SESSIONS: Final = 2
"""Number of session timeouts below which a session is a flap."""


def member_sessions(events: "DataFrame") -> "DataFrame":
    """Return one row per member id: when it was seen, how it ended, what it did.

    Input: events of groups.
    Output: key (group, incarnation, member_id): `member_key`; `first_seen_us`; `end_us` and
    `end_kind` in LEFT, FAILED, KICKED, FENCED, REPLACED (its instance came back under another
    id) or OPEN (null end); `generations` it synced in; `rejoin_count`; `client_id`,
    `client_host`, `session_timeout_ms`; `first_assignment_ms`, from its first JoinGroup to its
    first successful SyncGroup answer; `flapped`.
    """
    named = events.where(F.nullif(F.col(C.MEMBER_ID), F.lit("")).isNotNull())
    kind = F.col(C.EVENT)
    ts = F.col(C.TS_US)
    synced = (kind == "SYNC_RESP") & (F.coalesce(F.col("error_code"), F.lit(0)) == 0)
    end_kind = _end_kind(kind)
    rows = named.groupBy(*C.LIFE_KEY, C.MEMBER_ID).agg(
        F.max("group_instance_id").alias("group_instance_id"),
        F.min(ts).alias("first_seen_us"),
        F.min(F.when(end_kind.isNotNull(), ts)).alias(C.END_US),
        F.min_by(end_kind, F.when(end_kind.isNotNull(), F.col(C.ORDINAL))).alias("end_kind"),
        # As a distinct count, each row would be shuffled twice.
        F.size(F.collect_set(F.when(synced, F.col(C.GENERATION))))
        .cast("bigint")
        .alias("generations"),
        F.count_if(kind == "JOIN_REQ").alias("joins"),
        F.max("client_id").alias("client_id"),
        F.max("client_host").alias("client_host"),
        F.max("session_timeout_ms").alias("session_timeout_ms"),
        F.min(F.when(kind == "JOIN_REQ", ts)).alias("joined_us"),
        F.min(F.when(synced, ts)).alias("assigned_us"),
    )
    return _with_end(rows.withColumn(C.MEMBER_KEY, F.coalesce("group_instance_id", C.MEMBER_ID)))


def _end_kind(event: Column) -> Column:
    chosen = F.lit(None).cast("string")
    for ends, kind in END_KINDS.items():
        chosen = F.when(event == ends.value, kind).otherwise(chosen)
    return chosen


def _with_end(rows: "DataFrame") -> "DataFrame":
    lives = Window.partitionBy(*C.LIFE_KEY, C.MEMBER_KEY).orderBy("first_seen_us", C.MEMBER_ID)
    replaced_us = F.lead("first_seen_us").over(lives)
    length_us = F.col(C.END_US) - F.col("first_seen_us")
    return (
        rows.withColumn("replaced_us", replaced_us)
        .withColumn(
            "end_kind",
            F.when(F.col("end_kind").isNotNull(), F.col("end_kind"))
            .when(F.col("replaced_us").isNotNull(), "REPLACED")
            .otherwise("OPEN"),
        )
        .withColumn(C.END_US, F.coalesce(C.END_US, "replaced_us"))
        .withColumn("rejoin_count", F.greatest(F.lit(0), F.col("joins") - 1))
        .withColumn("first_assignment_ms", (F.col("assigned_us") - F.col("joined_us")) / 1000)
        .withColumn(
            "flapped",
            F.coalesce(
                length_us < FLAP_SESSIONS * 1000 * F.col("session_timeout_ms").cast("bigint"),
                F.expr("false"),
            ),
        )
        .drop("replaced_us", "joins", "joined_us", "assigned_us", "group_instance_id")
    )
