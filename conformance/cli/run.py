"""`run`: play the cases on a target, count what passed, show what did not."""

import signal
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from threading import current_thread, main_thread
from types import FrameType
from typing import Annotated

import typer
from msgspec.structs import replace
from rich import box
from rich.table import Table

from coordinator_sim import __version__
from coordinator_sim.cli.console import PrintableConsole
from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.cli.outputs import (
    AsJson,
    BaselineFile,
    Bootstrap,
    CommandConfig,
    DeclaredFile,
    HasNoBaseline,
    IsStrict,
    JunitFile,
    NewBaselineFile,
    Outputs,
    Processes,
    ResultFile,
    TapFile,
    Target,
    TargetName,
    WantedCase,
    WantedText,
)
from coordinator_sim_conformance.client_cases.case import CLIENTS, ClientCase
from coordinator_sim_conformance.registry import AnyCase, any_cases, chosen
from coordinator_sim_conformance.requirements import RELEASES, TROGDOR
from coordinator_sim_conformance.running import (
    Ending,
    play_client_case,
    play_trogdor_case,
)
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.choice import (
    SIMULATOR,
    Subject,
    known_gaps_of,
    opened,
    opened_endpoint,
)
from coordinator_sim_conformance.trogdor_cases.case import TrogdorCase
from coordinator_sim_conformance.verdicts.baseline import Gaps, key_of, read_baseline, with_gap
from coordinator_sim_conformance.verdicts.results import (
    RunResult,
    unlock_lines,
    unlocks_of,
    with_command,
)
from coordinator_sim_conformance.verdicts.standing import ALWAYS_SHOWN, EXCUSED, RED, Standing
from coordinator_sim_conformance.verdicts.told import details, summary

_KILLED = 128
"""What a shell adds to the number of the signal that ended a command."""
_AUTO = "auto"
"""Profile of an endpoint that is asked which one it is nearest to."""
_OWN = {CLIENTS: "ports of the clients", TROGDOR.lower(): "Trogdor in virtual time"}


def run(
    target: Target = SIMULATOR,
    bootstrap: Bootstrap = None,
    command_config: CommandConfig = None,
    declared: DeclaredFile = None,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="Kafka to be; may be given again; all for every one.", metavar="PROFILE"),
    ] = None,
    area: Annotated[
        list[str] | None, typer.Option(help="Only this area; may be given again.", metavar="AREA")
    ] = None,
    wanted: WantedText = None,
    case: WantedCase = None,
    name: TargetName = None,
    processes: Processes = None,
    strict: IsStrict = False,
    baseline: BaselineFile = None,
    no_baseline: HasNoBaseline = False,
    write_baseline: NewBaselineFile = None,
    json: AsJson = False,
    result: ResultFile = None,
    junit: JunitFile = None,
    tap: TapFile = None,
) -> None:
    """Play the cases on a target; exit 1 when one fails that no baseline excuses.

    A case that fails prints its transcript. A case that wants more than the target offers is
    skipped. kfake and librdkafka-mock have a built-in baseline of known gaps: exit 0 says that
    nothing got worse, with --no-baseline that nothing is wrong.

    The cases of clients are about the simulator's own consumers and workers, those of Trogdor about
    its Trogdor in virtual time: they are played once, whatever the profiles, and on no other
    target.

    Example: conformance run --target simulator --profile 4.4 --area JOIN
    """
    outputs = Outputs(
        as_json=json, result=result, junit=junit, tap=tap, new_baseline=write_baseline
    )
    outputs.check()
    if baseline is not None and no_baseline:
        raise ConfigError("--baseline and --no-baseline exclude each other: leave one out")
    has_own = baseline is None and not no_baseline and bootstrap is None
    baseline = known_gaps_of(target) if has_own else baseline
    gaps: Gaps = {} if baseline is None else read_baseline(baseline, any_cases())
    cases = chosen(any_cases(), areas=area or (), wanted=wanted or (), ids=case or ())
    if not cases:
        raise ConfigError("no case has such an id; `conformance list` prints them")
    opening = _opened(target, bootstrap, command_config, declared, processes)
    own = _played_on_ports(cases, target, is_ours=bootstrap is None)
    played = played_on(opening, cases, profile, gaps, own)
    facts = replace(played.target, name=name or played.target.name)
    played = replace(played, target=facts, is_strict=strict)
    outputs.write(played, gaps)
    if not outputs.takes_stdout:
        print_failures(played, gaps, baseline)
        print_counts(played)
        for line in unlock_lines(played):
            typer.echo(line)
        if baseline is not None:
            _print_baseline(played, "the built-in baseline" if has_own else str(baseline))
    if _is_red(played):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def played_on(
    opening: AbstractContextManager[Subject],
    cases: Iterable[AnyCase],
    profiles: list[str] | None,
    gaps: Gaps,
    before: Iterable[Ending] = (),
) -> RunResult:
    """Play the cases of brokers on a target; return the run.

    Args:
        opening: Opens the target.
        cases: Cases of any kind.
        profiles: Kafkas to be, as `--profile` names them; None for the target's own.
        gaps: Known gaps.
        before: Endings of cases that need no target, which follow the others in the run.
    """
    began = datetime.now(UTC)
    with _terminable(), opening as subject:
        of_brokers = [case for case in cases if isinstance(case, Case)]
        endings = [
            ending
            for each in _profiles(profiles, subject)
            for ending in _in_order(of_brokers, subject.play(of_brokers, each))
        ]
    return RunResult(
        target=subject.facts,
        suite_version=__version__,
        at=began.strftime("%Y-%m-%dT%H:%M:%SZ"),
        endings=tuple(_judged([*endings, *before], gaps, subject)),
        unlocks=unlocks_of(endings),
    )


@contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends a run in order: it stops what it started, and removes what it made elsewhere."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(_KILLED + number)

    if current_thread() is not main_thread():
        yield  # Signals reach the main thread alone.
        return
    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _opened(
    target: str,
    bootstrap: str | None,
    config: Path | None,
    declared: Path | None,
    processes: int | None,
) -> AbstractContextManager[Subject]:
    """What is judged: the endpoint, if one is given.

    Raises:
        ConfigError: files are given that only an endpoint needs.
    """
    if bootstrap is not None:
        return opened_endpoint(bootstrap, config, declared, say)
    if config is not None or declared is not None:
        raise ConfigError("--command-config and --declared are about an endpoint: add --bootstrap")
    return opened(target, say, processes)


def _in_order(cases: list[Case], endings: Iterable[Ending]) -> list[Ending]:
    """Return the endings in the order of their cases."""
    place = {case.case_id: index for index, case in enumerate(cases)}
    return sorted(endings, key=lambda ending: place[ending.case_id])


def _judged(endings: Iterable[Ending], gaps: Gaps, subject: Subject) -> Iterable[Ending]:
    """Give each ending the reason of its known gap, and the command that repeats it."""
    for ending in endings:
        has_profile = ending.profile not in _OWN
        yield with_gap(with_command(ending, subject.options, has_profile=has_profile), gaps)


def _played_on_ports(cases: list[AnyCase], target: str, *, is_ours: bool) -> list[Ending]:
    """How the chosen cases of clients and of Trogdor ended.

    Raises:
        ConfigError: there are no others, and the target has no clients nor a Trogdor of ours.
    """
    if is_ours and target == SIMULATOR:
        endings = [play_client_case(case) for case in cases if isinstance(case, ClientCase)]
        return endings + [
            play_trogdor_case(each) for each in cases if isinstance(each, TrogdorCase)
        ]
    if not any(isinstance(case, Case) for case in cases):
        raise ConfigError(
            f"only cases of clients or of Trogdor are chosen: play them with --target {SIMULATOR}"
        )
    return []


def say(message: str) -> None:
    """Print how far a run is."""
    typer.echo(message, err=True)


def _profiles(asked: list[str] | None, subject: Subject) -> list[str]:
    """The profiles to be, without doubles; a target that is one Kafka is that one."""
    own = subject.profile
    if not asked or asked == [_AUTO]:
        return [own or subject.nearest or profile_named("java-4.x").name]
    names = list(RELEASES) if "all" in asked else [profile_named(name).name for name in asked]
    if own is not None and names != [own]:
        raise ConfigError(f"this target is Kafka {own}: leave --profile out, or say {own}")
    return list(dict.fromkeys(names))


def print_failures(played: RunResult, gaps: Gaps, baseline: Path | None) -> None:
    """Print each failure whole, known gaps and broken quirks in a line each."""
    for ending in played.endings:
        standing = played.standing(ending)
        name = f"{ending.case_id} as {ending.profile}"
        if standing is Standing.GAP_CLOSED:
            typer.echo(f"{standing.value} {name}: take {key_of(ending, gaps)!r} out of {baseline}")
        elif standing in RED:
            typer.echo(f"{standing.value} {name}: {ending.title} ({ending.level.value})")
            for line in details(ending):
                typer.echo(f"  {line}")
            typer.echo("")
        elif standing in EXCUSED | {Standing.QUIRK}:
            why = ending.known_gap or summary(ending, standing)
            typer.echo(f"{standing.value} {name}: {ending.title}: {why}")


def _is_red(played: RunResult) -> bool:
    return any(played.standing(ending) in RED for ending in played.endings)


def _print_baseline(played: RunResult, baseline: str) -> None:
    """Print what a baseline excused, and what the exit code says therefore."""
    excused = sum(played.standing(each) in EXCUSED for each in played.endings)
    code, verdict = (1, "regressions") if _is_red(played) else (0, "no regression")
    typer.echo(
        f"exit {code}: {verdict} against {baseline}; cases excused by it: {excused}; "
        "--no-baseline counts them as failures"
    )


def print_counts(played: RunResult, subject: str | None = None) -> None:
    """Print how many cases of each area ended how.

    Args:
        played: The run.
        subject: What was judged; None to tell it from the profile.
    """
    found = Counter(played.standing(each) for each in played.endings)
    shown = [each for each in Standing if each in ALWAYS_SHOWN or found[each]]
    table = Table("area", "profile", *(each.value for each in shown), box=box.SIMPLE_HEAD)
    counts = Counter((each.profile, each.area, played.standing(each)) for each in played.endings)
    for profile, area in dict.fromkeys((each.profile, each.area) for each in played.endings):
        row = [counts[profile, area, standing] for standing in shown]
        table.add_row(area, profile, *(str(count) if count else "" for count in row))
    PrintableConsole().print(table)
    for profile in played.profiles:
        totals = Counter(
            played.standing(each) for each in played.endings if each.profile == profile
        )
        said = ", ".join(f"{totals[standing]} {standing.value}" for standing in shown)
        name = subject or _OWN.get(profile, played.name_of(profile))
        typer.echo(f"{name}: {said}")
