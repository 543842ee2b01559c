"""`conformance differ`: random programs on the simulator and a reference.

The reference is Apache Kafka's own coordinator in virtual time, or a running endpoint.
"""

import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.cli.progress import progress_bar
from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.cli import differ_options
from coordinator_sim_conformance.cli.differ_live import Wanted, compare_live

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coordinator_sim_conformance.differ.comparison import Difference
    from coordinator_sim_conformance.differ.loop import Failure, Outcome, Plan, Side
    from coordinator_sim_conformance.differ.references import Reference
    from coordinator_sim_conformance.differ.sides import Json, LinesProcess

_DEFAULT_REFERENCE: Final = "kafka-4.4.0"


def differ(
    *,
    reference: differ_options.ReferenceName = _DEFAULT_REFERENCE,
    command_config: differ_options.CommandConfig = None,
    declared: differ_options.DeclaredFile = None,
    explained: differ_options.Explained = None,
    profile: differ_options.ProfileName = None,
    steps: differ_options.Steps = 10_000,
    seed: differ_options.Seed = 1,
    program: differ_options.ProgramSeed = None,
    program_steps: differ_options.ProgramSteps = None,
    without: differ_options.Without = "",
    groups: differ_options.World = "classic",
    keep_going: differ_options.KeepGoing = False,
    shrink: differ_options.Shrink = True,
    script: differ_options.ScriptFile = None,
    record: differ_options.RecordFile = None,
    out: differ_options.OutFolder = Path("out"),
    lines: differ_options.LinesCommand = None,
) -> None:
    """Run random programs on the simulator and on Apache Kafka's own coordinator in lockstep.

    Compared are all replies with their order and times, and all appended records. The first
    difference is told as a transcript, made small, and written as a script of JSON lines that
    both sides can run. Needs Java, and Maven the first time.

    With HOST:PORT the programs run on an endpoint, in real time and many side by side. Compared
    are replies and about when they come. What differs is played again more slowly before it counts,
    and leaves a transcript, a script, a test, a diagram and a capture.

    Exit code 1: they differ. Exit code 2: something needed is missing or misused.

    Example: conformance differ --reference kafka-4.4.0 --steps 20000 --seed 7
    """
    from coordinator_sim_conformance.differ.explained import all_explanations
    from coordinator_sim_conformance.differ.loop import PROGRAM_STEPS, Plan
    from coordinator_sim_conformance.differ.references import REFERENCES, reference_named

    is_live = ":" in reference
    _check_options(
        is_live=is_live,
        for_endpoints={"--command-config": command_config, "--declared": declared},
        for_lines={"--lines": lines, "--record": record},
    )
    asked = REFERENCES[_DEFAULT_REFERENCE] if is_live else reference_named(reference)
    plan = Plan(
        reference=asked,
        steps=steps,
        seed=seed,
        program_steps=program_steps or PROGRAM_STEPS,
        without=_left_out(without),
        explanations=all_explanations(explained or ()),
        keeps_going=keep_going,
        world=_world(groups, asked),
        program_seed=program,
    )
    if is_live:
        files = (command_config, declared, script)
        wanted = _wanted(reference, profile, files, out, program_steps, shrinks=shrink)
        agree = compare_live(wanted, plan)
    else:
        agree = _compare_lines(plan, profile, lines, (script, record), out if shrink else None)
    if not agree:
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _wanted(
    bootstrap: str,
    profile: str | None,
    files: tuple[Path | None, Path | None, Path | None],
    out: Path,
    program_requests: int | None,
    *,
    shrinks: bool,
) -> Wanted:
    """What is wanted of an endpoint; the files are its configuration, declaration and script."""
    command_config, declared, script = files
    return Wanted(
        bootstrap=bootstrap,
        command_config=command_config,
        declared=declared,
        profile=profile,
        program_requests=program_requests,
        script=script,
        out=out,
        shrinks=shrinks,
    )


def _world(groups: str, reference: "Reference") -> str:
    """The type of groups that was asked for.

    Raises:
        ConfigError: no programs are drawn for it, or the reference has no such coordinator.
    """
    from coordinator_sim_conformance.differ.programs import WORLDS
    from coordinator_sim_conformance.differ.share_state_programs import SHARE_STATE

    known = (*WORLDS, SHARE_STATE)
    if groups not in known:
        raise ConfigError(f"--groups {groups}: use one of {', '.join(known)}")
    if groups == SHARE_STATE and not reference.has_share_coordinator:
        raise ConfigError(f"--groups {groups} goes with --reference kafka-4.3.1 and later")
    return groups


def _compare_lines(
    plan: "Plan",
    profile: str | None,
    lines: str | None,
    files: tuple[Path | None, Path | None],
    out: Path | None,
) -> bool:
    """Compare with a reference in virtual time; True when there is no difference.

    Args:
        plan: Parameters of the run.
        profile: Our profile; None for the reference's.
        lines: Program to compare instead of the simulator.
        files: Script to run instead of random programs, and where its answers go.
        out: Folder for small failing scripts; None makes none.
    """
    script, record = files
    with ExitStack() as stack:
        ours, theirs = _sides(stack, plan.reference, profile, lines)
        if script is not None:
            return _play(script, record, ours, theirs, plan.reference.name)
        return _compare(plan, ours, theirs, out)


def _check_options(
    *, is_live: bool, for_endpoints: dict[str, Path | None], for_lines: dict[str, object]
) -> None:
    """Refuse options that the reference has no use for.

    Raises:
        ConfigError: one was given.
    """
    for name, value in (for_lines if is_live else for_endpoints).items():
        if value is not None:
            kind = "a reference in virtual time" if is_live else "--reference HOST:PORT"
            raise ConfigError(f"{name} goes with {kind}")


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
    """Run the programs and print the outcome; True for no difference."""
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
    """Run a script on both sides and print the first difference; True for no difference."""
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
    from coordinator_sim_conformance.differ.sides import LinesProcess, NoAnswer
    from coordinator_sim_conformance.differ.story import tell

    def trial(commands: "Sequence[Json]") -> "tuple[int, Difference | None]":
        try:
            exchanges, difference = play(commands, ours, theirs)
        except NoAnswer:
            # With fewer commands Kafka can wait for ever for a commit of its log.
            for side in (ours, theirs):
                if isinstance(side, LinesProcess):
                    side.restart()
            return 0, None
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
