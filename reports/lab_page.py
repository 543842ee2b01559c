"""Renders the results of the assignor lab as one self-contained HTML page."""

from collections.abc import Sequence
from html import escape
from math import log10
from typing import Any, Final

from markupsafe import Markup

from coordinator_sim import __version__
from coordinator_sim.harness.assignor_lab import PROPERTIES, LabResult
from coordinator_sim_reports.environment import page_environment
from coordinator_sim_reports.lab_words import answers_of

_WIDTH: Final = 760
_HEIGHT: Final = 320
_LEFT: Final = 60
_RIGHT: Final = 150
_BOTTOM: Final = 40
_TOP: Final = 18
_LABEL_HEIGHT: Final = 14
_LEAST_MS: Final = 0.01
_DASHES: Final = ("", "6 3", "2 3", "8 3 2 3", "1 3", "10 4")


def render_lab(results: Sequence[LabResult]) -> str:
    """Return the results as HTML that needs no network.

    Args:
        results: Each assignor at each size, in reading order.
    """
    sizes = list(dict.fromkeys(each.size for each in results))
    return (
        page_environment()
        .get_template("lab.html.j2")
        .render(
            title="Assignor lab",
            version=__version__,
            answers=answers_of(results),
            sizes=[
                {"size": size, "rows": [each for each in results if each.size == size]}
                for size in sizes
            ],
            properties=PROPERTIES,
            checks=_checks(results),
            chart=Markup(cpu_chart(results)),  # noqa: S704 - its texts are escaped
        )
    )


def _checks(results: Sequence[LabResult]) -> list[dict[str, Any]]:
    """Return for each assignor the first break of each property; empty where it holds."""
    checks = []
    for name in dict.fromkeys(each.assignor for each in results):
        own = [each for each in results if each.assignor == name]
        cells = []
        for known in PROPERTIES:
            broken = next((each for each in own if known in each.failed), None)
            cells.append(
                "" if broken is None else f"{broken.size.members} members: {broken.failed[known]}"
            )
        checks.append({"assignor": name, "cells": cells})
    return checks


def cpu_chart(results: Sequence[LabResult]) -> str:
    """Draw the CPU time after a join against the size of the group, both logarithmic."""
    members = sorted({each.size.members for each in results})
    times = [max(_LEAST_MS, each.join_ms) for each in results]
    low_ms, high_ms = min(times) / 1.5, max(times) * 1.5

    def x(count: int) -> float:
        span = log10(members[-1] / members[0]) or 1.0
        return round(_LEFT + (_WIDTH - _LEFT - _RIGHT) * log10(count / members[0]) / span, 1)

    def y(ms: float) -> float:
        share = log10(max(_LEAST_MS, ms) / low_ms) / log10(high_ms / low_ms)
        return round(_HEIGHT - _BOTTOM - (_HEIGHT - _BOTTOM - _TOP) * share, 1)

    label = "milliseconds of CPU after a join, by members"
    parts = [
        f'<svg class="curves" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
    ]
    parts += [
        f'<line class="tick" x1="{x(count)}" x2="{x(count)}" y1="{_TOP}" y2="{_HEIGHT - _BOTTOM}"/>'
        f'<text x="{x(count)}" y="{_HEIGHT - _BOTTOM + 16}" text-anchor="middle">{count:,}</text>'
        for count in members
    ]
    for power in range(-2, 7):
        if low_ms <= 10.0**power <= high_ms:
            at = y(10.0**power)
            parts.append(
                f'<line class="tick" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{at}" y2="{at}"/>'
                f'<text x="{_LEFT - 6}" y="{at + 4}" text-anchor="end">{10.0**power:g}</text>'
            )
    parts.append(
        f'<text x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 4}" text-anchor="end">members</text>'
        f'<text x="4" y="{_TOP - 5}">ms of CPU</text>'
    )
    names = list(dict.fromkeys(each.assignor for each in results))
    last = {each.assignor: y(each.join_ms) for each in results if each.size.members == members[-1]}
    lowest = 0.0
    for name in sorted(names, key=lambda one: last[one]):
        own = sorted((each.size.members, each.join_ms) for each in results if each.assignor == name)
        path = "L".join(f"{x(count)} {y(ms)}" for count, ms in own)
        dash = _DASHES[names.index(name) % len(_DASHES)]
        lowest = max(last[name] + 4, lowest + _LABEL_HEIGHT)
        parts.append(
            f'<path class="line" stroke-dasharray="{dash}" d="M{path}"/>'
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{lowest}">{escape(name)}</text>'
        )
    return "".join([*parts, "</svg>"])
