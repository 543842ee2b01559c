"""Counts of records processed once, again, or never, and of work run by several at once.

The same counts as `coordinator_sim.trace.work`, which defines them, for any number of traces.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import ddl_of
from coordinator_sim_reports.transforms.keys import group_hash
from coordinator_sim_reports.transforms.ownership import covered
from coordinator_sim_reports.workers.share_batches import (
    SHARE_ATTRS,
    SHARE_COLUMNS,
    SHARE_SCHEMA,
    share_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROCESSED: Final = "RECORDS_PROCESSED"
"""Kind of the events that tell of records."""
CONNECTOR: Final = "connector"
DELIVERED: Final = "RECORDS_DELIVERED"
"""Kind of the events without which no share group's records are told."""
_OF_SHARES: Final = (DELIVERED, "RECORDS_ACKNOWLEDGED", "RECORDS_ARCHIVED", "LOCK_TIMED_OUT")
WORK_KEY: Final = (*C.GROUP_KEY, CONNECTOR)
COUNTS: Final = (
    "processed",
    "duplicates",
    "reprocessed",
    "gaps",
    "span",
    "partitions",
    "max_lag",
    "final_lag",
    "double_run_us",
)
_PARTITION: Final = (*WORK_KEY, "topic", "partition")
_RESOURCE: Final = (*WORK_KEY, C.RESOURCE)


def stretches(events: "DataFrame") -> "DataFrame":
    """Return the stretches of processed records, one row each.

    Input: events.
    Output: group, `connector` (empty for consumers), `topic`, `partition`; `first_offset`
    (included), `end_offset` (excluded); `from_us`, `to_us`; `resource`, the work, and `run`, its
    runner; `lag`, `max_lag`, `ordinal`.
    """
    task = F.col("attrs")["task"]
    partition = F.concat(F.lit("p:"), "topic", F.lit("-"), "partition")
    told = events.where(F.col(C.EVENT) == PROCESSED)
    return told.select(
        *C.GROUP_KEY,
        F.coalesce(F.regexp_extract(task, "^t:(.*)-[0-9]+$", 1), F.lit("")).alias(CONNECTOR),
        "topic",
        "partition",
        F.col("offset").alias("first_offset"),
        F.col("position").alias("end_offset"),
        (F.col(C.TS_US) - F.coalesce("latency_us", F.lit(0))).alias(C.FROM_US),
        F.col(C.TS_US).alias(C.TO_US),
        F.coalesce(task, partition).alias(C.RESOURCE),
        F.coalesce(F.col("attrs")["run"], "client_id").alias("run"),
        F.col("attrs")["lag"].cast("bigint").alias("lag"),
        F.col("attrs")["max_lag"].cast("bigint").alias("max_lag"),
        C.ORDINAL,
    )


def work(events: "DataFrame") -> "DataFrame":
    """Return the counts of every group and connector with recorded work.

    Input: events.
    Output: key (group, connector): `processed`, `duplicates`, `reprocessed`, `gaps`, `span`,
    `partitions`, `max_lag`, `final_lag`, `double_run_us`; groups without stretches are absent.
    `processed - duplicates + gaps = span`.
    """
    told = stretches(events)
    per_partition = (
        told.groupBy(*_PARTITION)
        .agg(
            F.sum(F.col("end_offset") - F.col("first_offset")).alias("processed"),
            (F.max("end_offset") - F.min("first_offset")).alias("span"),
            F.max("max_lag").alias("max_lag"),
            F.max_by("lag", C.ORDINAL).alias("final_lag"),
        )
        .join(_distinct(told), list(_PARTITION))
        .join(_reprocessed(told), list(_PARTITION))
    )
    counted = per_partition.groupBy(*WORK_KEY).agg(
        F.sum("processed").alias("processed"),
        F.sum(F.col("processed") - F.col("distinct")).alias("duplicates"),
        F.sum("reprocessed").alias("reprocessed"),
        F.sum(F.col("span") - F.col("distinct")).alias("gaps"),
        F.sum("span").alias("span"),
        F.count("*").alias("partitions"),
        F.max("max_lag").alias("max_lag"),
        F.sum("final_lag").alias("final_lag"),
    )
    again = F.coalesce("again", F.lit(0))
    return (
        counted.join(_double_run(told), list(WORK_KEY))
        .join(_delivered_again(events), list(C.GROUP_KEY), "left")
        .withColumns({name: F.col(name) + again for name in ("processed", "duplicates")})
        .select(*WORK_KEY, *COUNTS)
    )


def _delivered_again(events: "DataFrame") -> "DataFrame":
    """Return per share group the deliveries of records after their first, as `again`."""
    deliveries = F.col("attrs")["deliveries"]
    offsets = F.explode(F.sequence("offset", F.col("position") - 1)).alias("offset")
    told = events.where((F.col(C.EVENT) == DELIVERED) & (deliveries != "1"))
    places = told.select(*C.GROUP_KEY, "topic", "partition", offsets, deliveries).distinct()
    return places.groupBy(*C.GROUP_KEY).agg(F.count("*").alias("again"))


def share_records(events: "DataFrame") -> "DataFrame":
    """Return what became of the records of each share group and topic.

    Input: events.
    Output: key (group, topic): the records that are `done` (acknowledged or archived),
    `deliveries`, those of them `again` after a record's first, records `rejected`, and `used_up`
    at `delivery_limit`, with the longest `held_us` of these; `lost_locks` on records, those of them
    acknowledged too `late`, at most `late_us` after the delivery, and `silent_us` of the others;
    `max_lag` and `final_lag`. `coordinator_sim.replay.share_records` defines them.
    """
    stretch = (F.col(C.EVENT) == PROCESSED) & F.col("attrs")["run"].eqNullSafe("share")
    return (
        events.where(F.col(C.EVENT).isin(*_OF_SHARES) | stretch)
        .select(
            *(group_hash(), *C.GROUP_KEY, C.ORDINAL, C.EVENT, C.TS_US),
            *(name for name in SHARE_COLUMNS if name not in SHARE_ATTRS),
            *(F.col("attrs")[name].alias(name) for name in SHARE_ATTRS),
        )
        .repartition(C.GROUP_HASH)
        .sortWithinPartitions(C.GROUP_HASH, C.ORDINAL)
        .mapInArrow(share_batches, ddl_of(SHARE_SCHEMA))
    )


def lag(events: "DataFrame") -> "DataFrame":
    """Return the lag of each partition's owner, over time.

    Input: events.
    Output: one row per stretch, key (group, connector, topic, partition, at_us, ordinal): `lag` at
    its end, `max_lag` of all of it.
    """
    told = stretches(events).withColumnRenamed(C.TO_US, "at_us")
    return told.select(*_PARTITION, "at_us", C.ORDINAL, "lag", "max_lag")


def _distinct(told: "DataFrame") -> "DataFrame":
    """Return per partition the records that were processed at least once."""
    ranges = told.select(
        *_PARTITION, F.col("first_offset").alias(C.FROM_US), F.col("end_offset").alias(C.TO_US)
    )
    length = F.sum(F.col(C.TO_US) - F.col(C.FROM_US))
    return covered(ranges, _PARTITION).groupBy(*_PARTITION).agg(length.alias("distinct"))


def repetitions(events: "DataFrame") -> "DataFrame":
    """Return the stretches that repeat records: those below what ended ones had reached.

    Input: events.
    Output: one row per such stretch: group, `from_us` (when it began), `reprocessed` > 0.
    """
    return (
        _repeated(stretches(events))
        .where(F.col("reprocessed") > 0)
        .select(*C.GROUP_KEY, F.col("at_us").alias(C.FROM_US), "reprocessed")
    )


def _reprocessed(told: "DataFrame") -> "DataFrame":
    """Return per partition the records of stretches below what ended ones had reached."""
    return _repeated(told).groupBy(*_PARTITION).agg(F.sum("reprocessed").alias("reprocessed"))


def _repeated(told: "DataFrame") -> "DataFrame":
    """Return when each stretch of a partition began, and how many records of it are repeated.

    Beginnings and ends are sorted by time; at one instant the beginnings come first.
    """
    begins = told.select(
        *_PARTITION,
        F.col(C.FROM_US).alias("at_us"),
        F.lit(0).alias("kind"),
        "first_offset",
        "end_offset",
        F.lit(0).cast("bigint").alias("reached"),
    )
    ends = told.select(
        *_PARTITION,
        F.col(C.TO_US).alias("at_us"),
        F.lit(1).alias("kind"),
        "first_offset",
        "end_offset",
        F.col("end_offset").alias("reached"),
    )
    before = (
        Window.partitionBy(*_PARTITION)
        .orderBy("at_us", "kind")
        .rowsBetween(Window.unboundedPreceding, -1)
    )
    repeated = F.least("end_offset", "reached_before") - F.col("first_offset")
    return (
        begins.unionByName(ends)
        .withColumn("reached_before", F.coalesce(F.max("reached").over(before), F.lit(0)))
        .where(F.col("kind") == 0)
        .select(
            *_PARTITION, "at_us", F.greatest(F.lit(0), repeated).cast("bigint").alias("reprocessed")
        )
    )


def _double_run(told: "DataFrame") -> "DataFrame":
    """Return per group the time of all runs of each resource, less the time in which any ran."""
    length = F.sum(F.col(C.TO_US) - F.col(C.FROM_US))
    runs = covered(told, (*_RESOURCE, "run")).groupBy(*WORK_KEY).agg(length.alias("run_us"))
    any_run = covered(told, _RESOURCE).groupBy(*WORK_KEY).agg(length.alias("any_us"))
    return runs.join(any_run, list(WORK_KEY)).select(
        *WORK_KEY, (F.col("run_us") - F.col("any_us")).alias("double_run_us")
    )
