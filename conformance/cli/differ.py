"""`conformance differ`: random programs on the simulator and on Apache Kafka's own coordinator."""

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.cli.progress import progress_bar
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator_sim_conformance.differ.comparison import Difference
    from coordinator_sim_conformance.differ.loop import Failure, Outcome, Plan, Side
    from coordinator_sim_conformance.differ.references import Reference
    from coordinator_sim_conformance.differ.sides import Json, LinesProcess

_DEFAULT_REFERENCE: Final = "kafka-4.4.0"


def differ(
    *,
    reference: Annotated[
        str, typer.Option(help="The Kafka to compare with.", metavar="NAME")
    ] = _DEFAULT_REFERENCE,
    profile: Annotated[
        str | None,
        typer.Option(help="Our profile; the reference's unless given.", metavar="PROFILE"),
    ] = None,
    steps: Annotated[int, typer.Option(help="Commands in all.", min=1)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the programs.")] = 1,
    program: Annotated[
        int | None, typer.Option(help="Run the one program of this seed.", metavar="SEED")
    ] = None,
    program_steps: Annotated[int, typer.Option(help="Commands of one world.", min=3)] = 400,
    without: Annotated[
        str, typer.Option(help="Requests and events to leave out.", metavar="NAME,NAME")
    ] = "",
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on with the next program; list the kinds.")
    ] = False,
    shrink: Annotated[bool, typer.Option(help="Make the failing program small.")] = True,
    script: Annotated[
        Path | None, typer.Option(help="Run this script instead.", metavar="FILE")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(help="Write the script's answers of the reference here.", metavar="FILE"),
    ] = None,
    out: Annotated[Path, typer.Option(help="Where failing scripts go.")] = Path("out"),
    lines: Annotated[
        str | None,
        typer.Option(help="Compare this program instead of the simulator.", metavar="COMMAND"),
    ] = None,
) -> None:
    """Run random programs on the simulator and on Apache Kafka's own coordinator in lockstep.

    Compared are all replies with their order and times, and all appended records. The first
    difference is told as a transcript, made small, and written as a script of JSON lines that
    both sides can run. Needs Java, and Maven the first time.

    Exit code 1: they differ. Exit code 2: something needed is missing or misused.

    Example: conformance differ --reference kafka-4.4.0 --steps 20000 --seed 7
    """
    from coordinator_sim_conformance.differ.explained import read_explanations
    from coordinator_sim_conformance.differ.loop import Plan
    from coordinator_sim_conformance.differ.references import reference_named

    kafka = reference_named(reference)
    plan = Plan(
        reference=kafka,
        steps=steps,
        seed=seed,
        program_steps=program_steps,
        without=_left_out(without),
        explanations=read_explanations(),
        keeps_going=keep_going,
        program_seed=program,
    )
    with ExitStack() as stack:
        ours, theirs = _sides(stack, kafka, profile, lines)
        if script is not None:
            agree = _play(script, record, ours, theirs, kafka.name)
        else:
            agree = _compare(plan, ours, theirs, out if shrink else None)
    if not agree:
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _sides(
    stack: ExitStack, reference: "Reference", profile: str | None, lines: str | None
) -> "tuple[Side, LinesProcess]":
    """Start the reference, and the program to compare with it unless that is the simulator."""
    from coordinator_sim.kafka.profiles import profile_named
    from coordinator_sim_conformance.differ.building import built
    from coordinator_sim_conformance.differ.sides import LinesProcess, Simulator

    like = profile_named(profile or reference.profile).name
    command, folder = built(reference, lambda text: typer.echo(text, err=True))
    theirs = stack.enter_context(LinesProcess(command, folder))
    if lines is None:
        return Simulator(like, has_edge=reference.has_edge), theirs
    return stack.enter_context(LinesProcess(shlex.split(lines))), theirs


def _compare(plan: "Plan", ours: "Side", theirs: "LinesProcess", out: Path | None) -> bool:
    """Run programs and tell what comes of it; True when there is no difference."""
    from coordinator_sim_conformance.differ.loop import run

    with progress_bar(f"comparing with {plan.reference.name}", plan.steps) as progress:
        outcome = run(plan, ours, theirs, progress)
    _tell(plan, outcome)
    if outcome.failure is not None and out is not None:
        _shrink(plan, outcome.failure, ours, theirs, out)
    return outcome.failure is None


def _left_out(names: str) -> tuple[str, ...]:
    from coordinator_sim_conformance.differ.programs import LEFT_OUT

    left_out = tuple(name for name in names.split(",") if name)
    for name in left_out:
        if name not in LEFT_OUT:
            raise ConfigError(f"--without {name}: use some of {', '.join(LEFT_OUT)}")
    return left_out


def _play(
    script: Path, record: Path | None, ours: "Side", theirs: "LinesProcess", reference: str
) -> bool:
    """Run a script on both sides and tell the first difference; True when there is none."""
    from coordinator_sim_conformance.differ.scripts import play, read_script, write_recording
    from coordinator_sim_conformance.differ.story import tell

    exchanges, difference = play(read_script(script), ours, theirs)
    if record is not None:
        write_recording(record, exchanges)
    if difference is None:
        typer.echo(f"{script}: {len(exchanges)} commands, no difference from {reference}")
        return True
    for line in tell(exchanges, difference, reference):
        typer.echo(line)
    return False


def _tell(plan: "Plan", outcome: "Outcome") -> None:
    from coordinator_sim_conformance.differ.story import tell

    failure = outcome.failure
    if failure is not None:
        typer.echo(f"seed {failure.seed}:")
        for line in tell(failure.exchanges, failure.difference, plan.reference.name):
            typer.echo(line)
    if plan.keeps_going:
        for signature, seeds in sorted(outcome.kinds.items(), key=lambda kind: -len(kind[1])):
            typer.echo(f"{len(seeds):5} {signature} (seed {seeds[0]})")
    for name, count in outcome.explained.items():
        typer.echo(f"explained {name}: {count}")
    verdict = "they differ" if failure is not None else "no unexplained difference"
    typer.echo(
        f"{plan.reference.name}, seed {plan.seed}: {outcome.steps} operations in "
        f"{outcome.programs} programs, {outcome.steps_per_second:.0f} a second: {verdict}"
    )


def _shrink(
    plan: "Plan", failure: "Failure", ours: "Side", theirs: "LinesProcess", out: Path
) -> None:
    """Make a failing program small, tell it and write it down."""
    from coordinator_sim_conformance.differ.scripts import play, write_script
    from coordinator_sim_conformance.differ.shrinking import Shrinker
    from coordinator_sim_conformance.differ.story import tell

    def trial(commands: "Sequence[Json]") -> "tuple[int, Difference | None]":
        exchanges, difference = play(commands, ours, theirs)
        return len(exchanges), difference

    shrinker = Shrinker(trial, failure.difference.signature)
    commands = shrinker.shrink(failure.exchanges)
    exchanges, difference = play(commands, ours, theirs)
    path = out / f"differ-{plan.reference.name}-{failure.seed}.jsonl"
    write_script(path, commands)
    typer.echo(f"\nmade small, {len(commands)} commands:")
    if difference is not None:
        for line in tell(exchanges, difference, plan.reference.name):
            typer.echo(line)
    typer.echo(
        f"written to {path}; again: "
        f"conformance differ --reference {plan.reference.name} --script {path}"
    )
