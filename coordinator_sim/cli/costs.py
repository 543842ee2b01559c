"""`findings --costs`: what rebalances cost by group, by deploy and by day, and storms of them."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import typer
from msgspec import Struct

from coordinator_sim.cli.window import as_document, echo_window
from coordinator_sim.cli.wording import counted
from coordinator_sim.trace.window import Window, clock

if TYPE_CHECKING:
    from coordinator_sim.replay.charges import Told
    from coordinator_sim.replay.cost_sums import CostSum, Storm, Sums
    from coordinator_sim.replay.savings import Saved
    from coordinator_sim.replay.work import Partitions
    from coordinator_sim.runs.run_directory import RunDirectory

_UNKNOWN: Final = "n/a"
_COLUMNS: Final = {
    "rebalancing_s": "rebalan-\ncing, s",
    "paused_s": "paused,\nmemb.·s",
    "stopped_s": "stopped,\ns",
    "unowned_s": "unowned,\npart.·s",
    "moved": "moved",
    "needless": "need-\nless",
    "reprocessed": "read\nagain",
}
"""Headings of the figures."""
_BOUNDED: Final = ("paused_s", "stopped_s")
_AT_MOST: Final = "≤ "
_ANY_WIDTH: Final = 1_000
"""Characters that a table has room in."""
_ABSENT: Final = {
    "rebalancing_s": "lengths",
    "paused_s": "pauses of members",
    "stopped_s": "standstill",
    "unowned_s": "time without an owner",
    "moved": "moves",
    "needless": "needless moves",
    "reprocessed": "records read again",
}
"""What figures are called that a trace does not tell."""


def told_of(run: "RunDirectory") -> "Told":
    """Return what the costs of a trace's rebalances are computed from."""
    from coordinator_sim.replay.charges import Told

    return Told(
        events=list(run.events()),
        generations=list(run.generations()),
        names={row.resource_list_id: row.resources for row in run.resources()},
        source=run.info.source,
        end_us=run.info.last_ts_us or 0,
    )


class Scope(Struct, frozen=True, kw_only=True):
    """Which costs are shown.

    Args:
        by: `group`, `deploy` or `day`.
        top: How many rows; days are all shown.
        group: The only group that counts; None for all.
        window: The time that counts.
    """

    by: str
    top: int
    group: str | None
    window: Window


def show_costs(run: "RunDirectory", scope: Scope, *, given: "Partitions", is_json: bool) -> None:
    """Print the costs of a trace's rebalances by group, deploy or day, and its storms.

    Args:
        run: The trace.
        scope: Which of them.
        given: Partitions of groups whose assignments the trace lacks.
        is_json: Whether to print one JSON object.

    Raises:
        ConfigError: `by` is something else, or the trace has no such group.
    """
    from coordinator_sim.errors import ConfigError
    from coordinator_sim.replay.causes import group_named
    from coordinator_sim.replay.charges import charges_in
    from coordinator_sim.replay.cost_sums import DAY, DEPLOY, SCOPES, storms_in, summed
    from coordinator_sim.replay.savings import weigh_deploys

    by, top, group = scope.by, scope.top, scope.group
    if by not in SCOPES:
        raise ConfigError(f"--by {by} is not known; give one of {', '.join(SCOPES)}")
    told = told_of(run)
    if group is not None:
        group_named(group, dict.fromkeys(each.group_id for each in told.events if each.group_id))
    every = [each for each in charges_in(told) if group in {None, each.group_id}]
    charges = [each for each in every if scope.window.holds(each.seen_us)]
    rows = summed(charges, by)
    storms = storms_in(charges)
    shown = rows if by == DAY else rows[:top]
    saved: list[Saved] = []
    if by == DEPLOY and shown:
        saved = weigh_deploys(shown, every, told.events, run.info, given, scope.window)
    if is_json:
        document = as_document(scope.window)
        _print_json(run, shown, storms, saved, found=len(rows), window=document)
        return
    echo_window(run.info, scope.window)
    _print_table(shown, saved, by)
    if len(rows) > len(shown):
        typer.echo(f"{len(shown)} of {counted(len(rows), by)}; --top shows more.")
    for line in storm_lines(storms[:top], found=len(storms)):
        typer.echo(line)


def _print_json(
    run: "RunDirectory",
    rows: "Sequence[CostSum]",
    storms: "Sequence[Storm]",
    saved: "Sequence[Saved]",
    *,
    found: int,
    window: dict[str, Any],
) -> None:
    import msgspec

    key = {"trace_id": run.info.trace_id, "cluster_id": run.info.cluster_id}

    def flat(row: "CostSum | Storm", saving: "Saved | None" = None) -> dict[str, Any]:
        told: dict[str, Any] = msgspec.to_builtins(row)
        sums: dict[str, Any] = told.pop("sums")
        saves: dict[str, Any] = {} if saving is None else msgspec.to_builtins(saving)
        return key | told | sums | saves

    costs = [flat(*pair) for pair in zip_longest(rows, saved)]
    document = {"costs": costs, "found": found, "storms": [flat(row) for row in storms]} | window
    typer.echo(msgspec.json.encode(document).decode())


def _print_table(rows: "Sequence[CostSum]", saved: "Sequence[Saved]", by: str) -> None:
    """Print the rows; figures that none of them has are named below."""
    from rich.markup import escape
    from rich.table import Table

    from coordinator_sim.cli.console import PrintableConsole

    if not rows:
        typer.echo(f"There is no {by} with a rebalance in this trace.")
        return
    known = [name for name in _COLUMNS if any(getattr(row.sums, name) is not None for row in rows)]
    table = Table(title=f"Costs of rebalances by {by}", title_justify="left")
    for heading in _headings(by):
        table.add_column(heading, overflow="fold")
    rows_of_cells = [
        [*_names(row), str(row.rebalances), *(_cell(row, name) for name in known)]
        + ([] if saving is None else [_saving(saving)])
        for row, saving in zip_longest(rows, saved)
    ]
    names = len(_headings(by))
    figures = ["rebal-\nances", *(_COLUMNS[name] for name in known)]
    if saved:
        figures.append("static\nmembers\nsave, s")
    for place, heading in enumerate(figures, names):
        # In a narrow terminal names are wrapped; a figure without its last digits would mislead.
        width = max(len(word) for cells in rows_of_cells for word in cells[place].split(" "))
        table.add_column(heading, justify="right", overflow="fold", min_width=width)
    for cells in rows_of_cells:
        table.add_row(*map(escape, cells))
    console = PrintableConsole()
    unbounded = console.options.update_width(_ANY_WIDTH)
    if console.measure(table, options=unbounded).maximum > console.width:
        table.padding = (0, 0)
    console.print(table, crop=False)
    if any(map(_is_bound, rows)):
        typer.echo(f"{_AT_MOST.strip()}: at most, where the trace tells no assignments.")
    absent = [_ABSENT[name] for name in _COLUMNS if name not in known]
    if absent:
        typer.echo(f"Not told by this trace: {', '.join(absent)}.")
    for why in dict.fromkeys(each.not_computed for each in saved if each.not_computed):
        typer.echo(f"Savings are not computed where {_UNKNOWN} stands: {why}.")


def _headings(by: str) -> tuple[str, ...]:
    return {"group": ("group",), "deploy": ("group", "deploy"), "day": ("day",)}[by]


def _names(row: "CostSum") -> list[str]:
    if row.day is not None:
        return [row.day]
    if row.deploy_no is None:
        return [row.group_id or ""]
    return [row.group_id or "", f"{row.deploy_no}, from {clock(row.first_us // 1000)}"]


def _cell(row: "CostSum", name: str) -> str:
    text = figure(row.sums, name)
    return f"{_AT_MOST}{text}" if name in _BOUNDED and _is_bound(row) and text != _UNKNOWN else text


def _is_bound(row: "CostSum") -> bool:
    return row.assigned < row.rebalances


def figure(sums: "Sums", name: str) -> str:
    """A figure: seconds with a decimal, counts; what no rebalance tells is n/a."""
    value = getattr(sums, name)
    if value is None:
        return _UNKNOWN
    return f"{value:,.1f}" if name.endswith("_s") else f"{value:,}"


def _saving(saved: "Saved") -> str:
    if saved.saves_s is None:
        return _UNKNOWN
    return f"{saved.saves_s:,.1f} {saved.basis}"


def storm_lines(storms: "Sequence[Storm]", *, found: int) -> list[str]:
    """The storms, line by line; `found` is how many there are."""
    if not storms:
        return []
    lines = ["", f"{counted(found, 'storm')}: five rebalances or more of a group within minutes"]
    for each in storms:
        long_s = (each.last_us - each.first_us) / 1_000_000
        who = f" by {each.trigger_client}" if each.trigger_client else ""
        members = "" if each.members is None else f", {counted(each.members, 'member')}"
        costs = [f"{figure(each.sums, 'rebalancing_s')} s rebalancing"]
        if each.sums.unowned_s is not None:
            costs.append(f"{each.sums.unowned_s:,.1f} partition-seconds unowned")
        lines.append(
            f"  {each.group_id}: {each.kind}, {counted(each.rebalances, 'rebalance')} in "
            f"{long_s:,.1f} s from {clock(each.first_us // 1000)}{members}; "
            f"{', '.join(costs)}; the first was #{each.first_no}, {each.trigger}{who}"
        )
    return lines
