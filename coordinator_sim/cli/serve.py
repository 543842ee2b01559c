"""`serve`: a Kafka cluster around the group coordinator, for real clients."""

import gc
import logging
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from coordinator_sim.cli.bug_option import ServeBugOption, bugs_of_command
from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.own_assignors import (
    AssignorFromOption,
    AssignorProcessOption,
    register_given,
)
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.releases import RELEASES
from coordinator_sim.listening import TOKEN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from coordinator_sim.broker.security.plain import PlainUsers
    from coordinator_sim.broker.settings import ClusterSettings
    from coordinator_sim.server.kafka_server import Listen
    from coordinator_sim.server.serving import ControlOptions, Ready, ServeOptions


MAX_PORT: Final = 65_535
MAX_BROKERS: Final = 1_000
MAX_PARTITIONS: Final = 100_000
"""Of one topic; the control surface has the same bound."""

HostOption = Annotated[str, typer.Option(help="Address to bind.")]
PortOption = Annotated[
    int,
    typer.Option(min=0, max=MAX_PORT, help="Of broker 1, the others follow; 0: free ones."),
]
BrokersOption = Annotated[int, typer.Option(min=1, max=MAX_BROKERS, help="How many.")]
ProfileOption = Annotated[str, typer.Option(help="The Kafka to behave like.")]
TopicsOption = Annotated[
    str, typer.Option(help="Topics to begin with; may be repeated.", metavar="NAME:PARTITIONS,...")
]
SeedOption = Annotated[int, typer.Option(help="Of member ids and whatever else is drawn.")]
ControlHostOption = Annotated[str, typer.Option(help="Address of the control surface.")]
ControlPortOption = Annotated[
    int, typer.Option(min=0, max=MAX_PORT, help="Its port; 0: a free one.")
]
NoControlOption = Annotated[
    bool, typer.Option("--no-control", help="No HTTP: no control, page or metrics.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A broker's setting, as group.initial.rebalance.delay.ms=0; may be repeated.",
    ),
]
FeatureOption = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        metavar="NAME=LEVEL",
        help="A feature's level in a new cluster, as group.version=0; may be repeated.",
    ),
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="A broker's server.properties.", metavar="FILE")
]
ListenersOption = Annotated[
    str,
    typer.Option(help="Instead of --host and --port: of broker 1.", metavar="NAME://HOST:PORT,..."),
]
AdvertisedOption = Annotated[
    str,
    typer.Option(help="What clients are told instead.", metavar="NAME://HOST:PORT,..."),
]
ClockOption = Annotated[
    str,
    typer.Option(help="Of groups: wall, 'scaled F', virtual or 'virtual auto'.", metavar="CLOCK"),
]
ReadyOption = Annotated[
    Path | None,
    typer.Option(help="Write the line of JSON here too, when all answers.", metavar="FILE"),
]
TraceOption = Annotated[
    Path | None,
    typer.Option(help="Record what is served, for explain, report and replay.", metavar="DIR"),
]
PcapOption = Annotated[
    Path | None, typer.Option(help="Write all bytes as a capture for Wireshark.", metavar="FILE")
]
OverwriteOption = Annotated[
    bool, typer.Option("--overwrite", help="Replace the trace of --trace, the file of --pcap.")
]
UserOption = Annotated[
    list[str] | None,
    typer.Option(
        "--user",
        metavar="NAME:PASSWORD",
        help="Who may log in, by PLAIN or SCRAM; may be repeated.",
    ),
]
UsersFileOption = Annotated[
    Path | None, typer.Option(help="The same, one a line of a file.", metavar="FILE")
]
TlsOption = Annotated[Path | None, typer.Option(help="Of listeners with TLS: PEM.", metavar="FILE")]
LogDirOption = Annotated[
    Path | None,
    typer.Option(
        "--log-dir", help="Keep topics, records and groups here, as a broker.", metavar="DIR"
    ),
]
FsyncOption = Annotated[
    str,
    typer.Option(
        help="always: answer when the medium has it; never: the system has.",
        metavar="always|never",
    ),
]
AcceptLossOption = Annotated[
    bool,
    typer.Option(
        "--accept-loss", help="Serve a damaged --log-dir without what it has lost; default: refuse."
    ),
]
ControlTokenOption = Annotated[
    str,
    typer.Option(
        envvar=TOKEN_VARIABLE,
        help="What callers of the control surface must have; needed off the loopback address.",
    ),
]


_LOG: Final = logging.getLogger(__name__)
_SHOWN: Final = 100
"""Unknown settings that a warning names, and characters of each."""
_IDLE_SHOWN: Final = 5
"""Settings without effect that a warning names."""
_ID_SETTINGS: Final = ("node.id", "broker.id")
_LARGEST_FIRST_ID: Final = 1_000_000
_GARBAGE_THRESHOLDS: Final = (10_000, 10, 10)
"""Python looks for cycles 14 times less often so: next to nothing here is part of one."""


def serve(
    host: HostOption = "127.0.0.1",
    port: PortOption = 9092,
    brokers: BrokersOption = 1,
    profile: ProfileOption = RELEASES[-1],
    topics: TopicsOption = "",
    seed: SeedOption = 0,
    clock: ClockOption = "wall",
    listeners: ListenersOption = "",
    advertised_listeners: AdvertisedOption = "",
    config: ConfigOption = None,
    set_: SetOption = None,
    feature: FeatureOption = None,
    user: UserOption = None,
    users_file: UsersFileOption = None,
    tls_cert: TlsOption = None,
    tls_key: TlsOption = None,
    tls_ca: TlsOption = None,
    control_host: ControlHostOption = "127.0.0.1",
    control_port: ControlPortOption = 0,
    control_token: ControlTokenOption = "",
    no_control: NoControlOption = False,
    ready_file: ReadyOption = None,
    trace: TraceOption = None,
    pcap: PcapOption = None,
    overwrite: OverwriteOption = False,
    log_dir: LogDirOption = None,
    fsync: FsyncOption = "never",
    accept_loss: AcceptLossOption = False,
    bug: ServeBugOption = None,
    assignor_from: AssignorFromOption = None,
    assignor_process: AssignorProcessOption = None,
) -> None:
    """Serve a Kafka cluster with the simulated group coordinator, until Ctrl-C or SIGTERM.

    When every listener answers, one line of JSON on stdout says where: bootstrap, control, pid.

    Example: coordinator-sim serve --port 9092 --topics orders:6
    """
    from coordinator_sim.cli.serve_security import users_of, with_mechanisms, with_tls
    from coordinator_sim.server.serving import ServeOptions

    bugs = _prepared(bug or (), assignor_from, assignor_process)
    settings = _properties(config, set_ or [], profile)
    properties = with_tls(settings, cert=tls_cert, key=tls_key, ca=tls_ca)
    broker_ids = _broker_ids(properties, brokers)
    listens = _listens(
        broker_ids,
        (host, port),
        listeners or properties.pop("listeners", ""),
        advertised_listeners or properties.pop("advertised.listeners", ""),
    )
    properties = with_mechanisms(properties, [listen.name for listen in listens])
    users, levels = users_of(user or [], users_file), _features(feature or [])
    options = ServeOptions(
        cluster=_cluster(profile, broker_ids, seed, properties, users=users, features=levels),
        listens=listens,
        topics=_parse_topics(topics),
        clock=clock,
        control=None if no_control else _control(control_host, control_port, control_token),
        trace=trace,
        pcap=pcap,
        overwrite=overwrite,
        log_dir=log_dir,
        sync_always=_syncs(fsync, log_dir),
        accept_loss=_accepts_loss(accept_loss, log_dir),
        bugs=bugs,
    )
    _run(options, ready_file)


def _broker_ids(properties: dict[str, str], count: int) -> tuple[int, ...]:
    """Consecutive broker ids, from `node.id` or `broker.id`; from 1 if neither is set."""
    from coordinator_sim.kafka.java_numbers import java_int

    given = {name: properties.pop(name) for name in _ID_SETTINGS if name in properties}
    for name, text in given.items():
        first = java_int(text)
        if first is None or not 0 <= first <= _LARGEST_FIRST_ID:
            raise ConfigError(
                f"{name}={text}: give the first broker's id, from 0 to {_LARGEST_FIRST_ID}"
            )
    if len(set(given.values())) > 1:
        both = " and ".join(f"{name}={text}" for name, text in given.items())
        raise ConfigError(f"{both} differ: give one of them")
    first = int(next(iter(given.values()), "1"))
    return tuple(range(first, first + count))


def _prepared(
    bugs: "Sequence[str]", functions: list[str] | None, processes: list[str] | None
) -> tuple[str, ...]:
    """Set the log up, and make own assignors known; the bugs that this server has on purpose."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(levelname)s %(message)s")
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    register_given(functions, processes, None)
    return _warned_bugs(bugs)


def _run(options: "ServeOptions", ready_file: Path | None) -> None:
    from coordinator_sim.server.serving import run

    if ready_file is not None:
        _check_replaceable(ready_file)
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    told: list[Path] = []
    try:
        run(options, lambda line: told.extend(_tell(line, ready_file)))
    finally:
        for file in told:
            file.unlink(missing_ok=True)


def _warned_bugs(ids: "Sequence[str]") -> tuple[str, ...]:
    """The ids of the bugs that this server has on purpose, each told in the log."""
    bugs = bugs_of_command("serve", ids)
    for bug in bugs:
        from coordinator_sim_conformance.museum.bugs import warning_of

        _LOG.warning("%s", warning_of(bug))
    return tuple(bug.exhibit_id for bug in bugs)


def _check_replaceable(ready_file: Path) -> None:
    """Refuse a device, a pipe or a directory: a ready file is replaced, and deleted at the end."""
    if ready_file.exists() and not ready_file.is_file():
        raise ConfigError(
            f"--ready-file {ready_file} is no regular file: name one that serve may delete again"
        )


def _syncs(text: str, log_dir: Path | None) -> bool:
    if text not in {"always", "never"}:
        raise ConfigError(f"--fsync {text!r}: write always or never")
    if text == "always" and log_dir is None:
        raise ConfigError("--fsync always: nothing is on a disk without --log-dir DIR")
    return text == "always"


def _accepts_loss(accept_loss: bool, log_dir: Path | None) -> bool:
    if accept_loss and log_dir is None:
        raise ConfigError("--accept-loss: nothing can be lost without --log-dir DIR")
    return accept_loss


def _cluster(
    profile: str,
    broker_ids: tuple[int, ...],
    seed: int,
    properties: dict[str, str],
    *,
    users: "PlainUsers",
    features: dict[str, int],
) -> "ClusterSettings":
    from coordinator_sim.broker.settings import ClusterSettings
    from coordinator_sim.kafka.profiles import profile_named
    from coordinator_sim.server.properties import with_properties

    base = ClusterSettings(
        profile=profile_named(profile),
        broker_ids=broker_ids,
        seed=seed,
        users=users,
        features=features,
    )
    return with_properties(base, properties)


def _features(pairs: list[str]) -> dict[str, int]:
    from coordinator_sim.kafka.java_numbers import java_int

    levels: dict[str, int] = {}
    for pair in pairs:
        name, _, text = pair.partition("=")
        level = java_int(text)
        if not name or level is None or name in levels:
            raise ConfigError(f"--feature {pair!r}: write NAME=LEVEL once, such as group.version=0")
        levels[name] = level
    return levels


def _listens(
    broker_ids: tuple[int, ...], address: tuple[str, int], listeners: str, advertised: str
) -> "tuple[Listen, ...]":
    from coordinator_sim.server.properties import listeners_of

    host, port = address
    shown = f"[{host}]" if ":" in host else host
    return listeners_of(broker_ids, listeners or f"PLAINTEXT://{shown}:{port}", advertised)


def _control(host: str, port: int, token: str) -> "ControlOptions":
    from coordinator_sim.listening import HttpGuard
    from coordinator_sim.server.serving import ControlOptions

    HttpGuard(host, token, server="the control surface")  # Refused before a broker starts.
    return ControlOptions(host=host, port=port, token=token)


def _properties(config: Path | None, pairs: list[str], profile: str) -> dict[str, str]:
    """Merge broker properties: those of the file, overridden by those of the command line."""
    from coordinator_sim.cli.arguments import parse_settings

    found = {} if config is None else _known_in(config, profile)
    found |= parse_settings(pairs)
    _warn_without_effect(profile, found)
    return found


def _warn_without_effect(profile: str, names: "Iterable[str]") -> None:
    """Name in one line the settings that a client sees and nothing else here reads."""
    from coordinator_sim.broker.configs.effective import without_effect
    from coordinator_sim.kafka.profiles import profile_named

    idle = without_effect(profile_named(profile), names)
    if idle:
        shown = ", ".join(name[:_SHOWN] for name in idle[:_IDLE_SHOWN])
        more = f" and {len(idle) - _IDLE_SHOWN} more" if len(idle) > _IDLE_SHOWN else ""
        have = "has" if len(idle) == 1 else "have"
        _LOG.warning(
            "%s%s %s no effect: serve only shows such settings to clients", shown, more, have
        )


def _known_in(config: Path, profile: str) -> dict[str, str]:
    """The settings of a file; one line warns of the names that there are not, as Kafka does."""
    from coordinator_sim.broker.configs.configs import unknown_settings
    from coordinator_sim.cli.serve_security import text_of
    from coordinator_sim.connect.settings.worker_config import parse_properties
    from coordinator_sim.kafka.profiles import profile_named

    found = parse_properties(text_of(config))
    unknown = unknown_settings(profile_named(profile), found)
    if unknown:
        shown = [
            repr(name[:_SHOWN]) if nearest is None else f"{name!r} (nearest: {nearest})"
            for name, nearest in islice(unknown.items(), _SHOWN)
        ]
        more = [f"and {len(unknown) - _SHOWN} more"] if len(unknown) > _SHOWN else []
        names = ", ".join(shown + more)
        _LOG.warning("%s: settings that Kafka's brokers have not are ignored: %s", config, names)
    return {name: value for name, value in found.items() if name not in unknown}


def _parse_topics(text: str) -> dict[str, int]:
    from coordinator_sim.kafka.java_numbers import java_int
    from coordinator_sim.kafka.topic_names import check_topic_name

    topics: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, count = part.partition(":")
        partitions = java_int(count, bits=64)
        if not name or partitions is None or partitions < 1:
            raise ConfigError(f"--topics {part!r}: write NAME:PARTITIONS, such as orders:6")
        if partitions > MAX_PARTITIONS:
            raise ConfigError(f"--topics {part!r}: at most {MAX_PARTITIONS} partitions")
        try:
            check_topic_name(name)
        except ConfigError as error:
            raise ConfigError(f"--topics {part!r}: {error}") from None
        if name in topics:
            raise ConfigError(f"--topics has {name} twice: name it once")
        topics[name] = partitions
    return topics


def _tell(ready: "Ready", file: Path | None) -> "Iterator[Path]":
    """Say where the server is; yields the ready file once it is there."""
    import msgspec

    line = msgspec.json.encode(ready)
    if file is not None:
        partial = file.with_name(f"{file.name}.partial")
        try:
            partial.write_bytes(line + b"\n")
            partial.replace(file)
        except OSError as error:
            raise ConfigError(f"--ready-file {file}: {error.strerror}") from None
        yield file
    typer.echo(line.decode())
    sys.stdout.flush()


app = CommandLine(
    name="coordinator-sim",
)
"""The command line with this command alone, which is quicker to import than that with all."""


@app.callback()
def only() -> None:
    """Serve the coordinator to real Kafka clients."""


app.command()(serve)
