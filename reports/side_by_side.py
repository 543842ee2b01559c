"""Rows of the page that set runs beside each other: the runs, and groups that several have."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]


def shared_groups(
    groups: Sequence[Row], reasons: Sequence[Row], labels: Mapping[str, RunLabel]
) -> list[dict[str, Any]]:
    """Return the groups that several runs have under one name, in order of their names.

    Args:
        groups: Rows of `groups`.
        reasons: Rows of `reasons`.
        labels: Labels of the runs by trace id, in the order of the page.

    Returns:
        A row per such name with `group_id` and `runs`: for each run that has the group the row of
        `groups` with `run_name`, `longest_ms`, null where no rebalance is finished, and
        `reason_counts`, most frequent first.
    """
    order = {trace_id: number for number, trace_id in enumerate(labels)}
    by_group: dict[tuple[str, ...], list[Row]] = {}
    for reason in sorted(reasons, key=lambda row: (-row["count"], row["reason"])):
        by_group.setdefault(_group_key(reason), []).append(reason)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for group in sorted(groups, key=lambda row: (row["group_id"], order[row["trace_id"]])):
        own = by_group.get(_group_key(group), [])
        finished = [row["max_ms"] for row in own if row["max_ms"] is not None]
        by_name.setdefault(group["group_id"], []).append(
            {
                **group,
                "run_name": labels[group["trace_id"]].name,
                "longest_ms": max(finished, default=None),
                "reason_counts": {row["reason"]: row["count"] for row in own},
            }
        )
    return [
        {"group_id": name, "runs": runs}
        for name, runs in by_name.items()
        if len({row["trace_id"] for row in runs}) > 1
    ]


def _group_key(row: Row) -> tuple[str, ...]:
    return (row["trace_id"], row["cluster_id"], row["group_id"])
