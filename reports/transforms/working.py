"""Intervals in which Connect work ran: owned means working, where starts and stops are recorded.

An assignment only names the worker that is to run a connector or task. The work stands still from
its stop on one worker to the end of its start on another, however soon the group has settled.

Intervals in which members of consumer and streams groups held partitions or tasks.

Spark brings each group's events together, in order; `coordinator_sim.runs.step_holdings` says who
held what when, as for findings.
"""

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.runs.step_holdings import STEP_EVENTS
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import ddl_of
from coordinator_sim_reports.transforms.keys import group_hash
from coordinator_sim_reports.transforms.ownership import (
    ENDS_OF_PROCESS,
    assignments,
    clients_of,
    covered,
    holds,
    member_marks,
    ownership,
    spans,
)
from coordinator_sim_reports.workers.step_batches import (
    STEP_SCHEMA,
    TRACE_END,
    step_batches,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


STEP: Final = "MEMBER_STEP"
"""Kind of the events without which no group has such intervals."""
_KINDS: Final = sorted(kind.value for kind in STEP_EVENTS)
_SHARE: Final = "share"
_COLUMNS: Final = (
    *("member_id", "group_instance_id", "client_id", "session_timeout_ms", "reason_text"),
    *(C.GENERATION, C.PROTOCOL_TYPE, "error_code", "assignment"),
)
_ATTRS: Final = ("resources", "revoking", "protocols")


def stepping_groups(events: "DataFrame") -> "DataFrame":
    """Return the groups whose members' steps are told, without share groups, which have no owners.

    Input: events of groups.
    Output: key (group), each once.
    """
    steps = events.where(F.col(C.EVENT) == STEP)
    owning = steps.where(~F.col(C.PROTOCOL_TYPE).eqNullSafe(_SHARE))
    return owning.select(*C.GROUP_KEY).distinct()


def stepping(events: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """Return intervals in which a member held a partition, or ran a task of a streams group.

    Input: events of groups; runs, for the end of the trace.
    Output: key (group, resource, member_key, from_us): `to_us`, and the member's epochs at both
    ends as `first_generation` and `last_generation`; only groups of `stepping_groups`.
    """
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias(TRACE_END))
    groups = F.broadcast(stepping_groups(events))
    return (
        events.where(F.col(C.EVENT).isin(*_KINDS))
        .join(groups, list(C.GROUP_KEY), "left_semi")
        .join(F.broadcast(ends), C.TRACE_ID)
        .select(
            group_hash(),
            *C.GROUP_KEY,
            C.ORDINAL,
            C.EVENT,
            C.TS_US,
            TRACE_END,
            *_COLUMNS,
            *(F.col("attrs")[name].alias(name) for name in _ATTRS),
        )
        .repartition(C.GROUP_HASH)
        .sortWithinPartitions(C.GROUP_HASH, C.ORDINAL)
        .mapInArrow(step_batches, ddl_of(STEP_SCHEMA))
    )


_CLIENT: Final = (*C.GROUP_KEY, "client_id")
_STARTED: Final = "TASKS_STARTED"
_STOPPED: Final = "TASKS_STOPPED"
CHANGES: Final = (_STARTED, _STOPPED)
"""Kinds of the events that tell of work that starts and stops."""


def ownership_of(
    dense: "DataFrame",
    resources: "DataFrame",
    events: "DataFrame",
    runs: "DataFrame",
    kinds: Collection[str],
) -> "DataFrame":
    """Return ownership intervals of every group; for workers that record work, by work.

    Input: dense generations; resource lists; events of groups, and the `kinds` among them; runs.
    Output: key (group, resource, member_key, from_us): `to_us`, `first_generation`,
    `last_generation`. Groups of which some TASKS_STARTED names its resources have the intervals of
    `working`; consumer groups whose steps are told those of `stepping`; the others those of their
    assignments (`ownership`).
    """
    marks = member_marks(events, kinds)
    assigned = ownership(assignments(dense, resources), holds(dense, marks, runs))
    if STEP in kinds:
        groups = F.broadcast(stepping_groups(events))
        assigned = assigned.join(groups, list(C.GROUP_KEY), "left_anti").unionByName(
            stepping(events, runs)
        )
    if set(CHANGES).isdisjoint(kinds):
        return assigned
    told = working(events, marks, runs)
    telling = _changes(events).select(*C.GROUP_KEY).distinct()
    return assigned.join(F.broadcast(telling), list(C.GROUP_KEY), "left_anti").unionByName(told)


def pausing_marks(events: "DataFrame", kinds: Collection[str]) -> "DataFrame":
    """Return the member marks of groups whose members pause: those whose steps are told go on.

    Input: events of groups, and the `kinds` among them.
    Output: as `member_marks`.
    """
    marks = member_marks(events, kinds)
    if STEP not in kinds:
        return marks
    return marks.join(F.broadcast(stepping_groups(events)), list(C.GROUP_KEY), "left_anti")


def working(events: "DataFrame", marks: "DataFrame", runs: "DataFrame") -> "DataFrame":
    """Return intervals in which a connector or task ran on a worker that belonged to its group.

    Work runs from its TASKS_STARTED to its TASKS_STOPPED or the end of the worker's process. A
    worker belongs to the group from its SyncGroup answer until it leaves, dies or, if it failed,
    until its last sign of life.

    Input: events of groups; member marks; runs, for the end of the trace.
    Output: as `ownership_of`; both generations are the one in which the work started.
    """
    ends = runs.select(C.TRACE_ID, F.col("last_ts_us").alias("trace_end_us"))
    changes = _changes(events)
    processes = (
        events.where((F.col(C.EVENT) == "LIFECYCLE") & F.col("reason_text").isin(*ENDS_OF_PROCESS))
        .select(*_CLIENT, C.ORDINAL, C.TS_US)
        .join(changes.select(*_CLIENT, C.RESOURCE).distinct(), list(_CLIENT))
        .withColumn(C.EVENT, F.lit(_STOPPED))
        .withColumn(C.GENERATION, F.lit(None).cast("int"))
    )
    history = Window.partitionBy(*_CLIENT, C.RESOURCE).orderBy(C.ORDINAL, C.EVENT)
    ran = (
        changes.unionByName(processes)
        .withColumn("until_us", F.lead(C.TS_US).over(history))
        .where(F.col(C.EVENT) == _STARTED)
        .join(F.broadcast(ends), C.TRACE_ID)
        .withColumn("until_us", F.coalesce("until_us", "trace_end_us"))
        .withColumnRenamed(C.TS_US, "since_us")
    )
    start, end = F.greatest("since_us", C.FROM_US), F.least("until_us", C.TO_US)
    return (
        ran.join(_memberships(events, marks, ends), list(_CLIENT))
        .where(end > start)
        .select(
            *C.GROUP_KEY,
            C.RESOURCE,
            C.MEMBER_KEY,
            start.alias(C.FROM_US),
            end.alias(C.TO_US),
            F.col(C.GENERATION).alias("first_generation"),
            F.col(C.GENERATION).alias("last_generation"),
        )
    )


def _changes(events: "DataFrame") -> "DataFrame":
    """Return starts and stops of named work, a row for each connector and task."""
    named = F.col("attrs")["resources"]
    return (
        events.where(F.col(C.EVENT).isin(*CHANGES) & named.isNotNull())
        .withColumn(C.RESOURCE, F.explode(F.split(named, " ")))
        .select(*_CLIENT, C.RESOURCE, C.ORDINAL, C.EVENT, C.GENERATION, C.TS_US)
    )


def _memberships(events: "DataFrame", marks: "DataFrame", ends: "DataFrame") -> "DataFrame":
    """Return when each client was a member: rows of client, `member_key`, `from_us`, `to_us`."""
    key = (*C.GROUP_KEY, C.MEMBER_KEY)
    lasted = (
        spans(marks)
        .join(F.broadcast(ends), C.TRACE_ID)
        .select(
            *key,
            F.col("synced_us").alias(C.FROM_US),
            F.greatest("synced_us", F.coalesce("gone_us", "trace_end_us")).alias(C.TO_US),
        )
    )
    return covered(lasted, key).join(clients_of(events), list(key))
