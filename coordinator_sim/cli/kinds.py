"""`run --as`: the same load on several kinds of groups, side by side."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim.cli.simulation import Simulation, with_objective
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from coordinator_sim.trace.events import TraceEvent
    from coordinator_sim_conformance.checkers import Report

AsOption = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="KIND,...",
        help="Kind of all groups: classic, consumer or share. Several are compared.",
    ),
]
_OBJECTIVE_MS: Final = 10_000
"""Lag that a comparison counts time above, where neither scenario nor command line has one."""
NOT_COMPARABLE: Final = (
    "order: consumers process a partition's records in order, a share group does not",
    (
        "lag: a consumer group is done with a record when its poll is processed, a share group "
        "when the broker has the acknowledgement, which goes out with the next poll or a commit"
    ),
    (
        "again: consumers repeat what was not committed when a partition moved; a share group "
        "delivers single records again, and archives them at the limit, accepted or not"
    ),
    (
        "rebalances: members of a classic group with an eager assignor give up everything in each; "
        "all other members keep what stays theirs"
    ),
)


def parse_kinds(text: str) -> tuple[str, ...]:
    """Kinds separated by commas; empty for none.

    Raises:
        ConfigError: A kind is unknown, or named twice.
    """
    from coordinator_sim.sim.scenario.kinds import READ

    kinds = tuple(kind.strip() for kind in text.split(",")) if text else ()
    if len(set(kinds)) < len(kinds) or not set(kinds) <= set(READ):
        raise ConfigError(f"--as {text}: wants some of {', '.join(READ)}, each once")
    return kinds


def pairs_of(kind: str, kinds: tuple[str, ...], pairs: "Sequence[str] | None") -> list[str]:
    """The pairs `name=value` without those that other kinds of the comparison read alone.

    Raises:
        ConfigError: They name a kind of their own.
    """
    from coordinator_sim.sim.scenario.kinds import READ

    for pair in pairs or ():
        if kind and pair.partition("=")[0].strip() == "group.protocol":
            raise ConfigError(f"--set {pair}: --as {','.join(kinds)} sets it too; leave one out")
    others = {name for each in kinds for name in READ[each] if name not in READ[kind]}
    return [pair for pair in pairs or () if pair.partition("=")[0].strip() not in others]


def verdicts_of(simulation: Simulation, events: "Sequence[TraceEvent]") -> "Report":
    """Judge a run by the invariants."""
    from coordinator_sim_conformance.checkers import check_all
    from coordinator_sim_conformance.scenario_timing import circumstances_of

    known = circumstances_of(simulation.scenario, has_story=simulation.story is not None)
    return check_all(events, known)


def compare_kinds(
    simulations: dict[str, Simulation],
    directory: Path,
    run: "Callable[[Simulation, Path], Sequence[TraceEvent]]",
    *,
    is_json: bool,
) -> None:
    """Run a scenario as several kinds, and print what they come to side by side.

    Args:
        simulations: By kind.
        directory: Gets a trace for each kind.
        run: Simulates into a directory.
        is_json: Whether to print JSON instead of tables.

    Raises:
        typer.Exit: An invariant is violated.
    """
    import msgspec

    from coordinator_sim_conformance.checkers import Verdict

    groups: dict[str, dict[str, dict[str, float]]] = {}
    notes = list(NOT_COMPARABLE)
    violated: dict[str, list[str]] = {}
    for kind, asked in simulations.items():
        simulation = with_objective(asked, asked.scenario.objective_lag_ms or _OBJECTIVE_MS)
        events = run(simulation, directory / kind)
        for group_id, figures in figures_of(simulation, events).items():
            groups.setdefault(group_id, {})[kind] = figures
        violated[kind] = list(verdicts_of(simulation, events).having(Verdict.FAIL))
        if names := simulation.options.get("left-out"):
            notes.append(f"settings: {kind} goes without {names}")
    if is_json:
        document = {"groups": groups, "not_comparable": notes, "violated": violated}
        typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())
    else:
        for group_id, by_kind in groups.items():
            typer.echo("\n".join(table(group_id, by_kind)) + "\n")
        typer.echo("\n  ".join(["Not comparable:", *notes]))
        broken = [f"{name} as {kind}" for kind, names in violated.items() for name in names]
        typer.echo(f"invariants VIOLATED: {', '.join(broken) or 'none'}")
        typer.echo(f"traces: {', '.join(str(directory / kind) for kind in simulations)}")
    if any(violated.values()):
        raise typer.Exit(1)


def figures_of(
    simulation: Simulation, events: "Sequence[TraceEvent]"
) -> dict[str, dict[str, float]]:
    """What a run comes to, by group or connector."""
    from coordinator_sim.trace.events import Event
    from coordinator_sim.trace.lag import group_lags
    from coordinator_sim.trace.work import count_work, records_in

    rebalances = Counter(
        event.group_id
        for event in events
        if event.event in {Event.PREPARE_REBALANCE, Event.EPOCH_BUMPED}
    )
    archived = Counter(
        event.group_id
        for event in events
        if event.event is Event.RECORDS_ARCHIVED
        for _ in records_in(event)
    )
    work = {row.connector or row.group_id: row for row in count_work(events)}
    found: dict[str, dict[str, float]] = {}
    for lag in group_lags(events, simulation.scenario.duration_ms * 1_000):
        name = lag.connector or lag.group_id
        found[name] = {
            f"s above {(lag.objective_us or 0) / 1e6:g} s, all partitions": lag.above_us / 1e6,
            "lag at most, s": lag.max_lag_us / 1e6,
            "delay p50, s": lag.delay_p50_us / 1e6,
            "delay p95, s": lag.delay_p95_us / 1e6,
            "delay p99, s": lag.delay_p99_us / 1e6,
            "records processed": work[name].processed,
            "of them again": work[name].duplicates,
            "archived": archived[lag.group_id],
            "waiting at the end": work[name].final_lag,
            "rebalances": rebalances[lag.group_id],
            "member-hours": lag.member_us / 3.6e9,
        }
    return found


def table(group_id: str, by_kind: dict[str, dict[str, float]]) -> "Iterator[str]":
    """A group's figures, a line each, and a column for each kind."""
    names = list(next(iter(by_kind.values())))
    rows = [[group_id, *by_kind]]
    rows += [[name, *(_shown(each[name]) for each in by_kind.values())] for name in names]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *cells in rows:
        told = (cell.rjust(width + 3) for cell, width in zip(cells, widths[1:], strict=True))
        yield first.ljust(widths[0]) + "".join(told)


def _shown(value: float) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}"
