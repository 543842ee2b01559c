"""`conformance differ`: random programs on the simulator and on Apache Kafka's own coordinator."""

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.cli.progress import progress_bar
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from conformance.differ.loop import Outcome, Plan


def differ(
    *,
    reference: Annotated[
        str, typer.Option(help="The Kafka to compare with.", metavar="NAME")
    ] = "kafka-4.4.0",
    profile: Annotated[
        str | None,
        typer.Option(help="Our profile; the reference's unless given.", metavar="PROFILE"),
    ] = None,
    steps: Annotated[int, typer.Option(help="Commands in all.", min=1)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the programs.")] = 1,
    program_steps: Annotated[int, typer.Option(help="Commands of one world.", min=3)] = 400,
    without: Annotated[
        str, typer.Option(help="Requests and events to leave out.", metavar="NAME,NAME")
    ] = "",
    keep_going: Annotated[
        bool, typer.Option("--keep-going", help="Go on with the next program; list the kinds.")
    ] = False,
    lines: Annotated[
        str | None,
        typer.Option(help="Compare this program instead of the simulator.", metavar="COMMAND"),
    ] = None,
) -> None:
    """Run random programs on the simulator and on Apache Kafka's own coordinator in lockstep.

    Compared are all replies with their order and times, and all appended records. The first
    difference is told as a transcript. Needs Java, and Maven the first time.

    Exit code 1: they differ. Exit code 2: something needed is missing or misused.

    Example: conformance differ --reference kafka-4.4.0 --steps 20000 --seed 7
    """
    from conformance.differ.building import built
    from conformance.differ.explained import read_explanations
    from conformance.differ.loop import Plan, run
    from conformance.differ.programs import LEFT_OUT
    from conformance.differ.references import reference_named
    from conformance.differ.sides import LinesProcess
    from coordinator_sim.harness.lines import Lines
    from coordinator_sim.protocol.profiles import profile_named

    kafka = reference_named(reference)
    left_out = tuple(name for name in without.split(",") if name)
    for name in left_out:
        if name not in LEFT_OUT:
            raise ConfigError(f"--without {name}: use some of {', '.join(LEFT_OUT)}")
    plan = Plan(
        reference=kafka,
        profile=profile_named(profile or kafka.profile).name,
        steps=steps,
        seed=seed,
        program_steps=program_steps,
        without=left_out,
        explanations=read_explanations(),
        keeps_going=keep_going,
    )
    command, folder = built(kafka, lambda text: typer.echo(text, err=True))
    with ExitStack() as stack:
        theirs = stack.enter_context(LinesProcess(command, folder))
        ours = Lines() if lines is None else stack.enter_context(LinesProcess(shlex.split(lines)))
        with progress_bar(f"comparing with {kafka.name}", steps) as progress:
            outcome = run(plan, ours, theirs, progress)
    _tell(plan, outcome)
    if outcome.failure is not None:
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _tell(plan: "Plan", outcome: "Outcome") -> None:
    from conformance.differ.story import tell

    if outcome.failure is not None:
        typer.echo(f"seed {outcome.failure.seed}:")
        for line in tell(outcome.failure, plan.reference.name):
            typer.echo(line)
    if plan.keeps_going:
        for signature, seeds in sorted(outcome.kinds.items(), key=lambda kind: -len(kind[1])):
            typer.echo(f"{len(seeds):5} {signature} (seed {seeds[0]})")
    for name, count in outcome.explained.items():
        typer.echo(f"explained {name}: {count}")
    verdict = "differ" if outcome.failure is not None else "no unexplained difference"
    typer.echo(
        f"{plan.reference.name}, profile {plan.profile}, seed {plan.seed}: {outcome.steps} "
        f"operations in {outcome.programs} programs, {outcome.steps_per_second:.0f} a second: "
        f"{verdict}"
    )
