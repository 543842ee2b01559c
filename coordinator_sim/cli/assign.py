"""`coordinator-sim assign`: run assignors on cases, check their results, or try them in the lab."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from coordinator_sim.cli.assignor_lab import lab
from coordinator_sim.cli.command_line import CommandGroup, CommandLine
from coordinator_sim.cli.own_assignors import (
    AssignorFromOption,
    AssignorJavaOption,
    AssignorProcessOption,
    register_given,
)
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.harness.assignor_cases import (
    Case,
    CaseFormError,
    CaseOutcome,
    Difference,
    first_difference,
    parse_case,
    run_case,
)


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
