"""What of the tables lies within a window of time, by the rule of `coordinator_sim.trace.window`.

A rebalance lies in the window in which its first line lies, with all that it costs: of a group, the
time from its first rebalance there to the first one after the window.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from coordinator_sim.trace.window import ALWAYS, Window
from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Engine, Frame, Row
from coordinator_sim_reports.workers.group import RunFacts

_ENDS: Final = ("first_ts_us", "last_ts_us")


class Windows:
    """The windows of several traces.

    Args:
        of: By trace id.
    """

    def __init__(self, of: Mapping[str, Window]) -> None:
        self.of = of

    def runs(self, rows: Sequence[Row]) -> list[Row]:
        """Return runs that begin and end with their windows."""
        return [{**row, **self._within(row["trace_id"], row)} for row in rows]

    def facts(self, facts: Mapping[str, RunFacts]) -> dict[str, RunFacts]:
        """Return facts of runs that begin and end with their windows."""
        return {
            trace_id: replace(
                own,
                window=self.of.get(trace_id, ALWAYS),
                **self._within(trace_id, {name: getattr(own, name) for name in _ENDS}),
            )
            for trace_id, own in facts.items()
        }

    def faults(self, rows: Sequence[Row]) -> list[Row]:
        """Return fault windows that last within the windows."""
        return [row for row in rows if self._lasts(row)]

    def at(self, engine: Engine, table: Frame, spans: Frame, name: str) -> Frame:
        """Return the rows whose instant lies in the spans of their groups."""
        return _cut(engine, table, spans, f"t.{name} >= s.since_us AND t.{name} < s.before_us")

    def lasting(self, engine: Engine, sessions: Frame, spans: Frame) -> Frame:
        """Return the member sessions that last within the spans of their groups."""
        is_in = "t.first_seen_us < s.before_us AND (t.end_us IS NULL OR t.end_us > s.since_us)"
        return _cut(engine, sessions, spans, is_in)

    def _within(self, trace_id: str, ends: Mapping[str, Any]) -> dict[str, int | None]:
        window = self.of.get(trace_id, ALWAYS)
        return {
            name: None if ends[name] is None else window.nearest_us(ends[name]) for name in _ENDS
        }

    def _lasts(self, row: Row) -> bool:
        window = self.of[row["trace_id"]]
        is_open = row[C.TO_US] is None
        return bool(row[C.FROM_US] < window.until_us and (is_open or row[C.TO_US] > window.from_us))


def _cut(engine: Engine, table: Frame, spans: Frame, is_in: str) -> Frame:
    is_own = " AND ".join(f"t.{name} = s.{name}" for name in C.GROUP_KEY)
    return engine.sql(
        f"SELECT t.* FROM {{table}} t JOIN {{spans}} s ON {is_own} WHERE {is_in}",
        table=table,
        spans=spans,
    )
