"""`run`: play the cases on a target, count what passed, show what did not."""

from collections import Counter
from typing import Annotated

import msgspec
import typer
from rich import box
from rich.console import Console
from rich.table import Table

from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.client_cases.case import CLIENTS, ClientCase
from coordinator_sim_conformance.registry import AnyCase, any_cases, chosen
from coordinator_sim_conformance.requirements import RELEASES, TROGDOR
from coordinator_sim_conformance.running import (
    Ending,
    Verdict,
    play_cases,
    play_client_case,
    play_trogdor_case,
)
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.choice import SIMULATOR, opened
from coordinator_sim_conformance.trogdor_cases.case import TrogdorCase

_OWN = {CLIENTS: "ports of the clients", TROGDOR.lower(): "Trogdor in virtual time"}
_BAD = (Verdict.FAILED, Verdict.UNKNOWN)


def run(
    target: Annotated[
        str,
        typer.Option(
            help="simulator, serve (over TCP), or Kafka itself: oracle:kafka-4.4.0 and so on.",
            metavar="TARGET",
        ),
    ] = SIMULATOR,
    profile: Annotated[
        list[str] | None,
        typer.Option(help="Kafka to be; may be given again; all for every one.", metavar="PROFILE"),
    ] = None,
    area: Annotated[
        list[str] | None, typer.Option(help="Only this area; may be given again.", metavar="AREA")
    ] = None,
    wanted: Annotated[
        list[str] | None,
        typer.Option("-k", help="Only ids with this text; may be given again.", metavar="TEXT"),
    ] = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON array of endings instead of counts.")
    ] = False,
) -> None:
    """Play the cases on a target; exit 1 when one fails.

    A case that fails prints its transcript. A case that wants more than the target offers is
    skipped. The cases of clients are about the simulator's own consumers and workers, those of
    Trogdor about its Trogdor in virtual time: they are played once, whatever the profiles, and on
    no other target.

    Example: conformance run --target simulator --profile 4.4 --area JOIN
    """
    cases = chosen(any_cases(), areas=area or (), wanted=wanted or ())
    if not cases:
        raise ConfigError("no case has such an id; `conformance list` prints them")
    with opened(target, _say) as (subject, own_profile):
        profiles = _profiles(profile, own_profile)
        of_brokers = [case for case in cases if isinstance(case, Case)]
        endings = list(play_cases(of_brokers, subject, profiles))
    endings += _played_on_ports(cases, target)
    if json:
        typer.echo(msgspec.json.format(msgspec.json.encode(endings)).decode())
    else:
        _print_failures(endings)
        _print_counts(endings, target)
    if any(ending.verdict in _BAD for ending in endings):
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _played_on_ports(cases: list[AnyCase], target: str) -> list[Ending]:
    """How the chosen cases of clients and of Trogdor ended.

    Raises:
        ConfigError: there are no others, and the target has no clients nor a Trogdor of ours.
    """
    if target == SIMULATOR:
        endings = [play_client_case(case) for case in cases if isinstance(case, ClientCase)]
        return endings + [
            play_trogdor_case(each) for each in cases if isinstance(each, TrogdorCase)
        ]
    if not any(isinstance(case, Case) for case in cases):
        raise ConfigError(
            f"only cases of clients or of Trogdor are chosen: play them with --target {SIMULATOR}"
        )
    return []


def _say(message: str) -> None:
    typer.echo(message, err=True)


def _profiles(asked: list[str] | None, own: str | None) -> list[str]:
    """The profiles to be, without doubles; a target that is one Kafka is that one."""
    if not asked:
        return [own or profile_named("java-4.x").name]
    names = list(RELEASES) if "all" in asked else [profile_named(name).name for name in asked]
    if own is not None and names != [own]:
        raise ConfigError(f"this target is Kafka {own}: leave --profile out, or say {own}")
    return list(dict.fromkeys(names))


def _print_failures(endings: list[Ending]) -> None:
    for ending in endings:
        if ending.verdict in _BAD:
            typer.echo(f"{ending.verdict.value} {ending.case_id} as {ending.profile}")
            for line in ending.transcript:
                typer.echo(f"  {line}")
            typer.echo(f"  {ending.reason}\n")


def _print_counts(endings: list[Ending], target: str) -> None:
    table = Table("area", "profile", *(verdict.value for verdict in Verdict), box=box.SIMPLE_HEAD)
    counts = Counter((each.profile, each.area, each.verdict) for each in endings)
    for profile, area in dict.fromkeys((each.profile, each.area) for each in endings):
        found = [counts[profile, area, verdict] for verdict in Verdict]
        table.add_row(area, profile, *(str(count) if count else "" for count in found))
    Console().print(table)
    for profile in dict.fromkeys(each.profile for each in endings):
        totals = Counter(each.verdict for each in endings if each.profile == profile)
        said = ", ".join(f"{totals[verdict]} {verdict.value}" for verdict in Verdict)
        whose = _OWN.get(profile, f"{target} as {profile}")
        typer.echo(f"{whose}: {said}")
