"""What of the tables lies within a window of time, by the rule of `coordinator_sim.trace.window`.

A rebalance lies in the window in which its first line lies, with all that it costs: of a group, the
time from its first rebalance there to the first one after the window.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace
from pyspark.sql import functions as F  # noqa: N812 - its usual name

from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.local_frames import listed
from coordinator_sim_reports.workers.group import RunFacts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

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

    def facts(self, facts: Mapping[str, RunFacts]) -> dict[str, RunFacts]:
        """Return facts of runs that begin and end with their windows."""
        return {
            trace_id: _cut(own, self.of.get(trace_id, ALWAYS)) for trace_id, own in facts.items()
        }

    def faults(self, fault_windows: "DataFrame") -> "DataFrame":
        """Return fault windows that last within the windows."""
        lasts = _lasts(C.FROM_US, C.TO_US)
        return self._cut(fault_windows, self._frame, [C.TRACE_ID], lasts)

    def at(self, table: "DataFrame", spans: "DataFrame", name: str) -> "DataFrame":
        """Return the rows whose instant lies in the spans of their groups."""
        return self._cut(table, spans, list(C.GROUP_KEY), _is_at(F.col(name)))

    def lasting(self, sessions: "DataFrame", spans: "DataFrame") -> "DataFrame":
        """Return the member sessions that last within the spans of their groups."""
        lasts = _lasts("first_seen_us", C.END_US)
        return self._cut(sessions, spans, list(C.GROUP_KEY), lasts)

    def _cut(
        self, table: "DataFrame", spans: "DataFrame", key: list[str], is_in: "Column"
    ) -> "DataFrame":
        return table.join(spans, key).where(is_in).select(*table.columns)


def _cut(facts: RunFacts, window: Window) -> RunFacts:
    first_us, last_us = facts.first_ts_us, facts.last_ts_us
    return replace(
        facts,
        first_ts_us=None if first_us is None else window.nearest_us(first_us),
        last_ts_us=None if last_us is None else window.nearest_us(last_us),
        window=window,
    )


def _is_at(at_us: "Column") -> "Column":
    return (at_us >= F.col(_SINCE)) & (at_us < F.col(_BEFORE))


def _lasts(from_us: str, to_us: str) -> "Column":
    is_open = F.col(to_us).isNull()
    return (F.col(from_us) < F.col(_BEFORE)) & (is_open | (F.col(to_us) > F.col(_SINCE)))
