"""Members that a rebalance waited for: those that came back late, and those that did not."""

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.transforms.overlaps import with_latest
from coordinator_sim_reports.transforms.sessions import END_KINDS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REJOINED: Final = "JOINED"


def waits(events: "DataFrame", rebalance_rows: "DataFrame", sessions: "DataFrame") -> "DataFrame":
    """Return how long the join phase of each rebalance waited for each of its old members.

    A member that was in the group when the rebalance began is waited for until its JoinGroup
    request, or until it is removed or leaves. A member that came in later is not waited for, nor
    one whose own request began the rebalance.

    Input: events of groups; rebalances; member sessions.
    Output: key (group, rebalance_no, member_id): `member_key`; `from_us`, the start of the
    rebalance; `to_us` > `from_us`; `kind`, JOINED where it came back, else how it ended, as in the
    member sessions.
    """
    ends = F.create_map(*(F.lit(text) for pair in END_KINDS.items() for text in pair))
    asked = events.where(
        F.col(C.EVENT).isin("JOIN_REQ", *END_KINDS)
        & F.nullif(F.col(C.MEMBER_ID), F.lit("")).isNotNull()
    ).select(*C.GROUP_KEY, F.col(C.TS_US).alias(C.FROM_US), C.ORDINAL, C.MEMBER_ID, C.EVENT)
    rounds = rebalance_rows.select(
        *C.GROUP_KEY,
        F.col(C.START_US).alias(C.FROM_US),
        F.struct(
            C.REBALANCE_NO, C.START_US, F.coalesce(C.JOIN_DONE_US, C.END_US).alias("until_us")
        ).alias("round"),
    )
    came = (
        with_latest(asked, rounds, "round")
        .where(F.col(C.FROM_US) <= F.col("round.until_us"))
        .groupBy(
            *C.GROUP_KEY,
            F.col(f"round.{C.REBALANCE_NO}").alias(C.REBALANCE_NO),
            F.col(f"round.{C.START_US}").alias(C.START_US),
            C.MEMBER_ID,
        )
        .agg(
            F.min(C.FROM_US).alias(C.TO_US),
            F.min_by(C.EVENT, C.ORDINAL).alias(C.EVENT),
        )
        .where(F.col(C.TO_US) > F.col(C.START_US))
    )
    members = sessions.groupBy(*C.GROUP_KEY, C.MEMBER_ID).agg(
        F.min("first_seen_us").alias("first_seen_us"), F.max(C.MEMBER_KEY).alias(C.MEMBER_KEY)
    )
    return (
        came.join(members, [*C.GROUP_KEY, C.MEMBER_ID])
        .where(F.col("first_seen_us") < F.col(C.START_US))
        .select(
            *C.GROUP_KEY,
            C.REBALANCE_NO,
            C.MEMBER_ID,
            C.MEMBER_KEY,
            F.col(C.START_US).alias(C.FROM_US),
            C.TO_US,
            F.coalesce(ends[F.col(C.EVENT)], F.lit(REJOINED)).alias("kind"),
        )
    )
