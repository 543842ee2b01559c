"""`sweep`: the catalogue under every protocol, assignor and membership, compared by Spark."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from coordinator_sim.cli import arguments
from coordinator_sim.cli.own_assignors import (
    AssignorFromOption,
    AssignorJavaOption,
    AssignorProcessOption,
    register_given,
)
from coordinator_sim.cli.printing import print_json
from coordinator_sim.cli.progress import job_status
from coordinator_sim.cli.uris import located, session_for_uris
from coordinator_sim.cli.wording import counted
from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario.lengths import parse_length

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from coordinator_sim.assignors.foreign.contract import OwnAssignor
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim.sim.scenario.variety import Variety
    from coordinator_sim_reports.objective import Answer
    from coordinator_sim_reports.sweep import SweepSummary
    from coordinator_sim_reports.trials import Asked


ScenariosOption = Annotated[
    list[str] | None,
    typer.Argument(
        help="Catalogue names and scenario files (URIs too), or one grid.toml; by default all of "
        "the catalogue that can be compared.",
    ),
]
OutOption = Annotated[
    str,
    typer.Option(help="Directory for sweep.html, tables/ and traces/; a URI too.", metavar="DIR"),
]
ProcessingTimesOption = Annotated[
    str,
    typer.Option(
        help="Compare assignors at each of these typical processing times instead.",
        metavar="MS,...",
    ),
]
AssignorsOption = Annotated[
    str,
    typer.Option(help="Assignors to compare instead of the usual ones.", metavar="NAME,..."),
]
MembershipsOption = Annotated[
    str,
    typer.Option(
        help="Kinds of membership to compare: dynamic, static, or both.", metavar="KIND,..."
    ),
]
WithinOption = Annotated[
    str,
    typer.Option(
        help="Simulate as many of the worlds as are done in this time, the same for every choice; "
        "run it again to go on. The first ones always end; without it, a sweep ends after five "
        "minutes, with nothing to compare if not even the first worlds are done.",
        metavar="LENGTH",
    ),
]
JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON summary instead of tables.")
]

_NAMED_BEST = 4
DEFAULT_SEEDS = 3


def sweep(
    scenarios: ScenariosOption = None,
    out: OutOption = "out/sweep",
    seeds: arguments.SeedsOption = DEFAULT_SEEDS,
    processing: arguments.ProcessingOption = "",
    processing_ms: arguments.ProcessingTimeOption = "",
    processing_times: ProcessingTimesOption = "",
    assignors: AssignorsOption = "",
    memberships: MembershipsOption = "",
    objective_lag_ms: arguments.ObjectiveOption = None,
    assignor_from: AssignorFromOption = None,
    assignor_process: AssignorProcessOption = None,
    assignor_java: AssignorJavaOption = None,
    within: WithinOption = "",
    master: Annotated[str, typer.Option(help="Spark master URL.")] = "local[2]",
    json: JsonOption = False,
) -> None:
    """Run scenarios under every choice as Spark tasks; compare what the choices cost.

    Eager against incremental cooperative Connect, range against sticky against cooperative-sticky,
    dynamic against static members. Every choice meets the same drawn worlds. With
    --objective-lag-ms the page begins with what keeping that lag costs: pods, member-hours, thrash.

    Runs that are finished in --out are kept, so a sweep that was interrupted goes on.

    Example: coordinator-sim sweep consumer-rolling-deploy mine.json --out out/sweep
    """
    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim_reports.session import check_extra

    check_extra()
    from coordinator_sim_reports.sweep import run_sweep
    from coordinator_sim_reports.trials import left_out

    own = register_given(assignor_from, assignor_process, assignor_java)
    named = scenarios or []
    with session_for_uris(named, master) as spark:
        path_of = partial(located, spark=spark)
        if any(name.endswith(".toml") for name in named):
            options = processing, processing_ms, processing_times, assignors, memberships
            asked = grid_alone(named, path_of, beside=[*options, *own, seeds != DEFAULT_SEEDS])
        else:
            asked = asked_for(
                named,
                seeds,
                path_of=path_of,
                variety=arguments.parse_variety(processing, processing_ms),
                processing_times=parse_times(processing_times),
                assignors=assignors,
                memberships=memberships,
                own=own,
            )
        sweeping = partial(
            run_sweep,
            msgspec.structs.replace(asked, objective_lag_ms=objective_lag_ms),
            out,
            unasked={} if named else left_out(asked),
            master=master,
            within_s=parse_length("--within", within) / 1_000 if within else None,
            announce=None if json else partial(typer.echo, err=True),
        )
        summary = job_status(sweeping, is_silent=json)
    if json:
        print_json(summary)
    else:
        print_choices(summary, PrintableConsole())


def asked_for(
    named: list[str],
    seeds: int,
    *,
    path_of: "Callable[[str], Path]" = Path,
    variety: "Variety",
    processing_times: tuple[int, ...],
    assignors: str,
    memberships: str,
    own: "tuple[OwnAssignor, ...]",
) -> "Asked":
    """What the command line asks for.

    Raises:
        ConfigError: Two files hold scenarios of one name, or a kind of membership is unknown.
        ScenarioError: A file holds no scenario.
    """
    from coordinator_sim_reports.grid import check_memberships, own_scenarios
    from coordinator_sim_reports.trials import MEMBERSHIPS, Asked

    kinds = parse_names(memberships) or MEMBERSHIPS
    check_memberships("--memberships", kinds)

    names, written = own_scenarios(named, path_of)
    return Asked(
        names=names,
        seeds=tuple(range(seeds)),
        variety=variety,
        processing_times=processing_times,
        written=written,
        assignors=parse_names(assignors),
        memberships=kinds,
        own=own,
    )


def grid_alone(
    named: list[str], path_of: "Callable[[str], Path]", beside: "Sequence[object]"
) -> "Asked":
    """What a grid file asks for.

    Args:
        named: The arguments; the file must be the only one.
        path_of: Gives the path of a named file.
        beside: Options that say what the file says.

    Raises:
        ConfigError: Something is named beside the file, or it is no grid.
    """
    from coordinator_sim_reports.grid import read_grid

    if len(named) > 1 or any(beside):
        raise ConfigError(
            f"{next(name for name in named if name.endswith('.toml'))}: a grid says all of what "
            "is run; put scenarios, seeds, assignors and processing times into it"
        )
    return read_grid(path_of(named[0]))


def parse_names(text: str) -> tuple[str, ...]:
    """Names separated by commas; empty for none."""
    return tuple(name.strip() for name in text.split(",")) if text else ()


def parse_times(text: str) -> tuple[int, ...]:
    """Milliseconds separated by commas; empty for none.

    Raises:
        ConfigError: Something is not a whole number.
    """
    from coordinator_sim.kafka.java_numbers import java_int

    times = [java_int(time.strip(), bits=64) for time in text.split(",")] if text else []
    found = tuple(time for time in times if time is not None)
    if len(found) < len(times):
        raise ConfigError(
            f"--processing-times {text!r}: wants whole milliseconds separated by commas, as 50,1000"
        )
    return found


def print_answer(answer: "Answer", console: "PrintableConsole") -> None:
    """Print what keeping the lag objective costs in one scenario, and the figures of each point."""
    from rich import box
    from rich.table import Table

    from coordinator_sim_reports.objective import FIGURES, figure_text

    for sentence in answer.sentences:
        console.print(sentence, highlight=False, soft_wrap=True)
    if not answer.points:
        console.print()
        return
    table = Table(box=box.SIMPLE_HEAD, padding=0)
    printed = [each for each in FIGURES if each.column not in ("delay_p50_s", "delay_p95_s")]
    for title in ("", *(figure.title for figure in printed)):
        table.add_column(title, justify="right", no_wrap=True)
    for point in answer.points:
        cells = [figure_text(point, figure, stacked=True) for figure in printed]
        table.add_row(f"{point.number}", *cells)
    console.print(table)
    for point in answer.points:
        verdict = ", keeps it" if point.name in answer.keeping else ""
        name = answer.names[point.name] or point.name
        console.print(f"no. {point.number}: {name}{verdict}", highlight=False, soft_wrap=True)
    console.print()


def print_choices(summary: "SweepSummary", console: "PrintableConsole") -> None:
    """Print the answers, one table a question, and where the page is."""
    from rich import box
    from rich.table import Table

    from coordinator_sim_reports import sweep_page as page

    for answer in summary.objective:
        print_answer(answer, console)
    for question in dict.fromkeys(row["question"] for row in summary.choices):
        rows = [row for row in summary.choices if row["question"] == question]
        table = Table(
            title=f"{page.title_of(question, rows)} ({counted(rows[0]['scenarios'], 'scenario')})",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=0,
        )
        table.add_column("", no_wrap=question != "settings")
        printed = [
            measure
            for measure in page.MEASURES
            if (
                measure.column in page.PACED
                if question == "processing"
                else measure.column != "reprocessed"
            )
        ]
        for measure in printed:
            word = "interr." if measure.column == "interrupted" else measure.word
            table.add_column(word, justify="right", no_wrap=True)
        for row in rows:
            cells = [page.shown(row, measure, stacked=True) for measure in printed]
            table.add_row(page.choice_name(row["choice"]), *cells)
        console.print(table)
        console.print(
            f"unowned, run twice: {page.unit_of(question)}-seconds; stopped: seconds\n",
            highlight=False,
            soft_wrap=True,
        )
    best = [row["candidate"] for row in summary.candidates if row["is_best"]]
    if len(summary.candidates) > 1:
        console.print(
            "no other candidate moves less, leaves less unowned and is better balanced than: "
            + "; ".join(best[:_NAMED_BEST])
            + (f"; and {len(best) - _NAMED_BEST} more" if len(best) > _NAMED_BEST else ""),
            highlight=False,
            soft_wrap=True,
        )
    if summary.left_out:
        console.print(f"left out: {', '.join(summary.left_out)}; the page says why")
    kept = f", {summary.kept} of them kept from before" if summary.kept else ""
    if summary.seeds_left:
        every = counted(summary.seeds + summary.seeds_left, "world")
        console.print(
            f"{summary.seeds} of {every} in the time given; run it again to go on",
            highlight=False,
        )
    console.print(
        "median over the worlds drawn, and the least and the most where they differ\n"
        f"{counted(summary.runs, 'run')} of {counted(summary.scenarios, 'scenario')}{kept}; "
        f"report: {summary.page}",
        highlight=False,
        soft_wrap=True,
    )
    if not summary.objective:
        console.print_sentences(page.answers_of(summary.choices))
