"""Rows of what an import read, and of the clocks of its sources, as the page shows them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinator_sim_reports.formats import format_count, format_duration
from coordinator_sim_reports.run_labels import RunLabel

Row = Mapping[str, Any]

_UNKNOWN: Final = ""
_MS: Final = 1_000
"""Microseconds of a millisecond."""


def source_rows(rows: Sequence[Row], labels: Mapping[str, RunLabel]) -> list[dict[str, Any]]:
    """Return a row for each kind of source of each run.

    Args:
        rows: Rows of `selection.source_kinds`.
        labels: Labels of the runs, by trace id.
    """
    told = []
    for row in rows:
        concerned = row["parsed"] + row["known"] + row["unparsed"]
        skipped = row["skipped_bytes"]
        told.append(
            {
                **row,
                "run_name": labels[row["trace_id"]].name,
                "understood": 1 - row["unparsed"] / concerned if concerned else None,
                "coverage": 1 - row["missing_offsets"] / row["offsets"] if row["offsets"] else None,
                "skipped": _UNKNOWN if skipped is None else f"{format_count(skipped)} B",
            }
        )
    return sorted(told, key=lambda row: row["run_name"])


def skew_rows(rows: Sequence[Row], labels: Mapping[str, RunLabel]) -> list[dict[str, Any]]:
    """Return a row for each pair of sources of each run.

    Args:
        rows: Rows of the table `clock_skews`.
        labels: Labels of the runs, by trace id.
    """
    told = [
        {
            **row,
            "run_name": labels[row["trace_id"]].name,
            "shown": _apart(row),
            "widest": _shown(row["widest_us"]),
        }
        for row in rows
    ]
    return sorted(told, key=lambda row: row["run_name"])


def _apart(row: Row) -> str:
    median_us = row["median_us"]
    if not median_us:
        return f"as that of {row['first_source']}"
    side = "after" if median_us > 0 else "before"
    return f"{_shown(abs(median_us))} {side} that of {row['first_source']}"


def _shown(duration_us: int) -> str:
    """Return a distance of clocks: those of one host differ by less than a millisecond."""
    return format_duration(duration_us / _MS) if duration_us >= _MS else f"{duration_us / _MS} ms"
