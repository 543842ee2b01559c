"""The comparison of assignors over groups and runs, and sums over rebalances."""

from typing import Final

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Engine, Frame
from coordinator_sim_reports.workers.group_summary import (
    BOUND,
    ESTIMATE,
    EXACT,
    INTERRUPTIONS,
    MISSING,
    MOVE_COUNTS,
    TIMES,
    UNAVAILABLE,
)
from coordinator_sim_reports.workers.group_tables import schema_of

SPREAD: Final = (
    *("rebalances", "logical_rebalances", *MOVE_COUNTS, *INTERRUPTIONS),
    *(*TIMES, "stopped_s", "double_owned_s"),
)
"""Columns of the comparison with the median, the least and the most."""
_OF_ASSIGNMENTS: Final = (*MOVE_COUNTS, *INTERRUPTIONS, *TIMES, "double_owned_s", "ideal_kept")
COMPARISON_KEY: Final = (C.PROTOCOL_TYPE, "scenario", "assignor")
_QUALITIES: Final = (
    "timing_quality",
    "assignment_quality",
    "ownership_quality",
    "stopped_quality",
)
_GROUP: Final = ", ".join(C.GROUP_KEY)


def ranked(engine: Engine, findings: Frame) -> Frame:
    """Add `rank` to findings, from 1 within a trace: the costliest first."""
    others = [name for name in schema_of("findings").names if name not in C.GROUP_KEY]
    return engine.sql(
        f"""
        SELECT {_GROUP}, CAST(row_number() OVER (
            PARTITION BY trace_id ORDER BY cost_s DESC NULLS LAST, cluster_id, group_id, kind
        ) AS INT) AS rank, {", ".join(others)}
        FROM {{findings}}
        """,
        findings=findings,
    )


def churn_comparison(engine: Engine, groups: Frame) -> Frame:
    """Compare the assignors: one row per protocol type, scenario and assignor.

    Runs of one scenario and assignor with several seeds are one row: the cost of a run is the sum
    over its groups.

    Input: group summaries.
    Output: key (protocol_type, scenario, assignor): `runs`, `groups`; counts and times as the
    mean over runs and, for `SPREAD`, as `*_median`, `*_low` and `*_high` over runs, and by `seed`
    in `worlds`; ratios over the sums of all runs, imbalance as the mean over groups; null where
    no group knows, or one lacks some assignments; qualities are the weakest of the groups'.
    """
    key = ", ".join(COMPARISON_KEY)
    summed = (*SPREAD, "open_rebalances", "ideal_kept")
    kinds = {field.name: field.type for field in schema_of("groups")}

    def whole(value: str) -> str:
        return f"CASE WHEN bool_and({MISSING} IS NULL) THEN {value} END"

    def total(name: str) -> str:
        kind = "DOUBLE" if str(kinds[name]) == "double" else "BIGINT"
        value = f"CAST(sum({name}) AS {kind})"
        return f"{whole(value) if name in _OF_ASSIGNMENTS else value} AS {name}"

    means = [
        *(f"avg({name}) AS {name}" for name in summed),
        *(
            f"{function}({name}) AS {name}_{suffix}"
            for function, suffix in (("median", "median"), ("min", "low"), ("max", "high"))
            for name in SPREAD
        ),
    ]
    names = [*summed, *(f"{name}_{end}" for end in ("median", "low", "high") for name in SPREAD)]
    imbalance = ("spread", "cv", "gini")
    is_same = " AND ".join(f"g.{name} IS NOT DISTINCT FROM s.{name}" for name in COMPARISON_KEY)
    dialect = engine.dialect
    return engine.sql(
        f"""
        WITH of_runs AS (
            SELECT {key}, trace_id, seed, {", ".join(map(total, summed))}
            FROM {{groups}} GROUP BY {key}, trace_id, seed
        ),
        spreads AS (
            SELECT {key}, count(*) AS runs, {", ".join(means)},
                {dialect.sorted_list(dialect.struct(("seed", *SPREAD)))} AS worlds
            FROM of_runs GROUP BY {key}
        ),
        of_groups AS (
            SELECT {key}, count(*) AS groups,
                {", ".join(f"{whole(f'avg({name})')} AS {name}" for name in imbalance)},
                {whole("1 - sum(unowned_s) / nullif(sum(resource_count * observed_s), 0)")}
                    AS availability,
                {", ".join(f"{_worst(name)} AS {name}" for name in _QUALITIES)}
            FROM {{groups}} GROUP BY {key}
        )
        SELECT {", ".join(f"g.{name}" for name in COMPARISON_KEY)},
            g.groups, {", ".join(f"g.{name}" for name in imbalance)}, g.availability,
            {", ".join(f"g.{name}" for name in _QUALITIES)},
            s.runs, {", ".join(f"s.{name}" for name in names)}, s.worlds,
            CASE WHEN s.held_by_survivors = 0 THEN 1.0 ELSE s.kept / s.held_by_survivors END
                AS stickiness,
            CASE WHEN s.ideal_kept > 0 THEN s.kept / s.ideal_kept END AS relative_stickiness
        FROM of_groups g JOIN spreads s ON {is_same}
        """,
        groups=groups,
    )


def _worst(name: str) -> str:
    """Return the weakest quality of a group."""
    cases = " ".join(
        f"WHEN bool_or({name} = '{quality}') THEN '{quality}'"
        for quality in (UNAVAILABLE, ESTIMATE, BOUND)
    )
    return f"CASE {cases} ELSE '{EXACT}' END"


def durations(engine: Engine, rebalances: Frame) -> Frame:
    """Return percentiles of rebalance durations; open ones are left out but counted.

    Input: rebalances.
    Output: one row per `phase` (join, sync, total): `count`, `open`, `p50_ms`, `p90_ms`,
    `p99_ms`, `max_ms`; null percentiles where nothing was timed.
    """
    phases = " UNION ALL ".join(
        f"SELECT '{phase}' AS phase, {phase}_ms AS ms, outcome FROM {{rebalances}}"
        for phase in ("join", "sync", "total")
    )
    shares = {"p50_ms": 0.5, "p90_ms": 0.9, "p99_ms": 0.99}
    percentiles = ", ".join(f"{_percentile('ms', p)} AS {name}" for name, p in shares.items())
    return engine.sql(
        f"""
        SELECT phase, count(ms) AS count, CAST(count_if(outcome = 'OPEN') AS BIGINT) AS open,
            {percentiles}, max(ms) AS max_ms
        FROM ({phases}) GROUP BY phase
        """,
        rebalances=rebalances,
    )


def reasons(engine: Engine, rebalances: Frame) -> Frame:
    """Return the reasons of each group's rebalances and their durations.

    Input: rebalances.
    Output: key (group, reason): `count`, `open`, `followups`; `p50_ms` and `max_ms` of the
    finished ones, null when none is.
    """
    return engine.sql(
        f"""
        SELECT {_GROUP}, reason, count(*) AS count,
            CAST(count_if(outcome = 'OPEN') AS BIGINT) AS open,
            CAST(count_if(followup) AS BIGINT) AS followups,
            {_percentile("total_ms", 0.5)} AS p50_ms, max(total_ms) AS max_ms
        FROM {{rebalances}} GROUP BY {_GROUP}, reason
        """,
        rebalances=rebalances,
    )


def _percentile(name: str, share: float) -> str:
    """Return the least value that so many of a group's do not exceed."""
    return f"percentile_disc({share}) WITHIN GROUP (ORDER BY {name})"
