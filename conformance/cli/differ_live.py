"""`conformance differ --reference HOST:PORT`: random programs on the simulator and an endpoint."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.cli.progress import progress_bar
from coordinator_sim.errors import DataError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.targets.choice import endpoint_at

if TYPE_CHECKING:
    from coordinator_sim_conformance.differ.live_loop import Judged, LiveSession
    from coordinator_sim_conformance.differ.loop import Outcome, Plan


class Wanted(Struct, frozen=True, kw_only=True):
    """What a user asks for, as the options of `differ` say it.

    Args:
        bootstrap: Addresses of the endpoint.
        command_config: How to get in.
        declared: What cannot be asked.
        profile: Our profile; None takes the nearest one.
        program_requests: Requests of one program; None for the default.
        script: Script to play instead of random programs.
        out: Folder for what a failing program leaves.
        shrinks: Whether a failing program is made small.
    """

    bootstrap: str
    command_config: Path | None
    declared: Path | None
    profile: str | None
    program_requests: int | None
    script: Path | None
    out: Path
    shrinks: bool


def compare_live(wanted: Wanted, plan: "Plan") -> bool:
    """Compare with an endpoint and print the outcome; True for no difference.

    Args:
        wanted: The endpoint, and what to do there.
        plan: Parameters of the run; its reference is replaced by the endpoint.

    Raises:
        ConfigError: an address or a profile is unknown.
        DataError: no broker answers there.
    """
    profile = None if wanted.profile is None else profile_named(wanted.profile).name
    endpoint = endpoint_at(
        wanted.bootstrap, wanted.command_config, wanted.declared, option="--reference"
    )
    from coordinator_sim_conformance.differ.live_loop import LiveSession
    from coordinator_sim_conformance.differ.live_reference import live_reference
    from coordinator_sim_conformance.differ.timed_programs import PROGRAM_REQUESTS

    chosen = profile or endpoint.profile()
    reference = live_reference(endpoint, chosen)
    plan = replace(
        plan,
        reference=reference,
        program_steps=wanted.program_requests or PROGRAM_REQUESTS,
    )
    typer.echo(f"{endpoint.name}: compared with the simulator as Kafka {chosen}", err=True)
    session = LiveSession(endpoint, reference, plan.explanations)
    try:
        if wanted.script is not None:
            return _play(session, wanted.script, reference.name)
        return _compare(wanted, plan, session)
    finally:
        left = endpoint.clean_up()
        if left:
            typer.echo(left, err=True)


def _play(session: "LiveSession", script: Path, reference: str) -> bool:
    """Play a script and print the first difference; True for no difference."""
    from coordinator_sim_conformance.differ.replay import replayed
    from coordinator_sim_conformance.differ.scripts import read_script
    from coordinator_sim_conformance.differ.story import tell

    judged = replayed(session, read_script(script))
    if judged.difference is None:
        typer.echo(f"{script}: {judged.requests} requests, no difference from {reference}")
        return True
    for line in tell(judged.exchanges, judged.difference, reference):
        typer.echo(line)
    return False


def _compare(wanted: Wanted, plan: "Plan", session: "LiveSession") -> bool:
    """Run programs on the endpoint and print the outcome; True for no difference."""
    from coordinator_sim_conformance.differ.live_loop import run_live

    with progress_bar(f"comparing with {plan.reference.name}", plan.steps) as progress:
        result = run_live(plan, session, progress)
    outcome = result.outcome
    if outcome.failure is not None and result.failed is not None:
        failed = _smallest(session, result.failed) if wanted.shrinks else result.failed
        _keep(wanted.out, plan, outcome, failed, session)
    _tell(plan, outcome)
    return outcome.failure is None and not outcome.gone


def _smallest(session: "LiveSession", failed: "Judged") -> "Judged":
    """Return a play of a smaller program that differs alike; the given one if that fails."""
    from coordinator_sim_conformance.differ.live_comparison import TimedScript
    from coordinator_sim_conformance.differ.live_shrinking import shrunk
    from coordinator_sim_conformance.targets.target import ConnectionEnded

    if failed.difference is None:
        return failed
    typer.echo("making the program small", err=True)
    try:
        commands = shrunk(session, failed.exchanges, failed.difference.signature)
        again = session.judged(TimedScript.of(commands))
    except (ConnectionEnded, DataError) as gone:
        typer.echo(f"a shorter program ended the endpoint: {gone}", err=True)
        return failed
    if again.difference is None or again.difference.signature != failed.difference.signature:
        return failed
    return again


def _keep(
    out: Path, plan: "Plan", outcome: "Outcome", failed: "Judged", session: "LiveSession"
) -> None:
    """Tell a failing program, and write down what it leaves."""
    from coordinator_sim_conformance.differ.gifts import Counterexample, write_gifts
    from coordinator_sim_conformance.differ.shrinking import flat, units_of
    from coordinator_sim_conformance.differ.story import tell

    if failed.difference is None or outcome.failure is None:
        return
    found = Counterexample(
        reference=plan.reference.name,
        bootstrap=session.endpoint.bootstrap[0],
        profile=plan.reference.profile,
        seed=outcome.failure.seed,
        commands=tuple(flat(units_of(failed.exchanges))),
        exchanges=failed.exchanges,
        difference=failed.difference,
        frames=failed.frames,
    )
    for line in tell(found.exchanges, found.difference, found.reference):
        typer.echo(line)
    paths = write_gifts(out, found)
    typer.echo(f"written: {', '.join(map(str, paths))}")
    typer.echo(
        f"again: conformance differ --reference {found.reference} --script {out / 'script.jsonl'}"
    )


def _tell(plan: "Plan", outcome: "Outcome") -> None:
    """Tell the counts of a run."""
    if plan.keeps_going:
        for signature, seeds in sorted(outcome.kinds.items(), key=lambda kind: -len(kind[1])):
            typer.echo(f"{len(seeds):5} {signature} (seed {seeds[0]})")
    for name, count in outcome.explained.items():
        typer.echo(f"explained {name}: {count}")
    if outcome.unplayed:
        typer.echo(f"this host was too slow for {len(outcome.unplayed)} programs")
    if outcome.gone:
        typer.echo(f"the endpoint is gone: {outcome.gone}")
    failure = outcome.failure
    verdict = (
        "no unexplained difference" if failure is None else f"they differ, seed {failure.seed}"
    )
    again = f", {outcome.again} played again" if outcome.again else ""
    typer.echo(
        f"{plan.reference.name} as {plan.reference.profile}, seed {plan.seed}: {outcome.steps} "
        f"operations in {outcome.programs} programs{again}, {outcome.steps_per_second:.0f} a "
        f"second: {verdict}"
    )
