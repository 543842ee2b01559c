"""Rows of the page about fault windows: each window, and what happened to the groups in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]


def fault_rows(
    windows: Sequence[Row], effects: Sequence[Row], labels: Mapping[str, RunLabel]
) -> list[dict[str, Any]]:
    """Return the windows in order of time, one after another the same window of several runs.

    The n-th window of a name in one run is the same as the n-th of that name in another.

    Args:
        windows: Rows of `fault_windows`.
        effects: Rows of `window_effects` with `ownership_quality`, in the order of the page.
        labels: Labels of the runs by trace id, in the order of the page.

    Returns:
        Rows with `name`, `kind` (the class of a task, else empty), `run_name`, `when`, `date`,
        `length_ms`, `is_ended`; `effects` of the window; `is_first` of those that are the same
        window.
    """
    by_window: dict[tuple[object, ...], list[Row]] = {}
    for effect in effects:
        by_window.setdefault(_window_key(effect), []).append(effect)
    numbered = _numbered(windows)
    first_us: dict[tuple[str, int], int] = {}
    for same, window in numbered:
        start_us = _start_us(window, labels)
        first_us[same] = min(start_us, first_us.get(same, start_us))
    order = {trace_id: number for number, trace_id in enumerate(labels)}
    numbered.sort(key=lambda each: (first_us[each[0]], each[0], order[each[1]["trace_id"]]))
    rows: list[dict[str, Any]] = []
    told: tuple[str, int] | None = None
    for same, window in numbered:
        label = labels[window["trace_id"]]
        rows.append(
            {
                "name": window["name"],
                "kind": window["kind"] or "" if window["task"] is not None else "",
                "run_name": label.name,
                "when": label.when(window["from_us"]),
                "date": label.date(window["from_us"]),
                "length_ms": (window["to_us"] - window["from_us"]) / 1000,
                "is_ended": window["is_ended"],
                "effects": by_window.get(_window_key(window), []),
                "is_first": same != told,
            }
        )
        told = same
    return rows


def _numbered(windows: Sequence[Row]) -> list[tuple[tuple[str, int], Row]]:
    """Return windows with their name, and their number among those of that name in their run."""
    counts: dict[tuple[str, str], int] = {}
    numbered = []
    for window in sorted(windows, key=lambda each: each["window_no"]):
        own = (window["trace_id"], window["name"])
        counts[own] = counts.get(own, 0) + 1
        numbered.append(((window["name"], counts[own]), window))
    return numbered


def _start_us(window: Row, labels: Mapping[str, RunLabel]) -> int:
    start_us: int = window["from_us"] - (labels[window["trace_id"]].origin_us or 0)
    return start_us


def _window_key(row: Row) -> tuple[object, ...]:
    return (row["trace_id"], row["cluster_id"], row["window_no"])
