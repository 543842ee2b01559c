"""Reliability of a trace, and the metrics that it can answer."""

from typing import Final

from coordinator_sim.trace.events import Source
from coordinator_sim_reports.engine import Engine, Frame
from coordinator_sim_reports.sources import RUN_SCHEMA
from coordinator_sim_reports.workers.group_summary import RECORD_SOURCES

_UNCLOCKED: Final = ", ".join(
    f"'{source.value}'" for source in (*RECORD_SOURCES, Source.REQUEST_LOG, Source.WIRE)
)
"""What is inferred from records and requests has a bound of its error without any clock."""
_OF_GROUPS: Final = ("rebalances", "unknown_reasons", "open_rebalances", "ghost_generations")
_COUNTS: Final = ("unparsed", "gaps", "inferred", "clock_regressions")


def data_quality(engine: Engine, runs: Frame, events: Frame, of_groups: Frame) -> Frame:
    """Return one row per trace: rows read, rows not understood, suspicious rows.

    Input: runs; events; what each group adds (`rebalance_tables.quality_rows`).
    Output: key trace_id, with the columns of runs and: `unparsed`, `gaps`, `inferred` events;
    `clock_regressions` (an event of one file earlier than the one before it); `groups`;
    `rebalances`, `unknown_reasons`, `open_rebalances`, `ghost_generations`;
    `lockstep_groups`, whose members act in the same millisecond (`is_lockstep`);
    `assigned_generations`; parse rate `parsed_share`, null for an empty trace.
    """

    def sums(names: tuple[str, ...]) -> str:
        return ", ".join(f"CAST(sum({name}) AS BIGINT) AS {name}" for name in names)

    def counted(table: str, *names: str) -> str:
        return ", ".join(f"coalesce({table}.{name}, 0) AS {name}" for name in names)

    # What an event tells is found before the sort: its texts are not sorted with it. Group by group
    # first: distinct counts of all events would shuffle each of them three times.
    return engine.sql(
        f"""
        WITH marked AS (
            SELECT trace_id, source_ref, group_id, ordinal, ts_us,
                event = 'UNPARSED' AS unparsed,
                event = 'GAP' AS gaps,
                ts_kind = 'inferred' AS inferred,
                source NOT IN ({_UNCLOCKED}) AND ts_kind = 'inferred' AND ts_err_us > 0
                    AS held_still,
                CASE WHEN event = 'ASSIGNED' THEN coalesce(generation, -1) END AS assigned
            FROM {{events}}
        ),
        ordered AS (
            SELECT *, held_still OR ts_us < lag(ts_us) OVER (
                PARTITION BY trace_id, source_ref ORDER BY ordinal
            ) AS clock_regressions
            FROM marked
        ),
        of_each AS (
            SELECT trace_id, group_id, {engine.dialect.distinct("assigned")} AS assigned,
                {", ".join(f"count_if({name}) AS {name}" for name in _COUNTS)}
            FROM ordered GROUP BY trace_id, group_id
        ),
        seen AS (
            SELECT trace_id, {sums(_COUNTS)}, count(group_id) AS groups,
                CAST(sum(assigned) AS BIGINT) AS assigned_generations
            FROM of_each GROUP BY trace_id
        ),
        held AS (
            SELECT trace_id, {sums(_OF_GROUPS)},
                CAST(count_if(is_lockstep) AS BIGINT) AS lockstep_groups
            FROM {{of_groups}} GROUP BY trace_id
        )
        SELECT {", ".join(f"r.{name}" for name in RUN_SCHEMA.names)},
            {counted("s", *_COUNTS, "groups", "assigned_generations")},
            {counted("h", *_OF_GROUPS, "lockstep_groups")},
            1 - coalesce(s.unparsed, 0) / nullif(r.events, 0) AS parsed_share
        FROM {{runs}} r
        LEFT JOIN seen s ON r.trace_id = s.trace_id
        LEFT JOIN held h ON r.trace_id = h.trace_id
        """,
        runs=runs,
        events=events,
        of_groups=of_groups,
    )
