"""The cost of a lag objective: which points of a sweep keep it, and the cheapest of them.

A point is one combination of choices and settings in one scenario.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.sim.scenario import (
    ConnectGroupSpec,
    GroupSpec,
    Scenario,
    ShareGroupSpec,
    SinkWork,
    StreamsGroupSpec,
)
from coordinator_sim.sim.topic_logs import TopicLogs
from coordinator_sim.trace.events import Event, TraceEvent
from coordinator_sim.trace.lag import group_lags
from coordinator_sim_reports.formats import format_count, format_seconds, with_range
from coordinator_sim_reports.tradeoffs import Candidate, candidates, name_of, parts_of

Row = Mapping[str, Any]

_US_PER_MS: Final = 1_000
_US_PER_S: Final = 1_000_000
_US_PER_HOUR: Final = 3_600_000_000
KEPT_PERCENT: Final = 1
"""Percent of the time above the objective up to which a world counts as one that keeps it."""
LAG_AXES: Final = {
    "member_hours": "member-hours",
    "above_percent": "% of the time above the objective",
}
"""Columns of the costs of runs between which the front lies, with words."""


class Figure(Struct, frozen=True):
    """One figure of a point: its column in the costs of runs, its title, its form."""

    column: str
    title: str
    form: Callable[[float], str]


FIGURES: Final = (
    Figure("members_mean", "members", "{:,.1f}".format),
    Figure("members_max", "most", format_count),
    Figure("scale_changes", "changes", format_count),
    Figure("rebalances", "rebalances", format_count),
    Figure("member_hours", "member-hours", "{:,.2f}".format),
    Figure("above_percent", "above, %", "{:,.1f}".format),
    Figure("delay_p50_s", "p50, s", format_seconds),
    Figure("delay_p95_s", "p95, s", format_seconds),
    Figure("delay_p99_s", "p99, s", format_seconds),
    Figure("duplicates", "twice", format_count),
)


class Answer(Struct, frozen=True, kw_only=True):
    """What keeping the objective costs in one scenario.

    Args:
        objective_lag_ms: Age of an unprocessed record that is borne.
        sentences: The answer, for readers.
        points: Points with the spreads of all `FIGURES`, by number; empty if none has figures.
        names: Names of the points, without what all of them share.
        keeping: Points that keep the objective in every world.
    """

    scenario: str
    objective_lag_ms: int
    sentences: list[str]
    points: list[Candidate]
    names: dict[str, str]
    keeping: list[str]


def lag_costs(events: Sequence[TraceEvent], scenario: Scenario) -> dict[str, float]:
    """Return what a lag objective cost a run.

    Nothing is returned if no group has lag in time, or if nobody ever held a partition that a group
    subscribes to and in which records arrive: how far it lagged is not in the trace.

    Members are those of all groups, time above the objective that of all partitions, and the delay
    that of the group or connector with the longest.

    Args:
        events: Events of the run, in trace order.
        scenario: What was run.
    """
    ends_us = scenario.duration_ms * _US_PER_MS
    lags = group_lags(events, ends_us)
    if not lags or _to_read(scenario) - _read(events):
        return {}
    groups = {lag.group_id: lag for lag in lags}.values()  # connectors of one have one cluster's
    decided = [event.attrs for event in events if event.reason_text == "ScaleDecision"]
    member_us, above_us = sum(lag.member_us for lag in groups), sum(lag.above_us for lag in lags)
    ends_us = max(ends_us, *(event.ts_us for event in events))
    return {
        "member_hours": member_us / _US_PER_HOUR,
        "above_s": above_us / _US_PER_S,
        "scale_changes": sum(attrs["replicas"] != attrs["before"] for attrs in decided),
        "above_percent": 100 * above_us / sum(lag.partition_us for lag in lags),
        "members_mean": member_us / ends_us,
        "members_max": sum(lag.max_members for lag in groups),
        "delay_p50_s": max(lag.delay_p50_us for lag in lags) / _US_PER_S,
        "delay_p95_s": max(lag.delay_p95_us for lag in lags) / _US_PER_S,
        "delay_p99_s": max(lag.delay_p99_us for lag in lags) / _US_PER_S,
    }


_Reads = set[tuple[str, TopicPartition]]
"""Partitions, each with the group that reads it."""


def _to_read(scenario: Scenario) -> _Reads:
    """Return the partitions with records that groups subscribe to from the start."""
    logs, ends_us = TopicLogs(scenario.topics), scenario.duration_ms * _US_PER_MS
    with_records = [
        partition
        for topic in scenario.topics
        for partition in (TopicPartition(topic.name, number) for number in range(topic.partitions))
        if logs.end_offset(partition, ends_us)
    ]
    names = [topic.name for topic in scenario.topics]
    subscribed = [pair for group in scenario.groups for pair in _topics_of(group, names).items()]
    return {
        (group_id, partition)
        for group_id, topics in subscribed
        for partition in with_records
        if partition.topic in topics
    }


def _topics_of(group: GroupSpec, names: Sequence[str]) -> dict[str, set[str]]:
    """Return the topics that a group reads, or those of a Connect cluster's sinks, by group."""
    match group:
        case ConnectGroupSpec():
            return {
                f"connect-{name}": set(work.topics)
                for name, work in group.work.items()
                if isinstance(work, SinkWork) and name in group.connectors
            }
        case StreamsGroupSpec():
            own = [part.source_topics for part in group.subtopologies]
        case ShareGroupSpec():
            own = [group.topics]
        case _ if group.pattern is not None:
            pattern = re.compile(group.pattern)
            own = [tuple(filter(pattern.fullmatch, names))]
        case _:
            own = [group.topics if each.topics is None else each.topics for each in group.members]
    return {group.group_id: {topic for topics in own for topic in topics}}


def _read(events: Sequence[TraceEvent]) -> _Reads:
    """Return the partitions that somebody held."""
    return {
        (event.group_id or "", TopicPartition(entry.topic, entry.partition))
        for event in events
        if event.event is Event.RECORDS_PROCESSED
        for entry in event.offsets
    }


def answers_of(costs: Sequence[Row], objective_lag_ms: int) -> list[Answer]:
    """Return the answer of each scenario, of consumers and of Connect workers apart.

    Args:
        costs: Rows of `choice_costs.run_costs` with `LAG_COSTS`, in the order of the grid.
        objective_lag_ms: The objective of all runs.
    """
    answers = []
    for scenario in dict.fromkeys(row["scenario"] for row in costs):
        rows = [row for row in costs if row["scenario"] == scenario]
        silent = {name_of(row): None for row in rows if row["above_percent"] is None}
        told = [row for row in rows if name_of(row) not in silent]
        parts = {name_of(row): parts_of(row) for row in told}
        found = candidates(
            told, tuple(LAG_AXES), [each.column for each in FIGURES if each.column not in LAG_AXES]
        )
        for unit in dict.fromkeys(each.unit for each in found) or ("",):
            points = [(each, parts[each.name]) for each in found if each.unit == unit]
            answers.append(_answer(scenario, objective_lag_ms, points, list(silent)))
    return answers


def figure_text(point: Candidate, figure: Figure, *, stacked: bool = False) -> str:
    """Return a figure of a point: the median over the worlds, with the least and the most."""
    spread = point.spreads[figure.column]
    values = (spread.middle, spread.values[0], spread.values[-1])
    return with_range(*map(figure.form, values), stacked=stacked)


def _answer(
    scenario: str,
    objective_lag_ms: int,
    named: Sequence[tuple[Candidate, tuple[str, ...]]],
    silent: Sequence[str],
) -> Answer:
    """Return the answer of points, each with the parts of its name, and of silent ones."""
    points = [each for each, _ in named]
    every = [parts for _, parts in named]
    shared = set(every[0]).intersection(*every[1:]) if len(every) > 1 else set()
    names = {each.name: " ".join(p for p in parts if p not in shared) for each, parts in named}
    keeping = [each for each in points if each.spreads["above_percent"].values[-1] <= KEPT_PERCENT]
    sentences = []
    if points:
        worlds = f"{points[0].runs} drawn world{'s' if points[0].runs > 1 else ''}"
        with_all = " ".join(part for part in every[0] if part in shared)
        sentences = [*_best_of(points, keeping, names), _front_of(points)]
        sentences.append(
            f"Kept: partitions lag by more than {objective_lag_ms / 1000:g} s for at most "
            f"{KEPT_PERCENT} % of the time in every world. {len(points)} points in {worlds} each"
            f"{f', all with {with_all}' if with_all else ''}."
        )
    if silent:
        sentences.append(
            "Without figures, as in some world nobody ever reads some partition that a group "
            f"subscribes to: {'; '.join(silent)}."
        )
    return Answer(
        scenario=scenario,
        objective_lag_ms=objective_lag_ms,
        sentences=[f"{scenario}: {sentences[0]}", *sentences[1:]],
        points=points,
        names=names,
        keeping=[each.name for each in keeping],
    )


def _best_of(
    points: Sequence[Candidate], keeping: Sequence[Candidate], names: Mapping[str, str]
) -> list[str]:
    """Name the cheapest point that keeps the objective, or the closest, and points like it."""
    if keeping:
        best = min(keeping, key=lambda each: each.spreads["member_hours"].middle)
        says = "keeps the lag objective at least cost"
    else:
        best = min(points, key=lambda each: each.spreads["above_percent"].values[-1])
        says = "comes closest to the lag objective, which no point keeps"
    told = {figure.column: figure_text(best, figure) for figure in FIGURES}
    name = f" ({names[best.name]})" if names[best.name] else ""
    best_said = (
        f"no. {best.number}{name} {says}: {told['member_hours']} member-hours, "
        f"{told['members_mean']} members (pods) on average, {told['members_max']} at most; above "
        f"for {told['above_percent']} % of the time; {told['scale_changes']} changes of replicas, "
        f"{told['rebalances']} rebalances; delay p50 {told['delay_p50_s']} s, p95 "
        f"{told['delay_p95_s']} s, p99 {told['delay_p99_s']} s; {told['duplicates']} records "
        "processed again."
    )
    sentences = [best_said]
    alike = [f"no. {each.number}" for each in points if each is not best and _alike(each, best)]
    if best.runs == 1:
        sentences.append("One world does not show how far worlds differ: draw more seeds.")
    elif alike:
        sentences.append(
            f"The worlds drawn do not tell it apart from {', '.join(alike)}: the ranges of "
            "member-hours and of time above overlap."
        )
    return sentences


def _alike(one: Candidate, other: Candidate) -> bool:
    pairs = [(one.spreads[name].values, other.spreads[name].values) for name in LAG_AXES]
    return all(max(a[0], b[0]) <= min(a[-1], b[-1]) for a, b in pairs)


def _front_of(points: Sequence[Candidate]) -> str:
    """Name the points on the front, cheapest first, with what each costs."""
    best = [each for each in points if each.is_best]
    best.sort(key=lambda each: each.spreads["member_hours"].middle)
    told = [{f.column: f.form(each.spreads[f.column].middle) for f in FIGURES} for each in best]
    listed = "; ".join(
        f"no. {each.number}, {own['member_hours']} h, above {own['above_percent']} %, "
        f"{own['scale_changes']} changes, {own['rebalances']} rebalances"
        for each, own in zip(best, told, strict=True)
    )
    return f"On the front between member-hours and time above, cheapest first: {listed}."
