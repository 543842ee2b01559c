"""`replay`: drive the core from a trace; how much of it came true; what other settings change."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from coordinator_sim import __version__
from coordinator_sim.cli.arguments import run_folder
from coordinator_sim.cli.window import (
    ANY_TIME,
    WindowOptions,
    as_document,
    echo_window,
    takes_window,
    window_in,
)
from coordinator_sim.cli.wording import counted
from coordinator_sim.errors import ConfigError
from coordinator_sim.trace.epoch_records import GROUP_TYPES

if TYPE_CHECKING:
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.replay.report import (
        GroupFidelity,
        ReplayReport,
        ReplayResult,
        Tally,
    )
    from coordinator_sim.replay.settings import Settings
    from coordinator_sim.runs.run_directory import RunDirectory

EXIT_NOT_REPRODUCED: Final = 1
_NAMED: Final = 5
"""Groups that a line names."""
_PLAIN_WIDTH: Final = 160
"""Columns of the tables where the output is no terminal."""

SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting to try, such as session.timeout.ms=10000; may be repeated. Several "
        "values, separated by commas, are tried in every combination.",
    ),
]
ExplainOption = Annotated[
    bool,
    typer.Option("--explain", help="Say how sure each figure of --set is, and what it assumes."),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of tables.")
]


@takes_window
def replay(
    trace: Annotated[
        Path,
        typer.Argument(help="A trace: the directory of a run or an import.", metavar="TRACE"),
    ],
    set_: SetOption = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Kafka releases to try instead of the trace's, such as 4.4.",
            metavar="RELEASE,...",
        ),
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[GROUP:]TOPIC=N",
            help="Partitions of a topic where the trace does not tell them; may be repeated.",
        ),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="The only group to replay, instead of all.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write what the core did as a trace of its own.")
    ] = None,
    explain: ExplainOption = False,
    json: JsonOption = False,
    window_options: WindowOptions = ANY_TIME,
) -> None:
    """Drive the coordinator from a trace and compare what it does with what the trace says.

    Only what the trace determines counts; the rest is assumed, and listed. With --set or --profile
    the trace is replayed again under other settings, and the difference is shown. With a window of
    time the whole trace is replayed, and what began in it counts.

    Exit code 1 when something that the trace determines did not come true.

    Example: coordinator-sim replay out/incident --set session.timeout.ms=45000
    """
    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.replay.run import replay_run
    from coordinator_sim.replay.settings import parse_grid
    from coordinator_sim.replay.work import parse_partitions
    from coordinator_sim.runs.run_directory import read_run

    grid = [settings for settings in parse_grid(set_ or [], profile) if not settings.is_empty]
    given = parse_partitions(partitions or [])
    run = read_run(trace)
    window = window_in(run.info, window_options)
    if out is not None:
        check_out(out, grid, run)
    with progress_bar("replaying", run.info.counts.get("events", 0)) as advance:
        result = replay_run(
            run, grid, given=given, group_id=group, window=window, on_progress=advance
        )
    if out is not None:
        write_trace(out, run, result, grid)
    if json:
        print_json(result.report, out, as_document(window))
    else:
        echo_window(run.info, window)
        print_tables(result.report, out, is_explained=explain or not grid)
    if not result.report.is_reproduced:
        raise typer.Exit(EXIT_NOT_REPRODUCED)


def check_out(out: Path, grid: "list[Settings]", run: "RunDirectory") -> None:
    """Refuse to write several runs as one trace, or over something else."""
    from coordinator_sim.runs.run_directory import check_replaceable

    if len(grid) > 1:
        raise ConfigError(
            f"--out {out}: a trace holds one run, and {len(grid)} combinations are asked for"
        )
    check_replaceable(out, keep=run.path)


def write_trace(
    out: Path, run: "RunDirectory", result: "ReplayResult", grid: "list[Settings]"
) -> None:
    """Write the replay's own events as a run directory."""
    from coordinator_sim.runs.run_directory import RunDirectoryWriter
    from coordinator_sim.trace.events import RunInfo, Source

    info = RunInfo(
        trace_id=run.info.trace_id,
        source=Source.SIM,
        cluster_id=run.info.cluster_id,
        version=__version__,
        profile="replayed",
        scenario=f"replay of {run.path.name}",
        options={name: str(value) for each in grid for name, value in each.given.items()},
    )
    with run_folder(out, out) as directory, RunDirectoryWriter(directory, info) as writer:
        for event in result.events:
            writer.record(event)


def print_json(report: "ReplayReport", out: Path | None, window: dict[str, Any]) -> None:
    """One JSON object: totals, groups, what the settings change."""
    import msgspec

    from coordinator_sim.cli.what_if import verdict_of

    document = {
        "trace_id": report.trace_id,
        "reproduced": report.is_reproduced,
        "totals": report.totals(),
        "groups": [
            {
                "reproduced": group.is_reproduced,
                "first_difference": group.first_difference,
                **msgspec.to_builtins(group),
            }
            for group in report.groups
        ],
        "silent_groups": report.silent_groups,
        **{f"{group_type}_groups": report.of_type(group_type) for group_type in GROUP_TYPES},
        "other_sources": report.other_sources,
        "grid": report.grid,
        "what_if": [
            {"saves_ms": entry.saves_ms, **msgspec.to_builtins(entry)} for entry in report.what_if
        ],
        "verdict": verdict_of(report) if report.what_if else None,
        "certain": report.certain,
        "assumed": report.conditions,
        "out": None if out is None else str(out),
        **window,
    }
    typer.echo(msgspec.json.encode(document).decode())


def print_tables(report: "ReplayReport", out: Path | None, *, is_explained: bool) -> None:
    """The fidelity table, what did not come true, what settings change, and the verdict on them.

    Args:
        report: The replay's report.
        out: Where the trace of the replay is; None for nowhere.
        is_explained: Whether to print what was assumed, and how sure each figure is.
    """
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.cli.what_if import print_what_if, verdict_of

    console = PrintableConsole(highlight=False)
    if not console.is_terminal:
        console = PrintableConsole(highlight=False, width=_PLAIN_WIDTH)
    print_fidelity(console, report)
    print_differences(console, report)
    if is_explained:
        print_assumptions(console, report)
    print_left_out(console, report)
    if report.what_if:
        print_what_if(console, report, is_explained=is_explained)
    print_summary(console, report)
    if out is not None:
        console.print(f"trace of the replay: {out}", markup=False)
    if report.what_if:
        console.print_sentences([verdict_of(report)])


def print_fidelity(console: "PrintableConsole", report: "ReplayReport") -> None:
    """Print a table with a row per file and group: facts reproduced of those in the source."""
    from rich.table import Table

    kinds = list(report.totals())
    files = any(group.source_ref is not None for group in report.groups)
    table = Table(
        title="Reproduced of what the source determines (+ assumed)", title_justify="left"
    )
    if files:
        table.add_column("file", overflow="fold")
    table.add_column("group", overflow="fold")
    table.add_column("kafka")
    for kind in kinds:
        table.add_column(kind, justify="right")
    names = short_names([group.source_ref for group in report.groups])
    for group in report.groups:
        cells = [names.get(group.source_ref, "")] if files else []
        cells += [group.group_id, kafka_of(group)]
        table.add_row(*map(escaped, cells), *(_cell(group.tallies.get(kind)) for kind in kinds))
    if len(report.groups) > 1:
        totals = report.totals()
        blanks = [""] if files else []
        table.add_section()
        table.add_row(*blanks, "all", "", *(_cell(totals[kind]) for kind in kinds))
    console.print(table)
    if any(group.is_nearest for group in report.groups):
        console.print("~: the nearest profile there is for the versions that the log can be of.")


def kafka_of(group: "GroupFidelity") -> str:
    """The profile, and the versions it stands for where it is only the nearest."""
    if not group.is_nearest:
        return group.profile
    return f"~{group.profile} for {group.version_range or 'unknown'}"


def print_differences(console: "PrintableConsole", report: "ReplayReport") -> None:
    """The first row of each kind that did not come true, and lines without an explanation."""
    for group in report.groups:
        for kind, tally in group.tallies.items():
            if tally.first_difference:
                missed = tally.in_source - tally.reproduced
                console.print(
                    f"{_place(group)}: {counted(missed, kind.removesuffix('s'))} not reproduced, "
                    f"first: "
                    f"{tally.first_difference}",
                    markup=False,
                )
        for text in group.unexplained:
            console.print(f"{_place(group)}: not explained: {text}", markup=False)
        if group.coverage.missed:
            text = f"what settings change is computed {group.coverage.words}"
            console.print(f"{_place(group)}: {text}", markup=False)


def print_assumptions(console: "PrintableConsole", report: "ReplayReport") -> None:
    """What replay had to choose, and what settings that were printed chose, group by group."""
    for title, field in (
        ("Assumed, because the source does not tell", "assumed"),
        ("Not assumed, because it was printed", "printed"),
    ):
        chosen: dict[str, dict[str, None]] = {}
        for group in report.groups:
            chosen.setdefault(_place(group), {}).update(dict.fromkeys(getattr(group, field)))
        if any(chosen.values()):
            console.print(f"\n{title}:")
        for where, texts in chosen.items():
            for text in texts:
                console.print(f"  {where}: {text}", markup=False)


def print_left_out(console: "PrintableConsole", report: "ReplayReport") -> None:
    """What of the trace was not replayed."""
    if report.silent_groups:
        console.print(
            f"\nWithout any rebalance: {_named_groups(report.silent_groups)}", markup=False
        )
    for group_type in GROUP_TYPES:
        named = report.of_type(group_type)
        if named:
            console.print(
                f"\nNot replayed: {_named_groups(named)} of the {group_type} protocol, "
                "of whose heartbeats a trace tells too little; see coordinator-sim explain",
                markup=False,
            )
    for source, count in report.other_sources.items():
        console.print(f"Not replayed: {counted(count, 'event')} of {source}", markup=False)


def print_summary(console: "PrintableConsole", report: "ReplayReport") -> None:
    """One line for all."""
    totals = report.totals()
    reproduced = sum(tally.reproduced for tally in totals.values())
    in_source = sum(tally.in_source for tally in totals.values())
    share = 100 * reproduced / in_source if in_source else 100.0
    console.print(
        f"\n{reproduced} of {in_source} rows that the source determines came true ({share:.1f} %)"
    )


def short_names(paths: list[str | None]) -> dict[str | None, str]:
    """The files' names without the folder that all are in."""
    known = sorted({path for path in paths if path is not None})
    if not known:
        return {}
    folder = os.path.commonpath([str(Path(path).parent) for path in known])
    return {path: os.path.relpath(path, folder) if folder else path for path in known}


def _place(group: "GroupFidelity") -> str:
    if group.source_ref is None:
        return group.group_id
    from coordinator_sim.ingest.kinds import topic_of

    path = Path(group.source_ref)
    # Segments of every partition have the same names.
    is_segment = topic_of(path.parent.name) is not None
    file = f"{path.parent.name}/{path.name}" if is_segment else path.name
    return f"{file}, {group.group_id}"


def _named_groups(group_ids: list[str]) -> str:
    """The number of groups, and the names of the first few."""
    names = ", ".join(group_ids[:_NAMED])
    more = "" if len(group_ids) <= _NAMED else " and others"
    return f"{counted(len(group_ids), 'group')} ({names}{more})"


def _cell(tally: "Tally | None") -> str:
    if tally is None or not (tally.in_source or tally.assumed):
        return "-"
    assumed = f" (+{tally.assumed})" if tally.assumed else ""
    text = f"{tally.reproduced}/{tally.in_source}{assumed}"
    return text if tally.reproduced == tally.in_source else f"[red]{text}[/red]"


def escaped(text: str) -> str:
    """A name as rich prints it unchanged."""
    from rich.markup import escape

    return escape(text)
