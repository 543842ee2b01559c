"""Tables of `replay --set`: what other settings would have done, and how sure that is."""

from typing import TYPE_CHECKING, Final

from coordinator_sim.cli.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.replay.report import ReplayReport, RunFigures, WhatIf
    from coordinator_sim_reports.winners import Figure

_ALWAYS: Final = ("rebalances", "removed", "dead unnoticed", "rebalancing")
_STATIC: Final = ("returns", "away")
_SHARING: Final = ("moved", "needless", "paused", "stopped", "unowned")
_AT_MOST: Final = "≤ "
_EPOCHS: Final = ("interrupted", "never stopped", "longest gap")
_OWN_ROUNDS: Final = "own rounds"
_ALL: Final = "all"
_OF_EPOCHS: Final = "epochs"
_BASES: Final = {
    "rebalances": "those before the first difference are certain, the later ones assumed",
    "removed": "members that failed or were too late; certain as far as the rebalances are",
    "dead unnoticed": "time in which the group counted on a dead member; its last sign of life is "
    "assumed where only a log tells of it",
    "rebalancing": "from the start of each rebalance to its end; as it is, the source's own, and "
    "certain where the source has the rebalance and nobody rejoins at another time",
    "returns": "restarts of static members without a rebalance; which processes are the same is "
    "assumed",
    "away": "how long these restarts took together; certain if the pairs are right",
    _OWN_ROUNDS: "rebalances that the strategy itself asks for; computed by its own code",
    "moved": "partitions or tasks that changed hands; certain given the memberships, the "
    "subscriptions and the numbers of partitions",
    "needless": "moved beyond the fewest that a balanced result needs; certain as moved is",
    "paused": "time in which members that had owned something owned nothing, until their next "
    "assignment, summed over members",
    "stopped": "time of rebalances in which no member owned anything",
    "unowned": "time without an owner, summed over partitions or tasks; these three are as it is "
    "the source's own, as in findings --costs, and with settings as much more or less as replayed",
    _AT_MOST.strip(): "at most, because the source tells no assignments",
    "interrupted": "how often a partition lost a working owner, to have another one later",
    "never stopped": "partitions that kept their working owner all the time",
    "longest gap": "longest time from such a loss to the next working owner; an upper bound",
    _OF_EPOCHS: "rebalances of the consumer protocol: another target, which each member goes to by "
    "itself while the others work; their time is until all have reached it, and stops nobody",
}
"""What each figure is, and what of it is certain or assumed."""
_AS_IS: Final = "as it is"
_OF_SHARING: Final = ("unowned_ms", "stopped_ms")
_WRAPPED: Final = {
    "rebalances": "rebal-\nances",
    "rebalancing": "rebalan-\ncing",
    "dead unnoticed": "dead un-\nnoticed",
    "interrupted": "inter-\nrupted",
}
"""Headings of a grid in two lines: a word that is cut would not be found below."""


def print_what_if(
    console: "PrintableConsole", report: "ReplayReport", *, is_explained: bool
) -> None:
    """Each group as it is and with the settings, or a row for each combination.

    Args:
        console: Where it is printed.
        report: The replay's report.
        is_explained: Whether to say how sure each figure is, and what all of them assume.
    """
    console.print()
    told = report.what_if
    if len(report.grid) == 1:
        columns = print_differences(console, report)
    else:
        columns = print_grid(console, report)
    print_reservations(console, report)
    if any(entry.with_settings is not None and entry.with_settings.is_epochs for entry in told):
        columns = [*columns, _OF_EPOCHS]
    if any(entry.as_is is not None and entry.as_is.is_bound for entry in told):
        columns = [*columns, _AT_MOST.strip()]
    for name in (name for name in _BASES if name in columns):
        if is_explained or name == _AT_MOST.strip():
            console.print(f"{name}: {_BASES[name]}", markup=False)
    if is_explained and any(entry.with_settings is not None for entry in report.what_if):
        console.print("Certain:")
        for text in report.certain:
            console.print(f"  {text}", markup=False)
        console.print("This difference is conditional on the assumptions above, and on these:")
        for text in report.conditions:
            console.print(f"  {text}", markup=False)


def verdict_of(report: "ReplayReport") -> str:
    """Say in one line which settings win over the trace as it is, and over how many rebalances.

    Counted are groups that were computed with all settings; figures are sums over them. Upper
    bounds that differ have no winner: what lies below them may be the other way round.
    """
    from coordinator_sim.replay.totals import total_of
    from coordinator_sim_reports.winners import Choice, verdict

    groups: dict[tuple[str | None, str], list[WhatIf]] = {}
    for entry in report.what_if:
        groups.setdefault((entry.source_ref, entry.group_id), []).append(entry)
    whole = [own for own in groups.values() if all(each.with_settings for each in own)]
    left = len(groups) - len(whole)
    if not whole:
        return f"Not computed for {counted(left, 'group')}: the reasons are above."
    columns = zip(*whole, strict=True)
    changed = [[each.with_settings for each in own if each.with_settings] for own in columns]
    runs = [[own[0].as_is for own in whole if own[0].as_is], *changed]
    figures = _figures([run for own in runs for run in own])
    totals = [total_of(own) for own in runs]
    choices = [
        Choice(name=name, values={each.column: (_value(total, each.column),) for each in figures})
        for name, total in zip(("the recorded run", *map(label, report.grid)), totals, strict=True)
    ]
    rests = len(report.conditions) + sum(len({*group.assumed}) for group in report.groups)
    covered = [own[0].coverage for own in whole]
    missed = sum(each.rebalances - each.reproduced for each in covered)
    held = (
        f"Over {counted(totals[0].rebalances, 'recorded rebalance')} of "
        f"{whole[0][0].group_id if len(whole) == 1 else counted(len(whole), 'group')}"
        + (f"; {counted(left, 'group')} not computed" if left else "")
        + (f"; {counted(missed, 'rebalance')} not reproduced" if missed else "")
        + f"; it rests on {counted(rests, 'assumption')}: --explain."
    )
    is_bound = any(total.is_bound for total in totals)
    is_bound &= any(each.column in _OF_SHARING for each in figures)
    if is_bound and any(each.values != choices[0].values for each in choices):
        return (
            "No winner: times unowned and stopped are at most what is shown, because the source "
            f"tells no assignments. {held}"
        )
    answer = verdict(choices, figures, where="this history", proof=held)
    return answer if answer.endswith(held) else f"{answer} {held}"


def _value(total: "RunFigures", column: str) -> int:
    told: int = getattr(total.sharing if column in _OF_SHARING else total, column)
    return told


def _figures(runs: "Sequence[RunFigures]") -> "tuple[Figure, ...]":
    """Return the figures that all runs have, and that mean the same in all of them."""
    from coordinator_sim_reports.winners import Figure

    did = {
        "unowned_ms": "left work unowned for {}",
        "stopped_ms": "stopped everybody for {}",
        "rebalancing_ms": "spent {} in rebalances",
        "unnoticed_ms": "counted on dead members for {}",
        "away_ms": "left what returning members own alone for {}",
    }
    is_shared = all(run.sharing is not None for run in runs)
    left_out = {"away_ms"} if is_shared else {*_OF_SHARING}
    if any(run.is_epochs for run in runs):
        left_out.add("rebalancing_ms")
    mark = _AT_MOST if any(run.is_bound for run in runs) else ""

    def at_most(value: float) -> str:
        return mark + seconds(value)

    return tuple(
        Figure(
            column=column,
            did=words,
            at_none="stopped nobody" if column == "stopped_ms" else "",
            form=at_most if column in _OF_SHARING else seconds,
        )
        for column, words in did.items()
        if column not in left_out
    )


def print_differences(console: "PrintableConsole", report: "ReplayReport") -> list[str]:
    """One row a group: figures before and after, or one where they are equal."""
    from rich.table import Table

    from coordinator_sim.replay.totals import total_entry

    given = label(report.grid[0])
    changed = [entry for entry in report.what_if if entry.with_settings and entry.differs]
    same = sum(entry.with_settings is not None for entry in report.what_if) - len(changed)
    columns: list[str] = []
    if changed:
        runs = [run for entry in changed for run in (entry.as_is, entry.with_settings) if run]
        columns = columns_of(runs)
        table = Table(title=f"Replayed as it is -> replayed with {given}", title_justify="left")
        table.add_column("group", overflow="fold")
        for name in columns:
            table.add_column(name, justify="right")
        for entry in changed:
            table.add_row(_escaped(entry.group_id), *difference(entry, columns))
        total = total_entry(changed, _ALL)
        if total is not None:
            table.add_section()
            table.add_row(_ALL, *difference(total, columns))
        console.print(table)
    if same:
        console.print(f"With {given} nothing changes for {counted(same, 'group')}.", markup=False)
    return columns


def difference(entry: "WhatIf", columns: list[str]) -> list[str]:
    """Figures before and after; one value where they are equal."""
    if entry.as_is is None or entry.with_settings is None:
        return []
    before, after = cells(entry.as_is), cells(entry.with_settings)
    return [
        before[name] if before[name] == after[name] else f"{before[name]} -> {after[name]}"
        for name in columns
    ]


def print_grid(console: "PrintableConsole", report: "ReplayReport") -> list[str]:
    """One row a combination, the run as it is first; a table for each group."""
    from rich.table import Table

    axes = list(dict.fromkeys(name for given in report.grid for name in given))
    groups: dict[tuple[str | None, str], list[WhatIf]] = {}
    for entry in report.what_if:
        groups.setdefault((entry.source_ref, entry.group_id), []).append(entry)
    shown: list[str] = []
    for (_, group_id), entries in groups.items():
        as_is = next((entry.as_is for entry in entries if entry.as_is is not None), None)
        runs = [entry.with_settings for entry in entries if entry.with_settings is not None]
        if as_is is None or not runs:
            continue
        columns = columns_of([as_is, *runs])
        shown.extend(columns)
        table = Table(title=_escaped(group_id), title_justify="left")
        for name in axes:
            table.add_column(name.replace(".", ".\n"), no_wrap=True)
        for name in columns:
            table.add_column(_WRAPPED.get(name, name), justify="right")
        first = cells(as_is)
        table.add_row(_AS_IS, *[""] * (len(axes) - 1), *(first[name] for name in columns))
        table.add_section()
        for entry in entries:
            if entry.with_settings is not None:
                own = cells(entry.with_settings)
                given = [str(entry.settings.get(name, "")) for name in axes]
                table.add_row(*map(_escaped, given), *(own[name] for name in columns))
        console.print(table)
    return shown


def print_reservations(console: "PrintableConsole", report: "ReplayReport") -> None:
    """What was not computed and why, and what is special about a group; each sentence once."""
    told: dict[str, list[str]] = {}
    for entry in report.what_if:
        if entry.not_computed:
            text = f"not computed: {entry.not_computed}"
            told.setdefault(text, []).append(entry.group_id)
        for note in entry.notes:
            told.setdefault(note, []).append(entry.group_id)
    for text, group_ids in told.items():
        names = ", ".join(list(dict.fromkeys(group_ids))[:5])
        more = len(set(group_ids)) - 5
        others = f" and {more} more" if more > 0 else ""
        console.print(f"{names}{others}: {text}", markup=False)


def columns_of(runs: "list[RunFigures]") -> list[str]:
    """The columns that have a value in at least one of these runs."""
    columns = list(_ALWAYS)
    if any(run.returns for run in runs):
        columns.extend(_STATIC)
    shared = [run.sharing for run in runs if run.sharing is not None]
    if any(each.follow_ups for each in shared):
        columns.append(_OWN_ROUNDS)
    if shared:
        columns.extend(_SHARING)
    if any(run.is_epochs for run in runs):
        columns.extend(_EPOCHS)
    return columns


def cells(run: "RunFigures") -> dict[str, str]:
    """A run's figures by column."""
    shared = run.sharing
    needless = None if shared is None else shared.needless
    at_most = _AT_MOST if run.is_bound else ""
    return {
        "rebalances": counted(run.rebalances, "epoch") if run.is_epochs else str(run.rebalances),
        "removed": str(run.removed),
        "dead unnoticed": seconds(run.unnoticed_ms),
        "rebalancing": seconds(run.rebalancing_ms),
        "returns": str(run.returns),
        "away": seconds(run.away_ms),
        _OWN_ROUNDS: "-" if shared is None else str(shared.follow_ups),
        "moved": "-" if shared is None else str(shared.moved),
        "needless": "-" if needless is None else str(needless),
        "paused": "-" if shared is None else at_most + seconds(shared.paused_ms),
        "stopped": "-" if shared is None else at_most + seconds(shared.stopped_ms),
        "unowned": "-" if shared is None else at_most + seconds(shared.unowned_ms),
        "interrupted": "-" if shared is None else str(shared.interrupted),
        "never stopped": "-" if shared is None else f"{run.never_stopped} of {shared.items}",
        "longest gap": "-" if shared is None else seconds(shared.longest_ms),
    }


def label(given: dict[str, int | str]) -> str:
    """Settings as a user gives them."""
    return " ".join(f"{name}={value}" for name, value in given.items())


def seconds(duration_ms: float) -> str:
    """A duration for people."""
    return f"{duration_ms / 1000:.3f} s"


def _escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)
