"""Intervals in which members of consumer and streams groups held partitions or tasks.

Spark brings each group's events together, in order; `coordinator_sim.runs.step_holdings` says who
held what when, as for findings.
"""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.runs.step_holdings import STEP_EVENTS
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.sources import ddl_of
from coordinator_sim_reports.transforms.keys import group_hash
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
