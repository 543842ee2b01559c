"""`coordinator-sim assign`: run assignors on cases, check their results, or try them in the lab."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from coordinator_sim.cli.command_line import CommandGroup, CommandLine
from coordinator_sim.cli.own_assignors import (
    AssignorFromOption,
    AssignorJavaOption,
    AssignorProcessOption,
    register_given,
)
from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.harness.assignor_cases import (
    Case,
    CaseFormError,
    CaseOutcome,
    Difference,
    first_difference,
    parse_case,
    run_case,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator_sim.harness.assignor_lab import LabResult, Size


PARTITIONS_A_MEMBER = 10


def lab(
    names: Annotated[
        list[str] | None, typer.Argument(help="Assignors; all by default.", metavar="NAME")
    ] = None,
    members: Annotated[
        str, typer.Option(help="Sizes of the group to try.", metavar="N,...")
    ] = "2,10,100",
    topics: Annotated[int, typer.Option(help="Topics that all members read.")] = 12,
    partitions: Annotated[
        int | None, typer.Option(help="Partitions of all topics; by default ten a member.")
    ] = None,
    racks: Annotated[int, typer.Option(help="Racks of members and replicas; 0: none.")] = 3,
    assignor_from: AssignorFromOption = None,
    assignor_process: AssignorProcessOption = None,
    assignor_java: AssignorJavaOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write one HTML page to this file.", metavar="FILE")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Try assignors: moves when members come and go, balance, racks, CPU, and properties.

    A member joins, one leaves, ten are restarted one by one. Exit code 1 when a partition has no
    owner, or the same question gets two answers.

    Example: coordinator-sim assign lab range mine --assignor-from mine=my.py:assign
    """
    import msgspec

    from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS
    from coordinator_sim_reports.lab_words import MUST

    register_given(assignor_from, assignor_process, assignor_java)
    chosen = names or list(CONSUMER_ASSIGNORS)
    sizes = _sizes(members, topics, partitions, racks)
    results = _examined(chosen, sizes)
    if out is not None:
        _write_page(results, out)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(results), indent=2).decode())
    else:
        _print_results(results, out)
    if any(MUST & result.failed.keys() for result in results):
        raise typer.Exit(1)


def _sizes(members: str, topics: int, partitions: int | None, racks: int) -> "list[Size]":
    from coordinator_sim.harness.assignor_lab import Size
    from coordinator_sim.kafka.java_numbers import java_int

    counts = [java_int(text.strip(), bits=32) for text in members.split(",")]
    if None in counts:
        raise ConfigError(f"--members {members!r}: wants whole numbers with commas, as 2,10,100")
    return [
        Size(
            members=count,
            topics=topics,
            partitions=partitions or max(topics, count * PARTITIONS_A_MEMBER),
            racks=racks,
        )
        for count in counts
        if count is not None
    ]


def _examined(names: "Sequence[str]", sizes: "Sequence[Size]") -> "list[LabResult]":
    from time import process_time

    from coordinator_sim.cli.progress import progress_bar
    from coordinator_sim.harness.assignor_lab import examine

    results = []
    with progress_bar("assigning", len(names) * len(sizes)) as advance:
        for name in names:
            for size in sizes:
                results.append(examine(name, size, process_time))
                advance(len(results))
    return results


def _write_page(results: "list[LabResult]", out: Path) -> None:
    from coordinator_sim_reports.lab_page import render_lab

    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render_lab(results), encoding="utf-8")


def _print_results(results: "list[LabResult]", page: Path | None) -> None:
    from rich import box
    from rich.table import Table

    from coordinator_sim.cli.console import PrintableConsole
    from coordinator_sim_reports.lab_words import answers_of

    console = PrintableConsole()
    for size in dict.fromkeys((each.size.members, each.size.partitions) for each in results):
        table = Table(
            title=f"{size[0]:,} members, {size[1]:,} partitions",
            title_justify="left",
            box=box.SIMPLE_HEAD,
            padding=0,
        )
        table.add_column("assignor", no_wrap=True)
        for name in ("join", "leave", "deploy", "stopped", "spread", "crossing", "CPU ms"):
            table.add_column(name, justify="right", no_wrap=True)
        for each in results:
            if (each.size.members, each.size.partitions) != size:
                continue
            table.add_row(
                each.assignor,
                *(f"{told.moved:,}/{told.fewest:,}" for told in each.stories),
                f"{each.stories[2].stopped:,}",
                str(each.spread),
                "-" if each.crossing is None else f"{each.crossing:.0%}",
                f"{each.join_ms:,.1f}",
            )
        console.print(table)
    for name in dict.fromkeys(each.assignor for each in results):
        failed = {
            known: why
            for each in results
            if each.assignor == name
            for known, why in each.failed.items()
        }
        for known, why in failed.items():
            console.print(f"{name} is not {known}: {why}", highlight=False, soft_wrap=True)
    console.print(
        "join, leave, deploy: partitions moved / the fewest that any balanced assignment moves\n"
        "stopped: in the deploy, partitions taken from members that stayed, if only for a moment\n"
        "spread: fullest less emptiest member; crossing: owner in no rack of the partition\n"
        "CPU ms: of the assignment after a member joined"
        + (f"\npage: {page}" if page is not None else ""),
        highlight=False,
        soft_wrap=True,
    )
    console.print_sentences(answers_of(results))


class _CasesByDefault(CommandGroup):
    """Takes words that are no command as the files of `cases`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 - typer's own kind of context
        """Put the command in front of files and options."""
        if not args or (args[0] not in self.commands and args[0] != "--help"):
            args = ["cases", *args]
        return super().parse_args(ctx, args)


assign = CommandLine(
    name="assign",
    cls=_CasesByDefault,
    help="Run assignors on cases or check their results (assign FILE...), or try them (lab).",
    epilog="Example: coordinator-sim assign lab range sticky --members 2,10,100",
)
assign.command(short_help="Try assignors: moves, balance, racks, CPU.")(lab)


@assign.command(short_help="Run assignors on the cases of files; the default.")
def cases(
    files: Annotated[
        list[Path], typer.Argument(help="Files with one case a line.", metavar="FILE")
    ],
    *,
    assignor_from: AssignorFromOption = None,
    assignor_process: AssignorProcessOption = None,
    assignor_java: AssignorJavaOption = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare with what the cases expect.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object a line.")] = False,
) -> None:
    """Run assignors on cases of the golden forms; with --check, compare with their results.

    Exit code 1: a case differs. Exit code 2: a file cannot be read or a line is not a case.

    Example: coordinator-sim assign cases.jsonl --check
    """
    register_given(assignor_from, assignor_process, assignor_java)
    case_count = difference_count = 0
    for file, number, case in _cases(files):
        case_count += 1
        try:
            if not check:
                _print_outcomes(case, as_json=json)
                continue
            difference = first_difference(case)
        except CoordinatorSimError as error:
            raise _at(file, number, error) from error
        if difference is not None:
            difference_count += 1
            _print_difference(file, number, difference, as_json=json)
    if check and not json:
        typer.echo(f"{case_count} cases, {difference_count} differ")
    if difference_count:
        raise typer.Exit(1)


def _at(file: Path, number: int, error: Exception) -> CaseFormError:
    return CaseFormError(f"{file}, line {number}: {error}")


def _cases(files: list[Path]) -> Iterator[tuple[Path, int, Case]]:
    """Every case with its file and line number; blank lines are skipped."""
    for file in files:
        try:
            lines = file.read_bytes().splitlines()
        except OSError as error:
            raise CaseFormError(f"{file} cannot be read: {error.strerror}") from error
        numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
        if not numbered:
            raise CaseFormError(f"{file} holds no cases")
        for number, line in numbered:
            try:
                case = parse_case(line)
            except CaseFormError as error:
                raise _at(file, number, error) from error
            yield file, number, case


def _print_difference(file: Path, number: int, difference: Difference, *, as_json: bool) -> None:
    if as_json:
        fields = {"file": str(file), "line": number, **msgspec.structs.asdict(difference)}
        typer.echo(msgspec.json.encode(fields).decode())
    else:
        typer.echo(f"{file}, line {number}: {difference}")


def _print_outcomes(case: Case, *, as_json: bool) -> None:
    if not as_json:
        typer.echo(f"{case.label or 'case'} ({case.assignor})")
    for outcome in run_case(case):
        if as_json:
            fields = {
                "label": case.label,
                "assignor": case.assignor,
                **msgspec.structs.asdict(outcome),
            }
            typer.echo(msgspec.json.encode(fields).decode())
        else:
            _print_text(outcome)


def _print_text(outcome: CaseOutcome) -> None:
    if outcome.step:
        typer.echo(f"  {outcome.step}: delay {outcome.delay_ms} ms")
    indent = "    " if outcome.step else "  "
    for member, resources in outcome.assigned.items():
        revoked = outcome.revoked.get(member, [])
        given = " ".join(resources) or "nothing"
        taken = f"; revoked {' '.join(revoked)}" if revoked else ""
        typer.echo(f"{indent}{member}: {given}{taken}")
