"""`clients`: play requirements on a real client from outside, by a scripted coordinator."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated

import typer
from msgspec.structs import replace

from coordinator_sim import __version__
from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.cli.outputs import (
    AsJson,
    BaselineFile,
    IsStrict,
    JunitFile,
    NewBaselineFile,
    Outputs,
    ResultFile,
    TapFile,
    TargetName,
    WantedCase,
    WantedText,
)
from coordinator_sim_conformance.cli.run import print_counts, print_failures
from coordinator_sim_conformance.clients.case import all_wire_cases
from coordinator_sim_conformance.clients.driver import Program
from coordinator_sim_conformance.clients.known import KNOWN, known_client
from coordinator_sim_conformance.clients.playing import SIDE_BY_SIDE, Played, play_wire_cases
from coordinator_sim_conformance.registry import chosen
from coordinator_sim_conformance.running import Ending
from coordinator_sim_conformance.verdicts.baseline import Gaps, read_baseline, with_gap
from coordinator_sim_conformance.verdicts.results import RunResult, TargetFacts
from coordinator_sim_conformance.verdicts.standing import RED

_TELL_EVERY = 10
_MOST_SIDE_BY_SIDE = 64


def clients(
    client: Annotated[
        str | None,
        typer.Option(help=f"A client that the suite drives: {', '.join(KNOWN)}.", metavar="CLIENT"),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            help="Instead: a driver, called with bootstrap, group and topic, then settings.",
            metavar="PROGRAM",
        ),
    ] = None,
    application: Annotated[
        str | None,
        typer.Option(
            help="Instead: any program; {bootstrap}, {group} and {topic} in it are replaced.",
            metavar="PROGRAM",
        ),
    ] = None,
    wanted: WantedText = None,
    case: WantedCase = None,
    jobs: Annotated[
        int, typer.Option(help="Clients at a time.", metavar="N", min=1, max=_MOST_SIDE_BY_SIDE)
    ] = SIDE_BY_SIDE,
    name: TargetName = None,
    strict: IsStrict = False,
    baseline: BaselineFile = None,
    write_baseline: NewBaselineFile = None,
    json: AsJson = False,
    result: ResultFile = None,
    junit: JunitFile = None,
    tap: TapFile = None,
) -> None:
    """Play requirements on a real client from outside; exit 1 when it breaks one.

    The client talks to a coordinator of the suite that misbehaves as each case says, and is judged
    by what it sends. A case that needs more than the client has is skipped.

    Example: conformance clients --client librdkafka -k C-SYNC
    """
    outputs = Outputs(
        as_json=json, result=result, junit=junit, tap=tap, new_baseline=write_baseline
    )
    outputs.check()
    cases = chosen(all_wire_cases(), wanted=wanted or (), ids=case or ())
    if not cases:
        raise ConfigError("no case has such an id; without -k and --case all are played")
    gaps: Gaps = {} if baseline is None else read_baseline(baseline, all_wire_cases())
    program, options = _program(client, command, application)
    began = datetime.now(UTC)
    played = asyncio.run(
        play_wire_cases(cases, program, side_by_side=jobs, told=_teller(len(cases)))
    )
    judged = RunResult(
        target=_facts(played, name or client),
        suite_version=__version__,
        at=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        endings=tuple(
            with_gap(replace(each, again=_again(options, each)), gaps) for each in played.endings
        ),
        is_strict=strict,
    )
    outputs.write(judged, gaps)
    if not outputs.takes_stdout:
        print_failures(judged, gaps, baseline)
        print_counts(judged, f"{judged.target.name} {judged.target.version}".strip())
    if any(judged.standing(ending) in RED for ending in judged.endings):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _program(
    client: str | None, command: str | None, application: str | None
) -> tuple[Program, tuple[str, ...]]:
    """The program to judge, and the options that name it again.

    Raises:
        ConfigError: there is not exactly one.
    """
    given = [
        (option, value)
        for option, value in (
            ("--client", client),
            ("--command", command),
            ("--application", application),
        )
        if value is not None
    ]
    if len(given) != 1:
        raise ConfigError("say which client: one of --client, --command and --application")
    option, value = given[0]
    if option == "--client":
        return known_client(value, _say), given[0]
    words = tuple(shlex.split(value))
    if not words:
        raise ConfigError(f"{option} is empty: give a program")
    if option == "--command":
        words += ("{bootstrap}", "{group}", "{topic}")
    return Program(command=words, speaks=option == "--command"), given[0]


def _facts(played: Played, name: str | None) -> TargetFacts:
    hello = played.hello
    told = name or hello.client or "client"
    return TargetFacts(name=told, version=hello.version, facts=dict(hello.lacks))


def _again(options: tuple[str, ...], ending: Ending) -> str:
    return shlex.join(("conformance", "clients", *options, "--case", ending.case_id))


def _teller(count: int) -> Callable[[Ending], None]:
    """Return what tells now and then how many cases have ended."""
    ended: Counter[str] = Counter()

    def tell(ending: Ending) -> None:
        ended[ending.verdict.value] += 1
        if ended.total() % _TELL_EVERY == 0:
            typer.echo(f"{ended.total()} of {count} cases ended", err=True)

    return tell


def _say(message: str) -> None:
    typer.echo(message, err=True)
