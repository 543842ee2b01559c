"""The charts of a sweep's candidates, as inline SVG."""

from collections.abc import Sequence
from html import escape
from math import floor, log10
from typing import Final

from coordinator_sim_reports.tradeoffs import Candidate

WIDTH: Final = 760
HEIGHT: Final = 380
_LEFT: Final = 64
_BOTTOM: Final = 44
_TOP: Final = 14
_RADIUS: Final = 10
_STRIP_WIDTH: Final = 120
_STRIP_HEIGHT: Final = 16
_LOG_FROM: Final = 30
"""Ratio of the largest to the smallest value from which on an axis is logarithmic."""


class _Axis:
    """An axis from 0, or a logarithmic one where the values differ much."""

    def __init__(self, values: Sequence[float], length: float) -> None:
        self._length = length
        positive = [value for value in values if value > 0]
        self._high = max(positive, default=1.0) * 1.08
        low = min(positive, default=1.0)
        self.is_log = len(positive) == len(values) and self._high / low > _LOG_FROM
        self._low = low / 1.3 if self.is_log else 0.0

    def at(self, value: float) -> float:
        """The distance of a value from the axis's beginning."""
        if self.is_log:
            share = log10(value / self._low) / log10(self._high / self._low)
        else:
            share = value / self._high
        return round(share * self._length, 1)

    def ticks(self) -> list[float]:
        """Round values on the axis."""
        if self.is_log:
            first = floor(log10(self._low)) + 1
            decades = [10.0**power for power in range(first, floor(log10(self._high)) + 1)]
            return decades or [self._low * 2]
        step = 10.0 ** floor(log10(self._high / 2))
        factor = next(each for each in (1, 2, 5, 10) if self._high / (step * each) <= 5)  # noqa: PLR2004 - ticks that fit
        return [step * factor * n for n in range(int(self._high / (step * factor)) + 1)]


def scatter(found: Sequence[Candidate]) -> str:
    """Draw the candidates of one unit: moves to the right, unowned time upwards.

    Each is a circle with its number; those on the front are filled. Bars reach from the least to
    the most of the drawn worlds.
    """
    across = [value for each in found for value in each.spreads["moved"].values]
    upwards = [value for each in found for value in each.spreads["unowned_s"].values]
    x, y = _Axis(across, WIDTH - _LEFT - 24), _Axis(upwards, HEIGHT - _BOTTOM - _TOP)
    unit = found[0].unit
    label = f"{unit}s moved against {unit}-seconds unowned, a circle a candidate"
    parts = [
        f'<svg class="scatter" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    ]
    for value in x.ticks():
        at = _LEFT + x.at(value)
        parts.append(
            f'<line class="tick" x1="{at}" x2="{at}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>'
            f'<text x="{at}" y="{HEIGHT - _BOTTOM + 16}" text-anchor="middle">{value:,.4g}</text>'
        )
    for value in y.ticks():
        at = HEIGHT - _BOTTOM - y.at(value)
        parts.append(
            f'<line class="tick" x1="{_LEFT}" x2="{WIDTH - 24}" y1="{at}" y2="{at}"/>'
            f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{value:,.4g}</text>'
        )
    parts.append(
        f'<text x="{WIDTH - 24}" y="{HEIGHT - 6}" text-anchor="end">{unit}s moved'
        f"{' (logarithmic)' if x.is_log else ''}</text>"
        f'<text x="4" y="{_TOP - 3}">{unit}-seconds unowned{" (logarithmic)" if y.is_log else ""}'
        "</text>"
    )
    parts += [_mark(each, x, y) for each in sorted(found, key=lambda one: one.is_best)]
    return "".join([*parts, "</svg>"])


def _mark(each: Candidate, x: _Axis, y: _Axis) -> str:
    moved, unowned = each.spreads["moved"], each.spreads["unowned_s"]
    at_x, at_y = _LEFT + x.at(moved.middle), HEIGHT - _BOTTOM - y.at(unowned.middle)
    left, right = (_LEFT + x.at(value) for value in (moved.values[0], moved.values[-1]))
    top, bottom = (
        HEIGHT - _BOTTOM - y.at(value) for value in (unowned.values[-1], unowned.values[0])
    )
    title = (
        f"{each.name}: {moved.middle:,.0f} moved, {unowned.middle:,.0f} s unowned, "
        f"imbalance {each.spreads['imbalance'].middle:.2f}"
    )
    return (
        f'<g class="{"best" if each.is_best else "other"}"><title>{escape(title)}</title>'
        f'<path d="M{left} {at_y}H{right}M{at_x} {top}V{bottom}"/>'
        f'<circle cx="{at_x}" cy="{at_y}" r="{_RADIUS}"/>'
        f'<text x="{at_x}" y="{at_y + 4}" text-anchor="middle">{each.number}</text></g>'
    )


def strip(each: Candidate, objective: str, largest: float) -> str:
    """Draw an objective's value in each drawn world as a tick on a line from 0 to the largest."""
    spread = each.spreads[objective]
    scale = (_STRIP_WIDTH - 6) / largest if largest else 0.0
    middle = _STRIP_HEIGHT / 2
    ticks = "".join(
        f"M{3 + round(value * scale, 1)} 3V{_STRIP_HEIGHT - 3}" for value in spread.values
    )
    return (
        f'<svg class="strip" width="{_STRIP_WIDTH}" height="{_STRIP_HEIGHT}" aria-hidden="true">'
        f'<path class="base" d="M3 {middle}H{_STRIP_WIDTH - 3}"/><path d="{ticks}"/>'
        f'<circle cx="{3 + round(spread.middle * scale, 1)}" cy="{middle}" r="3.5"/></svg>'
    )
