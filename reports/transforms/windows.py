"""What of the tables lies within a window of time, by the rule of `coordinator_sim.trace.window`.

A rebalance lies in the window in which its first line lies, with all that it costs: of a group, the
time from its first rebalance there to the first one after the window.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.local_frames import has_no_rows, listed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_INSTANTS: Final[Mapping[str, tuple[str, ...]]] = {
    "rebalances": ("seen_us",),
    "rebalance_costs": ("seen_us",),
    "generations": (C.JOIN_DONE_US, C.SYNC_US),
    "moves": (C.SYNC_US,),
    "imbalance": (C.SYNC_US,),
    "assignments": ("owned_from_us",),
    "unowned": (C.TO_US,),
    "paused": (C.FROM_US,),
    "lag": ("at_us",),
}
"""Tables of rows with an instant, and the columns that may tell it."""
_LASTING: Final = {
    "ownership": (C.FROM_US, C.TO_US),
    "member_sessions": ("first_seen_us", C.END_US),
}
"""Tables of rows that last, from and to (null: to the end)."""
_NUMBERED: Final = {"stopped": C.REBALANCE_NO, "waits": C.REBALANCE_NO, "convergence": "chain_no"}
"""Tables of rows that belong to a rebalance, and the column with its number."""
_SINCE: Final = "since_us"
_BEFORE: Final = "before_us"


class Windows:
    """The windows of several traces.

    Args:
        spark: The session of the job.
        of: By trace id.
    """

    def __init__(self, spark: "SparkSession", of: Mapping[str, Window]) -> None:
        rows = [(trace_id, each.from_us, each.until_us) for trace_id, each in of.items()]
        self.of = of
        self._frame = F.broadcast(
            listed(spark, rows, f"trace_id string, {_SINCE} bigint, {_BEFORE} bigint")
        )

    def runs(self, runs: "DataFrame") -> "DataFrame":
        """Return runs that begin and end with their windows."""
        ends = {
            name: F.least(F.greatest(F.col(name), F.col(_SINCE)), F.col(_BEFORE))
            for name in ("first_ts_us", "last_ts_us")
        }
        return runs.join(self._frame, C.TRACE_ID).withColumns(ends).select(*runs.columns)

    def events(self, events: "DataFrame") -> "DataFrame":
        """Return events within the windows."""
        return self._cut(events, self._frame, [C.TRACE_ID], _is_at(F.col(C.TS_US)))

    def faults(self, fault_windows: "DataFrame") -> "DataFrame":
        """Return fault windows that last within the windows."""
        lasts = _lasts(C.FROM_US, C.TO_US)
        return self._cut(fault_windows, self._frame, [C.TRACE_ID], lasts)

    def shown(self, tables: "Mapping[str, DataFrame]") -> "dict[str, DataFrame]":
        """Return what of tables lies within the windows.

        Input: whole tables by name, `rebalances` among them; those without a time stay whole.
        Output: the same tables, of groups that rebalance within the windows alone.
        """
        rebalances = tables["rebalances"]
        spans = self._spans(rebalances).persist()
        numbers = self._cut(rebalances, spans, list(C.GROUP_KEY), _is_at(F.col("seen_us")))
        numbers = numbers.select(*C.GROUP_KEY, C.REBALANCE_NO)
        found = dict(tables)
        for name, table in tables.items():
            if has_no_rows(table):
                continue
            if name in _INSTANTS:
                is_in = _is_at(F.coalesce(*map(F.col, _INSTANTS[name])))
                found[name] = self._cut(table, spans, list(C.GROUP_KEY), is_in)
            elif name in _LASTING:
                found[name] = self._cut(table, spans, list(C.GROUP_KEY), _lasts(*_LASTING[name]))
            elif name in _NUMBERED:
                own = numbers.withColumnRenamed(C.REBALANCE_NO, _NUMBERED[name])
                found[name] = table.join(own, [*C.GROUP_KEY, _NUMBERED[name]], "left_semi")
            elif name == "fault_windows":
                found[name] = self.faults(table)
        return found

    def _spans(self, rebalances: "DataFrame") -> "DataFrame":
        """Return for each group that rebalances within its window from when to when costs are."""
        seen = F.col("seen_us")
        return (
            rebalances.join(self._frame, C.TRACE_ID)
            .groupBy(*C.GROUP_KEY)
            .agg(
                F.min(seen).alias("first_us"),
                F.min(F.when(_is_at(seen), seen)).alias("shown_us"),
                F.min(F.when(seen >= F.col(_BEFORE), seen)).alias("next_us"),
            )
            .where(F.col("shown_us").isNotNull())
            .select(
                *C.GROUP_KEY,
                # What ended before the first rebalance of a group is charged to that one, too.
                F.when(F.col("shown_us") == F.col("first_us"), ALWAYS.from_us)
                .otherwise(F.col("shown_us"))
                .alias(_SINCE),
                F.coalesce("next_us", F.lit(ALWAYS.until_us)).alias(_BEFORE),
            )
        )

    def _cut(
        self, table: "DataFrame", spans: "DataFrame", key: list[str], is_in: "Column"
    ) -> "DataFrame":
        return table.join(spans, key).where(is_in).select(*table.columns)


def _is_at(at_us: "Column") -> "Column":
    return (at_us >= F.col(_SINCE)) & (at_us < F.col(_BEFORE))


def _lasts(from_us: str, to_us: str) -> "Column":
    is_open = F.col(to_us).isNull()
    return (F.col(from_us) < F.col(_BEFORE)) & (is_open | (F.col(to_us) > F.col(_SINCE)))
