"""Renders the rehearsal of an upgrade as one self-contained HTML page."""

from typing import Any, Final

from coordinator_sim import __version__
from coordinator_sim.replay.report import RunFigures
from coordinator_sim.replay.upgrade_hurdles import Kind
from coordinator_sim.sim.scenario.upgrade import Deploy
from coordinator_sim_reports.charts.bars import Bar, bar_chart
from coordinator_sim_reports.environment import page_environment
from coordinator_sim_reports.formats import UNKNOWN, format_seconds
from coordinator_sim_reports.rehearsal_figures import MEASURES, GroupRehearsal, Rehearsal
from coordinator_sim_reports.rehearsal_words import (
    NAMES,
    TITLES,
    figure,
    pays_text,
    recorded,
    signed,
    spread_text,
    verdict,
)

_CHARTED: Final = ("unowned_s", "stopped_s", "longest_s", "moved", "reprocessed")
_TAGS: Final = {"trace": "exact", "given": "exact", "assumed": "estimate", "unknown": "na"}
"""Class of the tag of a fact, by where it comes from."""
_KINDS: Final = {
    Kind.BLOCKS: ("blocks the upgrade", "bound"),
    Kind.CHANGES: ("changes", "estimate"),
    Kind.CHECK: ("to be checked", "na"),
}
_SHORT: Final = {
    Deploy.TODAY: "today",
    Deploy.UPGRADE: "upgrade",
    Deploy.AFTERWARDS: "afterwards",
    Deploy.BACK: "way back",
}
_FIGURES: Final = (
    ("rebalances", "rebalances or epochs"),
    ("unowned", "partition-seconds without an owner"),
    ("stopped", "stopped, s"),
    ("longest", "longest gap, s"),
    ("moved", "moved"),
    ("needless", "of these needless"),
    ("interrupted", "interrupted"),
    ("unnoticed", "dead unnoticed, s"),
)


def render_rehearsal(told: Rehearsal) -> str:
    """Return a rehearsal as HTML that needs no network."""
    template = page_environment().get_template("rehearsal.html.j2")
    return template.render(
        title="Rehearsal of an upgrade",
        version=__version__,
        trace=told.trace,
        seeds=told.seeds,
        seeds_left=told.seeds_left,
        left_out=told.left_out,
        groups=[_group(each) for each in told.groups],
    )


def _group(each: GroupRehearsal) -> dict[str, Any]:
    return {
        "id": each.group.group_id,
        "shape": _shape(each),
        "verdict": verdict(each),
        "boxes": _boxes(each),
        "hurdles": [
            {"kind": _KINDS[hurdle.kind][0], "tag": _KINDS[hurdle.kind][1], "hurdle": hurdle}
            for hurdle in each.group.hurdles
        ],
        "history": _history(each),
        "deploys": _deploys(each),
        "balance": [
            {
                "title": TITLES[row.measure],
                "extra": spread_text(row.extra, is_signed=True),
                "saving": spread_text(row.saving, is_signed=True),
                "worlds": f"{row.worlds_saving} of {len(row.saving.values)}",
                "pays": pays_text(row),
                "is_best": row.pays_after is not None and row.saving.low > 0,
            }
            for row in each.balance
        ],
        "facts": [{"fact": fact, "tag": _TAGS[fact.basis]} for fact in each.group.facts],
        "files": [row.file for row in each.deploys],
    }


def _shape(each: GroupRehearsal) -> str:
    members, partitions = len(each.group.seen.members), sum(each.group.seen.topics.values())
    read = f", {partitions:,} partitions" if partitions else ""
    return f"{members:,} members{read}; {each.group.rebalances:,} rebalances in {recorded(each)}"


def _boxes(each: GroupRehearsal) -> list[tuple[str, str, str]]:
    """Return number, name and footnote of the boxes on top."""
    if not each.deploys:
        return []
    costs = {row.deploy: row.costs["unowned_s"] for row in each.deploys}
    unowned = each.balance[0]
    boxes = [
        (figure(costs[deploy].mean), NAMES[deploy], "partition-seconds without an owner")
        for deploy in (Deploy.TODAY, Deploy.UPGRADE, Deploy.AFTERWARDS)
    ]
    split = unowned.saving.low <= 0 <= unowned.saving.high
    note = "afterwards; the worlds disagree" if split else "afterwards, partition-seconds"
    boxes.append((signed(unowned.saving.mean), "saved by each deploy", note))
    if unowned.pays_after is not None and unowned.saving.mean > 0:
        note = "at once" if unowned.pays_after == 0 else "the upgrade over a usual deploy"
        boxes.append((f"{unowned.pays_after:,}", "deploys until it has paid", note))
    for row in each.history.best:
        if row.saves_s is not None:
            note = f"of the recorded {recorded(each)}, with {row.name}"
            boxes.append((signed(row.saves_s), "saved of the history", note))
    return boxes


def _history(each: GroupRehearsal) -> dict[str, Any]:
    rows = []
    for row in each.history.rows:
        cells = _cells(row.figures)
        rows.append(
            {
                "name": row.name if row is each.history.rows[0] else f"consumer, {row.name}",
                "cells": [cells[name] for name, _ in _FIGURES],
            }
        )
    return {
        "not_computed": each.history.not_computed,
        "columns": [title for _, title in _FIGURES],
        "rows": rows,
        "notes": each.history.notes,
        "assumed": each.history.assumed,
    }


def _cells(run: RunFigures) -> dict[str, str]:
    shared = run.sharing
    known = (
        {}
        if shared is None
        else {
            "unowned": format_seconds(shared.unowned_ms / 1000),
            "stopped": format_seconds(shared.stopped_ms / 1000),
            "longest": format_seconds(shared.longest_ms / 1000),
            "moved": figure(shared.moved),
            "needless": UNKNOWN if shared.needless is None else figure(shared.needless),
            "interrupted": figure(shared.interrupted),
        }
    )
    return {
        **{name: UNKNOWN for name, _ in _FIGURES},
        **known,
        "rebalances": figure(run.rebalances),
        "unnoticed": format_seconds(run.unnoticed_ms / 1000),
    }


def _deploys(each: GroupRehearsal) -> dict[str, Any]:
    charts = []
    for measure in _CHARTED:
        least = min((row.costs[measure].mean for row in each.deploys), default=0.0)
        most = max((row.costs[measure].mean for row in each.deploys), default=0.0)
        bars = [
            Bar(
                _SHORT[row.deploy],
                (row.costs[measure].mean,),
                text=spread_text(row.costs[measure]),
                is_best=row.costs[measure].mean == least < most,
            )
            for row in each.deploys
        ]
        if most > 0:
            charts.append(
                {"title": TITLES[measure], "chart": bar_chart(bars, label=TITLES[measure])}
            )
    return {
        "charts": charts,
        "columns": [TITLES[measure] for measure in MEASURES],
        "rows": [
            {
                "name": NAMES[row.deploy],
                "cells": [
                    {"text": spread_text(row.costs[measure]), "value": row.costs[measure].mean}
                    for measure in MEASURES
                ],
            }
            for row in each.deploys
        ],
    }
