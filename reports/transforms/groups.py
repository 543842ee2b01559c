"""One pass over the groups of traces, which makes every table that is made group by group.

Spark brings together what is told of each group, in order; `coordinator_sim_reports.workers` makes
the rows of all tables from it at once, by the functions that the command line uses.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from pyspark import StorageLevel
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.runs.step_holdings import STEP_EVENTS
from coordinator_sim.trace.client_reasons import CLIENT_EVENTS
from coordinator_sim.trace.events import Event
from coordinator_sim.trace.history import (
    CLIENT_SOURCES,
    COORDINATOR_EVENTS,
    ENDS_COORDINATOR,
    home_partition,
)
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import ddl_of
from coordinator_sim_reports.workers.group import RunFacts
from coordinator_sim_reports.workers.group_records import (
    DENSE,
    LISTED,
    RECORD_COLUMNS,
    SEEN,
)
from coordinator_sim_reports.workers.group_tables import group_batches, pass_schema, schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PROCESSED: Final = "RECORDS_PROCESSED"
"""Kind of the events that tell of records."""
DELIVERED: Final = "RECORDS_DELIVERED"
"""Kind of the events without which no share group's records are told."""
_STEP: Final = "MEMBER_STEP"
_WORK: Final = ("TASKS_STARTED", "TASKS_STOPPED")
OWNING: Final = (_STEP, *_WORK)
"""Kinds of the events that tell who owned what where no assignment does."""
_RECORDS: Final = (
    *(PROCESSED, DELIVERED, "RECORDS_ACKNOWLEDGED", "RECORDS_ARCHIVED", "LOCK_TIMED_OUT"),
)
_MEMBERS: Final = ("JOIN_REQ", "LEAVE_REQ", "MEMBER_FENCED", "PENDING_EXPIRED")
_FAILED: Final = ("MEMBER_FAILED", "MEMBER_KICKED")
_MARKS: Final = ("SYNC_RESP", "MEMBER_LEFT", "LOST", "LIFECYCLE", "ASSIGNED", "MEMBER_ADDED")
_SIGNS_OF_LIFE: Final = ("HEARTBEAT", "OFFSET_COMMIT", "SYNC_REQ")
"""Of use only where a member fails, and most of a trace."""


def group_events(events: "DataFrame", kinds: Collection[str] | None = None) -> "DataFrame":
    """Return every event of a group, those of its coordinator's partition included.

    Input: events; `kinds`, those among them, or None where that is not known: without any
    resignation there is nothing to repeat, and nothing to find out for it.
    Output: the same columns, no null `group_id`: a broker's resignation of an offsets partition
    is repeated for each group of that partition that the same file has told of before, for one
    trace may hold logs of unrelated brokers. Other events of no group are dropped.
    """
    if kinds is not None and not repeats_events(kinds):
        return events.where(F.col(C.GROUP_ID).isNotNull())
    told = events.withColumn("file", F.coalesce(F.col("source_ref"), F.lit("")))
    named = told.where(F.col(C.GROUP_ID).isNotNull())
    home = F.udf(home_partition, "int", useArrow=False)
    homes = (
        named.groupBy(*C.GROUP_KEY, "file")
        .agg(
            F.min_by(
                "offsets_partition",
                F.when(F.col("offsets_partition").isNotNull(), F.col(C.ORDINAL)),
            ).alias("told"),
            F.min(C.ORDINAL).alias("since"),
        )
        .withColumn("offsets_partition", home(C.GROUP_ID, "told"))
        .drop("told")
    )
    resigned = [event.value for event in ENDS_COORDINATOR]
    shared = (
        told.where(F.col(C.GROUP_ID).isNull() & F.col(C.EVENT).isin(*resigned))
        .drop(C.GROUP_ID)
        .join(homes, [C.TRACE_ID, C.CLUSTER_ID, "offsets_partition", "file"])
        .where(F.col(C.ORDINAL) > F.col("since"))
        .drop("since")
    )
    return named.unionByName(shared).drop("file")


def repeats_events(kinds: Collection[str]) -> bool:
    """Whether `group_events` repeats events of a trace that has these kinds of them."""
    return any(event.value in kinds for event in ENDS_COORDINATOR)


@dataclass(frozen=True, slots=True)
class Records:
    """Events, assignments and members of groups.

    Args:
        events: Events of groups (`group_events`).
        kinds: Kinds of events among them.
        dense_pieces: Assignments of groups (`dense_files`).
        resources: Lists of resources.
        sessions: Member sessions; None where nothing wants to know when members were first seen.
    """

    events: "DataFrame"
    kinds: Collection[str]
    dense_pieces: "DataFrame"
    resources: "DataFrame"
    sessions: "DataFrame | None" = None


class GroupPass:
    """The rows of all tables, as one pass over the groups makes them.

    Args:
        of: Records of the groups.
        facts: Facts of the runs by trace id.
        names: Tables of `GROUP_TABLES` that are wanted, and `groups`.
    """

    def __init__(
        self,
        of: Records,
        facts: Mapping[str, RunFacts],
        names: Sequence[str],
    ) -> None:
        records = _records(of)
        make = partial(group_batches, facts=dict(facts), names=tuple(names))
        made = (
            records.repartition(C.GROUP_HASH)
            .sortWithinPartitions(C.GROUP_HASH, C.ORDINAL)
            .mapInArrow(make, ddl_of(pass_schema(names)))
        )
        self._made = made.persist(StorageLevel.DISK_ONLY)

    def table(self, name: str) -> "DataFrame":
        """Return the rows of a table."""
        rows = self._made.select(F.inline(name))
        return rows.select(*schema_of(name).names)


def _records(of: Records) -> "DataFrame":
    """Return all that is told of groups: events, assignments, lists of resources, members."""
    others = [name for name in RECORD_COLUMNS if name not in C.GROUP_KEY]
    told = _wanted(of.events, of.kinds).select(*C.GROUP_KEY, C.ORDINAL, *others)
    pieces = of.dense_pieces.persist(StorageLevel.DISK_ONLY)
    lists = (
        pieces.select(*C.GROUP_KEY, F.explode("list_ids").alias(C.RESOURCE_LIST_ID))
        .distinct()
        .join(of.resources, [C.TRACE_ID, C.RESOURCE_LIST_ID])
    )
    listed = F.struct(F.col(C.RESOURCE_LIST_ID).alias("id"), F.col(C.RESOURCES).alias("names"))
    parts = [
        pieces.select(*C.GROUP_KEY, DENSE),
        lists.select(*C.GROUP_KEY, listed.alias(LISTED)),
    ]
    seen = "struct<member_id string, member_key string, first_seen_us bigint>"
    if of.sessions is None:
        told = told.withColumn(SEEN, F.lit(None).cast(seen))
    else:
        member = F.struct(C.MEMBER_ID, C.MEMBER_KEY, "first_seen_us").alias(SEEN)
        parts.append(of.sessions.select(*C.GROUP_KEY, member))
    for part in parts:
        told = told.unionByName(part, allowMissingColumns=True)
    return told.withColumn(C.GROUP_HASH, F.xxhash64(*C.GROUP_KEY))


def _wanted(events: "DataFrame", kinds: Collection[str]) -> "DataFrame":
    """Return the events that tables are made of."""
    clients = [source.value for source in CLIENT_SOURCES]
    is_clients = F.coalesce(F.col("source"), F.lit("")).isin(*clients)
    wanted = {event.value for event in COORDINATOR_EVENTS}
    wanted |= {*_MEMBERS, *_FAILED, *_MARKS, *_RECORDS, *_WORK}
    assignment: Column = F.lit(None).cast("binary")
    if _STEP in kinds:
        wanted |= {event.value for event in STEP_EVENTS}
        is_answer = F.col(C.EVENT).isin(Event.SYNC_RESP.value, _STEP)
        assignment = F.when(is_answer, F.col("assignment"))
    of_clients = [event.value for event in CLIENT_EVENTS]
    is_wanted = F.col(C.EVENT).isin(*sorted(wanted))
    is_wanted |= is_clients & F.col(C.EVENT).isin(*of_clients)
    found = events.where(is_wanted)
    signs = set(_SIGNS_OF_LIFE) - wanted
    if signs and not set(_FAILED).isdisjoint(kinds):
        failing = events.where(F.col(C.EVENT).isin(*_FAILED)).select(*C.GROUP_KEY).distinct()
        alive = events.where(F.col(C.EVENT).isin(*sorted(signs)) & ~is_wanted)
        found = found.unionByName(alive.join(failing, list(C.GROUP_KEY), "left_semi"))
    return found.withColumn("assignment", assignment)
