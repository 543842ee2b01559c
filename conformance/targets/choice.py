"""Opens the target of a name."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from coordinator_sim import __version__
from coordinator_sim.connect.settings.worker_config import parse_properties
from coordinator_sim.errors import ConfigError, needing
from coordinator_sim_conformance.differ.building import built
from coordinator_sim_conformance.differ.references import REFERENCES, reference_named
from coordinator_sim_conformance.differ.sides import LinesProcess
from coordinator_sim_conformance.endpoints.named import NAMED, Named
from coordinator_sim_conformance.running import Ending, cases_for, play_cases
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.lines import LinesTarget
from coordinator_sim_conformance.targets.simulator import SimulatorTarget
from coordinator_sim_conformance.targets.target import Capability, Target
from coordinator_sim_conformance.verdicts.results import TargetFacts

if TYPE_CHECKING:
    from coordinator_sim_conformance.targets.endpoint import Endpoint

SIMULATOR: Final = "simulator"
SERVE: Final = "serve"
_ORACLE: Final = "oracle:"
_TELL_EVERY_S: Final = 5.0
_MAX_PORT: Final = 65_535


def known_gaps_of(name: str) -> Path | None:
    """Return the baseline that the suite has for a target of that name; None without one."""
    path = Path(__file__).with_name(f"{name}.toml")
    return path if name in NAMED and path.is_file() else None


class Subject(Struct, frozen=True, kw_only=True):
    """What a run judges.

    Args:
        facts: What is known of it before.
        play: Plays the cases of one profile, and yields how each ended.
        options: Options of `conformance run` that name it again.
        profile: Its only profile; None if it can be any.
        nearest: Profile that it is played as unless one is asked for; None takes the newest.
    """

    facts: TargetFacts
    play: Callable[[list[Case], str], Iterable[Ending]]
    options: tuple[str, ...]
    profile: str | None = None
    nearest: str | None = None


@contextmanager
def opened(
    name: str, say: Callable[[str], None], processes: int | None = None
) -> Iterator[Subject]:
    """Open a target by its name; closed at the end.

    Args:
        name: `simulator`, `serve` (our server, over TCP), the name of an endpoint that the suite
            starts, or `oracle:` and the name of a reference.
        say: Called before long steps.
        processes: How many processes of an endpoint may run side by side; None for no bound.

    Raises:
        ConfigError: the target is unknown.
        MissingDependencyError: the target needs Java, Maven or a library that is not installed.
        DataError: the build of the target failed.
    """
    if name == SIMULATOR:
        yield _subject(name, SimulatorTarget(), __version__)
        return
    if name == SERVE:
        with needing("conformance", "this target"):
            from coordinator_sim_conformance.targets.served import ServedTarget
        with closing(ServedTarget()) as served:
            yield _subject(name, served, __version__)
        return
    if name in NAMED:
        with _opened_fleet(NAMED[name], say, processes) as subject:
            yield subject
        return
    if not name.startswith(_ORACLE):
        known = ", ".join([SIMULATOR, SERVE, *NAMED, *(_ORACLE + each for each in REFERENCES)])
        raise ConfigError(
            f"unknown target {name!r}: use one of {known}, or --bootstrap HOST:PORT for an endpoint"
        )
    reference = reference_named(name.removeprefix(_ORACLE))
    command, folder = built(reference, say)
    with LinesProcess(command, folder) as process:
        target = LinesTarget(
            name,
            process,
            profile=reference.profile,
            producer_generation=reference.producer_generation,
        )
        yield _subject(name, target, reference.kafka_version, reference.profile)


@contextmanager
def _opened_fleet(
    named: Named, say: Callable[[str], None], processes: int | None
) -> Iterator[Subject]:
    """Open an endpoint that the suite starts; its processes end with each profile."""
    with needing("conformance", "this target"):
        from coordinator_sim_conformance.endpoints.playing import fleet_of
    with fleet_of(named, say, processes) as fleet:
        yield Subject(
            facts=TargetFacts(
                name=named.name,
                version=named.version,
                facts={
                    each.name: ", ".join(f"{key}={value}" for key, value in each.has.items())
                    for each in named.variants
                },
            ),
            play=lambda cases, profile: _with_progress(
                fleet.play(playing := cases_for(cases, profile), profile), len(playing), say
            ),
            options=("--target", named.name),
            nearest=named.profile,
        )


def _subject(name: str, target: Target, version: str, profile: str | None = None) -> Subject:
    """Return a target whose time is moved by hand: its cases are played one after the other."""
    offered = "; ".join(each.value for each in Capability if target.offers(each))
    return Subject(
        facts=TargetFacts(name=name, version=version, facts={"offers": offered}),
        play=lambda cases, as_profile: play_cases(cases, target, [as_profile]),
        options=("--target", name),
        profile=profile,
    )


@contextmanager
def opened_endpoint(
    bootstrap: str, config: Path | None, declared: Path | None, say: Callable[[str], None]
) -> Iterator[Subject]:
    """Open a running endpoint; what this run made there is removed at the end.

    Args:
        bootstrap: Addresses, `HOST:PORT` with commas between.
        config: Properties file of a Java client: how to get in.
        declared: TOML file with what cannot be asked.
        say: Told what was found out, how far the run is, and what could not be removed.

    Raises:
        ConfigError: an address or a file is not readable, or asks for what is not known here.
        MissingDependencyError: the codec or the login is not installed.
        DataError: nobody answers there, or not as Kafka does.
    """
    endpoint = endpoint_at(bootstrap, config, declared)
    with needing("conformance", "this target"):
        from coordinator_sim_conformance.targets.foreign import play_on
    nearest = endpoint.profile()
    say(f"{endpoint.name}: nearest to Kafka {nearest} by the versions that it offers")
    options = ["--bootstrap", bootstrap]
    for option, path in (("--command-config", config), ("--declared", declared)):
        options += [] if path is None else [option, str(path)]
    try:
        yield Subject(
            facts=TargetFacts(name=endpoint.name, facts=endpoint.facts()),
            play=lambda cases, profile: _with_progress(
                play_on(endpoint, playing := cases_for(cases, profile), profile), len(playing), say
            ),
            options=tuple(options),
            nearest=nearest,
        )
    finally:
        left = endpoint.clean_up()
        if left:
            say(left)


def endpoint_at(
    bootstrap: str, config: Path | None, declared: Path | None, *, option: str = "--bootstrap"
) -> "Endpoint":
    """Return a running endpoint; its `clean_up` removes what was made there.

    Args:
        bootstrap: Addresses, `HOST:PORT` with commas between.
        config: Properties file of a Java client: how to get in.
        declared: TOML file with what cannot be asked.
        option: Option that gives the addresses, for messages.

    Raises:
        ConfigError: an address or a file is not readable, or asks for what is not known here.
        MissingDependencyError: the codec or the login is not installed.
        DataError: nobody answers there, or not as Kafka does.
    """
    with needing("conformance", "this target"):
        from coordinator_sim_conformance.targets.endpoint import Endpoint
        from coordinator_sim_conformance.targets.target import Declared, read_declared
        from coordinator_sim_conformance.wire.security import security_of
    settings = {} if config is None else parse_properties(config.read_text(encoding="utf-8"))
    known = Declared() if declared is None else read_declared(declared)
    return Endpoint(addresses_of(bootstrap, option), security_of(settings), known)


def _with_progress(
    endings: Iterator[Ending], cases: int, say: Callable[[str], None]
) -> Iterator[Ending]:
    """Tell every few seconds how many cases have ended."""
    told_s = time.monotonic()
    for count, ending in enumerate(endings, 1):
        if time.monotonic() - told_s > _TELL_EVERY_S:
            told_s = time.monotonic()
            say(f"{count} of {cases} cases ended")
        yield ending


def addresses_of(bootstrap: str, option: str = "--bootstrap") -> list[tuple[str, int]]:
    """Return the addresses of `HOST:PORT[,...]`; `option` is what messages call it.

    Raises:
        ConfigError: one has no port of 1 to 65535.
    """
    found = []
    for each in bootstrap.split(","):
        host, colon, port = each.strip().rpartition(":")
        if not colon or not host or not port.isdigit() or not 0 < int(port) <= _MAX_PORT:
            raise ConfigError(f"{option} {each.strip()!r}: wants HOST:PORT, a port of 1 to 65535")
        found.append((host.strip("[]"), int(port)))
    return found
