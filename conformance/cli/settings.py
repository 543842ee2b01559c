"""`settings`: the settings of brokers on which no case is skipped for want of one."""

from collections.abc import Mapping
from typing import Annotated, Final

import typer

from coordinator_sim.broker.configs.setting_types import settings_of
from coordinator_sim.errors import ConfigError, needing
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.running import cases_for
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.asked import (
    ASSIGNORS,
    DELAY,
    INTERVAL,
    LIMITS,
    RETENTION_CHECK,
    SHARE_INTERVAL,
    SHORTEST_SESSION,
    SHORTEST_WANTED_MS,
    STREAMS_DELAY,
    STREAMS_INTERVAL,
    VERIFIES,
    misfit,
)

_EACH: Final = {DELAY: "3000"}
"""The longest initial delay that a case asks for: the others are played more slowly."""
_FIRST: Final = _EACH | {
    SHORTEST_SESSION: str(SHORTEST_WANTED_MS),
    VERIFIES: "false",
    INTERVAL: "0",
    SHARE_INTERVAL: "0",
    STREAMS_INTERVAL: "0",
    STREAMS_DELAY: "0",
}
"""What most cases can use, though few ask for it: the first broker has it."""
_WHY: Final = {
    f"{SHORTEST_SESSION}={SHORTEST_WANTED_MS}": "short sessions: cases take seconds, not minutes",
    f"{VERIFIES}=false": "commits in transactions of producers that the suite makes up",
    f"{INTERVAL}=0": "targets at once: with the default, cases wait 1 s before each heartbeat",
    f"{DELAY}={_EACH[DELAY]}": "the default; cases that want less are played more slowly",
    f"{RETENTION_CHECK}=1000": "looks often enough to see offsets expire",
}
"""Line -> the comment above it."""


def brokers_for(profile: str) -> list[dict[str, str]]:
    """Return settings of brokers, as few as there can be without a choice, most cases first.

    Two values of one setting need two brokers, and a broker with small groups is of no use to other
    cases. What no broker can have, such as an assignor that fails, is left out.

    Args:
        profile: Kafka that they are.
    """
    known = settings_of(profile, "broker")
    brokers = [{name: value for name, value in _FIRST.items() if name in known}]
    asking = [asked for case in cases_for(all_cases(), profile) if (asked := _asked(case, profile))]
    for asked in sorted(asking, key=lambda each: -asking.count(each)):
        is_small = not LIMITS.isdisjoint(asked)
        for index in range(1 if is_small else 0, len(brokers)):
            has = brokers[index]
            if misfit({name: asked[name] for name in asked if name in has}, has) is None:
                brokers[index] = asked | has
                break
        else:
            brokers.append(asked | _EACH)
    return brokers


def _asked(case: Case, profile: str) -> dict[str, str]:
    """Return what a case asks for, if it can be played on a broker of somebody's.

    Raises:
        MissingDependencyError: the codec of the wire is not installed.
    """
    with needing("conformance", "the list of settings"):
        from coordinator_sim_conformance.targets.foreign import asked_by, commands_of, waits_s
        from coordinator_sim_conformance.targets.wall_time import LONGEST_WAIT_S

    asked = asked_by(case, profile)
    is_too_long = waits_s(case, profile) > LONGEST_WAIT_S
    return {} if is_too_long or ASSIGNORS in asked or commands_of(case, profile) else asked


def settings(
    release: Annotated[
        str, typer.Option(help="Kafka that the brokers are.", metavar="PROFILE")
    ] = "java-4.x",
    broker: Annotated[
        int,
        typer.Option(
            help="Which of the brokers; the first unlocks most cases, and no single one all.",
            metavar="N",
            min=1,
        ),
    ] = 1,
) -> None:
    """Print a server.properties with which `run --bootstrap` skips no case for want of a setting.

    Some cases want another value than others: those of the first file name the further ones, each
    for a broker of its own.

    Example: conformance settings --release 4.4 > server.properties
    """
    name = profile_named(release).name
    brokers = brokers_for(name)
    if broker > len(brokers):
        raise ConfigError(f"--broker {broker}: Kafka {name} takes brokers 1 to {len(brokers)}")
    typer.echo(properties_of(brokers[broker - 1]), nl=False)
    if broker < len(brokers):
        typer.echo(f"# cases that want other values: --broker {broker + 1} of {len(brokers)}")


def properties_of(broker: Mapping[str, str]) -> str:
    """Return settings as a Java properties file, with comments."""
    lines = []
    for name, value in sorted(broker.items()):
        line = f"{name}={value}"
        lines += [*([f"# {_WHY[line]}\n"] if line in _WHY else []), f"{line}\n"]
    return "".join(lines)
