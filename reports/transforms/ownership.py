"""Intervals of ownership, and the time in which resources had no owner.

Times of a member come from its own requests and answers where the trace has them; the fallbacks
are the group's. Definitions: `docs/trace-schema.md`.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from pyspark.sql import Column, Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.messages.embedded.contents import COOPERATIVE_PROTOCOLS
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MEMBER: Final = (*C.GROUP_KEY, C.MEMBER_KEY)
_RESOURCE: Final = (*C.GROUP_KEY, C.RESOURCE)
_SIGNS_OF_LIFE: Final = ("HEARTBEAT", "OFFSET_COMMIT", "JOIN_REQ", "SYNC_REQ")
_LEFT: Final = ("LEAVE_REQ", "MEMBER_LEFT", "MEMBER_FENCED", "LOST")
_FAILED: Final = ("MEMBER_FAILED", "MEMBER_KICKED")
ENDS_OF_PROCESS: Final = ("crashed", "gone")
_MARKING: Final = ("SYNC_RESP", "JOIN_REQ", *_LEFT, *_FAILED, "LIFECYCLE")
"""Kinds of events that may be marks."""


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


def member_marks(events: "DataFrame", kinds: Collection[str]) -> "DataFrame":
    """Return the instants that begin or may end a member's hold on its assignment.

    Input: events of groups; `kinds`, those among them: signs of life are of no use where no member
    fails, and are most of a trace.
    Output: one row per such event: group, `member_key`, `ordinal`, `incarnation`, `generation`;
    `synced_us` (a successful SyncGroup answer), `rejoin_us` (a JoinGroup request, which makes an
    eager member let go), `gone_us` (it left, was removed, or its process ended). A failed member
    is gone since its last sign of life, or a session timeout before its removal if that is later.
    """
    telling = _MARKING if set(_FAILED).isdisjoint(kinds) else (*_MARKING, *_SIGNS_OF_LIFE)
    known = _with_keys(events.where(F.col(C.EVENT).isin(*telling)))
    named = known.where(F.col(C.MEMBER_KEY).isNotNull()).select(*_mark_columns())
    ended = known.where(
        (F.col(C.EVENT) == "LIFECYCLE") & F.col("reason_text").isin(*ENDS_OF_PROCESS)
    ).drop(C.MEMBER_KEY)
    processes = ended.join(clients_of(events), [*C.GROUP_KEY, "client_id"]).select(*_mark_columns())
    return _marks(named.unionByName(processes))


def clients_of(events: "DataFrame") -> "DataFrame":
    """Return the client of each member.

    Input: events of groups.
    Output: distinct rows of group, `member_key`, `client_id`.
    """
    return (
        _with_keys(events)
        .where(F.col(C.EVENT).isin("ASSIGNED", "MEMBER_ADDED"))
        .where(F.col("client_id").isNotNull() & F.col(C.MEMBER_KEY).isNotNull())
        .select(*_MEMBER, "client_id")
        .distinct()
    )


def _with_keys(events: "DataFrame") -> "DataFrame":
    key = F.coalesce(F.col("group_instance_id"), F.nullif(F.col(C.MEMBER_ID), F.lit("")))
    return events.withColumn(C.MEMBER_KEY, key)


def _mark_columns() -> list[str]:
    return [
        *_MEMBER,
        C.INCARNATION,
        C.GENERATION,
        C.ORDINAL,
        C.EVENT,
        C.TS_US,
        "error_code",
        "session_timeout_ms",
    ]


def _marks(rows: "DataFrame") -> "DataFrame":
    history = (
        Window.partitionBy(*_MEMBER)
        .orderBy(C.ORDINAL)
        .rowsBetween(Window.unboundedPreceding, Window.currentRow)
    )
    ok = F.coalesce(F.col("error_code"), F.lit(0)) == 0
    kind = F.col(C.EVENT)
    ts = F.col(C.TS_US)
    alive = F.max(F.when(kind.isin(*_SIGNS_OF_LIFE), ts)).over(history)
    failed = F.least(ts, F.greatest(alive, ts - F.col("session_timeout_ms").cast("bigint") * 1000))
    gone = F.when(kind.isin(*_FAILED), failed).when(kind.isin(*_LEFT, "LIFECYCLE"), ts)
    return (
        rows.withColumn("synced_us", F.when((kind == "SYNC_RESP") & ok, ts))
        .withColumn("rejoin_us", F.when(kind == "JOIN_REQ", ts))
        .withColumn("gone_us", gone)
        .where(F.coalesce("synced_us", "rejoin_us", "gone_us").isNotNull())
        .drop(C.EVENT, C.TS_US, "error_code", "session_timeout_ms")
    )


def holds(generations: "DataFrame", marks: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """Return from when to when each member of a generation held its assignment.

    Eager members hold from their SyncGroup answer to their next JoinGroup request; cooperative
    ones to the answer of the next generation, whatever it assigns. Leaving, failing or dying ends
    both. Without such marks the generation lasts from its SyncGroup to the next one's.

    Input: dense generations; member marks; runs, for the end of the trace.
    Output: one row per (generation, member_key), more after a restart inside a generation:
    `from_us`, `to_us` >= `from_us`.
    """
    members = _members_with_next(generations)
    synced = spans(marks)
    next_spans = (
        synced.groupBy(*C.LIFE_KEY, C.GENERATION, C.MEMBER_KEY)
        .agg(F.min("synced_us").alias("next_from_us"))
        .withColumnRenamed(C.GENERATION, "next_generation")
    )
    joined = members.join(synced, [*C.GENERATION_KEY, C.MEMBER_KEY], "left").join(
        next_spans, [*C.LIFE_KEY, "next_generation", C.MEMBER_KEY], "left"
    )
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias("trace_end_us"))
    cooperative = F.coalesce(F.col(C.PROTOCOL_NAME), F.lit("")).rlike(COOPERATIVE_PROTOCOLS)
    next_us = F.coalesce("next_from_us", "next_sync_us")
    eager_end = F.least("gone_us", "rejoin_us", next_us)
    cooperative_end = F.least(F.col("gone_us"), next_us)
    to = F.coalesce(
        F.when(cooperative, cooperative_end).otherwise(eager_end), F.col("trace_end_us")
    )
    start = F.coalesce("synced_us", C.SYNC_US)
    return joined.join(F.broadcast(ends), C.TRACE_ID).select(
        *C.GENERATION_KEY,
        C.MEMBER_KEY,
        start.alias(C.FROM_US),
        F.greatest(start, to).alias(C.TO_US),
    )


def _members_with_next(generations: "DataFrame") -> "DataFrame":
    """Return one row per (generation, member_key), with the next generation's number and time."""
    history = Window.partitionBy(*C.LIFE_KEY).orderBy(C.GENERATION)
    return (
        generations.select(
            *C.GENERATION_KEY,
            C.PROTOCOL_NAME,
            C.SYNC_US,
            F.lead(C.GENERATION).over(history).alias("next_generation"),
            F.lead(C.SYNC_US).over(history).alias("next_sync_us"),
            C.MEMBER_KEYS,
        )
        .withColumn(C.MEMBER_KEY, F.explode(C.MEMBER_KEYS))
        .drop(C.MEMBER_KEYS)
    )


def spans(marks: "DataFrame") -> "DataFrame":
    """Return successful SyncGroup answers, with the member's next JoinGroup and its next end.

    Input: member marks.
    Output: those with `synced_us`; `rejoin_us` and `gone_us` are the next ones, or null.
    """
    later = (
        Window.partitionBy(*_MEMBER)
        .orderBy(F.col(C.ORDINAL).desc())
        .rowsBetween(Window.unboundedPreceding, -1)
    )

    def next_of(name: str) -> Column:
        return F.last(name, ignorenulls=True).over(later)

    return (
        marks.withColumn("rejoin_us", next_of("rejoin_us"))
        .withColumn("gone_us", next_of("gone_us"))
        .where(F.col("synced_us").isNotNull())
        .drop(C.ORDINAL)
    )


def ownership(assigned: "DataFrame", held: "DataFrame") -> "DataFrame":
    """Return ownership intervals: a member's unbroken hold on a resource is one row.

    Input: assignments (long view); holds.
    Output: key (group, resource, member_key, from_us): `to_us`, `first_generation`,
    `last_generation`. Intervals of length zero are absent.
    """
    pieces = assigned.join(held, [*C.GENERATION_KEY, C.MEMBER_KEY]).where(
        F.col(C.TO_US) > F.col(C.FROM_US)
    )
    history = Window.partitionBy(*_RESOURCE).orderBy(C.FROM_US, C.GENERATION, C.MEMBER_KEY)
    goes_on = (F.lag(C.MEMBER_KEY).over(history) == F.col(C.MEMBER_KEY)) & (
        F.lag(C.TO_US).over(history) >= F.col(C.FROM_US)
    )
    return (
        pieces.withColumn("starts", F.when(goes_on, 0).otherwise(1))
        .withColumn("island", F.sum("starts").over(history))
        .groupBy(*_RESOURCE, C.MEMBER_KEY, "island")
        .agg(
            F.min(C.FROM_US).alias(C.FROM_US),
            F.max(C.TO_US).alias(C.TO_US),
            F.min(C.GENERATION).alias("first_generation"),
            F.max(C.GENERATION).alias("last_generation"),
        )
        .drop("island")
    )


def covered(intervals: "DataFrame", key: tuple[str, ...]) -> "DataFrame":
    """Return the union of intervals: overlapping and touching ones are merged.

    Input: rows of `key`, `from_us`, `to_us`.
    Output: one row per (`key`, `from_us`), with `to_us`; disjoint within a key.
    """
    history = Window.partitionBy(*key).orderBy(C.FROM_US, C.TO_US)
    before = history.rowsBetween(Window.unboundedPreceding, -1)
    is_new = F.coalesce(F.max(C.TO_US).over(before) < F.col(C.FROM_US), F.expr("true"))
    return (
        intervals.select(*key, C.FROM_US, C.TO_US)
        .withColumn("starts", is_new.cast("int"))
        .withColumn("island", F.sum("starts").over(history))
        .groupBy(*key, "island")
        .agg(F.min(C.FROM_US).alias(C.FROM_US), F.max(C.TO_US).alias(C.TO_US))
        .drop("island")
    )


def empty_times(rebalance_rows: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """Return when a group had no members, in which no resource counts as unowned.

    Input: rebalances; runs, for the end of the trace.
    Output: rows of group, `from_us`, `to_us`.
    """
    history = Window.partitionBy(*C.GROUP_KEY).orderBy(C.REBALANCE_NO)
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias("trace_end_us"))
    return (
        rebalance_rows.withColumn("next_us", F.lead("seen_us").over(history))
        .where(F.col(C.OUTCOME) == "EMPTY")
        .join(F.broadcast(ends), C.TRACE_ID)
        .select(
            *C.GROUP_KEY,
            F.col("empty_us").alias(C.FROM_US),
            F.coalesce("next_us", "trace_end_us").alias(C.TO_US),
        )
    )
