"""`rehearse`: what an upgrade to the consumer protocol would cost a recorded group, and save."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.arguments import local_only
from coordinator_sim.errors import ConfigError, needing
from coordinator_sim.sim.scenario.lengths import parse_length

if TYPE_CHECKING:
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim_reports.rehearsal_facts import Told, Wishes
    from coordinator_sim_reports.rehearsal_figures import GroupRehearsal, Rehearsal

DEFAULT_SEEDS = 5
_PLAIN_WIDTH = 110
"""Columns of the tables where the output is no terminal."""
_SHOWN = ("unowned_s", "stopped_s", "longest_s", "moved", "reprocessed")
_WEIGHED = {
    "unowned_s": "unowned",
    "stopped_s": "stopped",
    "moved": "moved",
    "reprocessed": "read again",
}
_HEADS = ("unowned\npartition-s", "stopped\ns", "longest\ngap, s", "moved", "read\nagain")


GroupOption = Annotated[
    str, typer.Option(help="The only group; by default those with most rebalances.")
]
PartitionsOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[GROUP:]TOPIC=N",
        help="Partitions of a topic where the trace does not tell them; may be repeated.",
    ),
]
AssignorOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[GROUP:]NAME",
        help="Assignor today where the trace does not tell it; may be repeated.",
    ),
]
RemoteAssignorOption = Annotated[
    str, typer.Option(help="group.remote.assignor after the upgrade: uniform or range.")
]
PaceOption = Annotated[
    str,
    typer.Option(
        help="From one restart of a deploy to the next, instead of the recorded time.",
        metavar="LENGTH",
    ),
]
DownOption = Annotated[
    str,
    typer.Option(
        help="Time without a process at each restart, instead of the recorded one.",
        metavar="LENGTH",
    ),
]
ProfileOption = Annotated[
    str, typer.Option(help="Kafka release after the upgrade, if today's is older than 4.0.")
]
SeedsOption = Annotated[
    int, typer.Option(min=1, help="Worlds drawn for each deploy, with consecutive seeds.")
]
WithinOption = Annotated[
    str,
    typer.Option(
        help="Begin no world that would end later; the first always ends, with all four deploys. "
        "Run it again to go on.",
        metavar="LENGTH",
    ),
]
OutOption = Annotated[
    Path,
    typer.Option(help="Directory for rehearsal.html, plans/ and traces/.", callback=local_only),
]


def rehearse(
    trace: Annotated[
        Path,
        typer.Argument(help="A trace: the directory of an import or a run.", metavar="TRACE"),
    ],
    group: GroupOption = "",
    partitions: PartitionsOption = None,
    assignor: AssignorOption = None,
    remote_assignor: RemoteAssignorOption = "uniform",
    pace: PaceOption = "",
    down: DownOption = "",
    profile: ProfileOption = "4.4",
    top: Annotated[int, typer.Option(min=1, help="Groups to rehearse at most.")] = 5,
    seeds: SeedsOption = DEFAULT_SEEDS,
    within: WithinOption = "1m",
    workers: Annotated[
        int, typer.Option(min=1, help="Processes that simulate, where that takes long.")
    ] = 2,
    out: OutOption = Path("out/rehearsal"),
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Rehearse the upgrade of recorded classic groups to the consumer protocol (KIP-848).

    The history is replayed under it, with both of its assignors. A deploy today, the one that
    upgrades, one afterwards and the one that goes back are simulated in drawn worlds of a group of
    the recorded shape. One page says what the upgrade costs, what it saves, when it has paid, what
    stands in its way, and what all of that rests on.

    Example: coordinator-sim rehearse out/incident --partitions orders=12
    """
    from coordinator_sim.cli.progress import progress_bar

    with needing("pages", "a page"):
        import jinja2  # noqa: F401 - before the work whose page it renders
    from coordinator_sim_reports.rehearsal_runs import Pace
    from coordinator_sim_reports.rehearsals import Job
    from coordinator_sim_reports.rehearsals import rehearse as rehearse_all

    job = Job(
        told=read_told(trace, partitions or []),
        wishes=wishes_of(
            assignor or [],
            remote_assignor,
            pace=pace,
            down=down,
            profile=profile,
            top=top,
        ),
        group_id=group,
        seeds=tuple(range(seeds)),
        pace=Pace(within_s=parse_length("--within", within) / 1_000, workers=workers),
        out=out,
    )
    with progress_bar("simulating", 100) as advance:
        told = rehearse_all(job, lambda done, all_: advance(100 * done // max(1, all_)))
    if json:
        print_json(told)
    else:
        print_rehearsal(told)


def read_told(trace: Path, partitions: list[str]) -> "Told":
    """The trace, with what is known of its groups.

    Raises:
        DataError: The trace cannot be read.
        ConfigError: A number of partitions cannot be read.
    """
    from coordinator_sim.replay.logs import charges_of
    from coordinator_sim.replay.work import known_groups, parse_partitions
    from coordinator_sim.runs.run_directory import read_run
    from coordinator_sim_reports.rehearsal_facts import Told

    run = read_run(trace)
    events = list(run.events())
    return Told(
        where=str(trace),
        events=events,
        info=run.info,
        known=known_groups(events, parse_partitions(partitions)),
        charges=charges_of(events, run.info),
    )


def wishes_of(
    assignors: list[str], remote_assignor: str, *, pace: str, down: str, profile: str, top: int
) -> "Wishes":
    """Parse the options of a rehearsal that do not come from the trace.

    Raises:
        ConfigError: An assignor is unknown, or a length cannot be read.
    """
    from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
    from coordinator_sim.clients.settings_advice import SERVER_ASSIGNORS
    from coordinator_sim_reports.rehearsal_facts import Wishes

    named: dict[str, str] = {}
    for text in assignors:
        group_id, _, name = text.rpartition(":")
        if name not in CONSUMER_ASSIGNORS:
            raise ConfigError(
                f"--assignor {text}: {name!r} must be one of {', '.join(CONSUMER_ASSIGNORS)}"
            )
        named[group_id] = name
    if remote_assignor not in SERVER_ASSIGNORS:
        raise ConfigError(
            f"--remote-assignor {remote_assignor}: must be one of {', '.join(SERVER_ASSIGNORS)}"
        )
    return Wishes(
        assignors=named,
        pace_ms=parse_length("--pace", pace) if pace else None,
        down_ms=parse_length("--down", down) if down else None,
        remote_assignor=remote_assignor,
        profile=profile,
        top=top,
    )


def print_json(told: "Rehearsal") -> None:
    """Every figure of a rehearsal, with its sentences, as one JSON object."""
    import msgspec

    from coordinator_sim_reports.rehearsal_words import verdict

    document = msgspec.to_builtins(told)
    for row, each in zip(document["groups"], told.groups, strict=True):
        row["verdict"] = verdict(each)
    typer.echo(msgspec.json.format(msgspec.json.encode(document)).decode())


def print_rehearsal(told: "Rehearsal") -> None:
    """Each group in a few lines, and where the page is."""
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.cli.wording import listed

    console = PrintableConsole(highlight=False)
    if not console.is_terminal:
        console = PrintableConsole(highlight=False, width=_PLAIN_WIDTH)
    for each in told.groups:
        print_group(each, console)
    if told.left_out:
        console.print(
            f"left out, with fewer rebalances: {listed(told.left_out)}; --top shows more",
            markup=False,
            soft_wrap=True,
        )
    console.print(
        f"means of {worlds_of(told)}, least to most where they differ\npage: {told.page}",
        markup=False,
        soft_wrap=True,
    )


def worlds_of(told: "Rehearsal") -> str:
    """How many worlds were drawn, and how many more were asked for."""
    from coordinator_sim.cli.wording import counted

    kept = f" ({counted(told.kept, 'run')} kept from before)" if told.kept else ""
    if not told.seeds_left:
        return f"{counted(told.seeds, 'drawn world')}{kept}"
    every = counted(told.seeds + told.seeds_left, "drawn world")
    return f"{told.seeds} of {every} in the time given{kept}; run it again to go on"


def print_group(each: "GroupRehearsal", console: "PrintableConsole") -> None:
    """One group: its verdict, its deploys, and what stands in the way."""
    from rich import box
    from rich.table import Table

    from coordinator_sim.cli.replay import escaped
    from coordinator_sim.replay.upgrade_hurdles import Kind
    from coordinator_sim_reports.rehearsal_words import NAMES, spread_text, verdict

    console.print(f"[bold]{escaped(each.group.group_id)}[/bold]")
    for sentence in verdict(each):
        console.print(f"  {sentence}", markup=False, soft_wrap=True)
    if each.deploys:
        table = Table(box=box.SIMPLE_HEAD, padding=0)
        table.add_column("", no_wrap=True)
        for head in _HEADS:
            table.add_column(head, justify="right", no_wrap=True)
        for row in each.deploys:
            cells = (spread_text(row.costs[name], is_stacked=True) for name in _SHOWN)
            table.add_row(NAMES[row.deploy], *cells)
        console.print(table)
        console.print(f"  {paid_line(each)}", markup=False, soft_wrap=True)
    words = {Kind.BLOCKS: "blocks", Kind.CHANGES: "changes", Kind.CHECK: "check"}
    for hurdle in each.group.hurdles:
        fix = "" if hurdle.kind is Kind.CHECK else f" {hurdle.fix}"
        console.print(f"  {words[hurdle.kind]}: {hurdle.what}{fix}", markup=False, soft_wrap=True)
    console.print()


def paid_line(each: "GroupRehearsal") -> str:
    """When the upgrade has paid for itself, figure by figure."""
    from coordinator_sim_reports.rehearsal_words import pays_text

    told = [f"{_WEIGHED[row.measure]}: {pays_text(row)}" for row in each.balance]
    return f"paid for: {'; '.join(told)}"
