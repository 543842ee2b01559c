"""Values as readers see them: counts, shares, durations, and the mark of their quality."""

from collections.abc import Callable, Mapping
from typing import Any, Final

Row = Mapping[str, Any]

UNKNOWN: Final = "n/a"
_MARKS: Final = {"exact": "", "bound": "≤ ", "estimate": "~ "}


def format_count(value: float | None) -> str:
    """Format a count: thousands separated, one decimal only for the mean of several runs."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def spread_of(
    row: Row, name: str, form: Callable[[float | None], str], *, stacked: bool = False
) -> str:
    """Format a cell of the comparison: the median over runs, with least and most if they differ.

    Args:
        row: Row of the comparison.
        name: A column of `transforms.summary.SPREAD`.
        form: Formats one value.
        stacked: Put the range on a line of its own, as a narrow terminal needs it.
    """
    median, low, high = (form(row[f"{name}_{part}"]) for part in ("median", "low", "high"))
    return with_range(median, low, high, stacked=stacked)


def with_range(median: str, low: str, high: str, *, stacked: bool = False) -> str:
    """Return a median with the least and the most beside it or, stacked, below it."""
    if low == high:
        return median
    return f"{median}\n{low}-{high}" if stacked else f"{median} ({low}-{high})"


def format_decimal(value: float | None, digits: int = 2) -> str:
    """Format a number with so many decimals."""
    return UNKNOWN if value is None else f"{value:,.{digits}f}"


def format_share(value: float | None) -> str:
    """Format a share of 1 as a percentage: more decimals close to 100 %, where they matter."""
    if value is None:
        return UNKNOWN
    return f"{value * 100:.2f} %" if 0.99 < value < 1 else f"{value * 100:.1f} %"  # noqa: PLR2004


def format_duration(milliseconds: float | None) -> str:
    """Format a duration in a readable unit."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 1_000:  # noqa: PLR2004 - a second
        return f"{milliseconds:,.0f} ms"
    seconds = milliseconds / 1_000
    if seconds < 120:  # noqa: PLR2004 - two minutes
        return f"{seconds:,.1f} s"
    return f"{seconds / 60:,.1f} min"


def format_seconds(seconds: float | None) -> str:
    """Format seconds, with fewer decimals for larger values."""
    if seconds is None:
        return UNKNOWN
    if seconds == 0:
        return "0"
    if seconds < 10:  # noqa: PLR2004 - two digits
        return f"{seconds:,.2f}"
    return f"{seconds:,.1f}" if seconds < 1_000 else f"{seconds:,.0f}"  # noqa: PLR2004


def terse_seconds(seconds: float | None) -> str:
    """Format seconds as `format_seconds` does, from a hundred on without decimals."""
    if seconds is not None and seconds >= 100:  # noqa: PLR2004 - three digits say enough
        return f"{seconds:,.0f}"
    return format_seconds(seconds)


def whole(value: float | None) -> str:
    """Format a count, of several runs the nearest whole one."""
    return format_count(None if value is None else round(value))


def mark_quality(text: str, quality: str) -> str:
    """Return a formatted value with the mark of its quality; unknown values stay `n/a`."""
    return text if text == UNKNOWN else _MARKS.get(quality, "") + text
