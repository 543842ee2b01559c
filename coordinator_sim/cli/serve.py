"""`serve`: a Kafka cluster around the group coordinator, for real clients."""

import gc
import logging
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from coordinator_sim.cli import serve_options
from coordinator_sim.cli.bug_option import ServeBugOption, bugs_of_command
from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.own_assignors import (
    AssignorFromOption,
    AssignorProcessOption,
    register_given,
)
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from coordinator_sim.broker.security.plain import PlainUsers
    from coordinator_sim.broker.settings import ClusterSettings
    from coordinator_sim.server.kafka_server import Listen
    from coordinator_sim.server.serving import ControlOptions, Ready, ServeOptions

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
    host: serve_options.HostOption = "127.0.0.1",
    port: serve_options.PortOption = 9092,
    brokers: serve_options.BrokersOption = 1,
    profile: serve_options.ProfileOption = RELEASES[-1],
    topics: serve_options.TopicsOption = "",
    seed: serve_options.SeedOption = 0,
    clock: serve_options.ClockOption = "wall",
    listeners: serve_options.ListenersOption = "",
    advertised_listeners: serve_options.AdvertisedOption = "",
    config: serve_options.ConfigOption = None,
    set_: serve_options.SetOption = None,
    feature: serve_options.FeatureOption = None,
    user: serve_options.UserOption = None,
    users_file: serve_options.UsersFileOption = None,
    tls_cert: serve_options.TlsOption = None,
    tls_key: serve_options.TlsOption = None,
    tls_ca: serve_options.TlsOption = None,
    control_host: serve_options.ControlHostOption = "127.0.0.1",
    control_port: serve_options.ControlPortOption = 0,
    control_token: serve_options.ControlTokenOption = "",
    no_control: serve_options.NoControlOption = False,
    ready_file: serve_options.ReadyOption = None,
    trace: serve_options.TraceOption = None,
    pcap: serve_options.PcapOption = None,
    overwrite: serve_options.OverwriteOption = False,
    log_dir: serve_options.LogDirOption = None,
    fsync: serve_options.FsyncOption = "never",
    accept_loss: serve_options.AcceptLossOption = False,
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
        if partitions > serve_options.MAX_PARTITIONS:
            raise ConfigError(
                f"--topics {part!r}: at most {serve_options.MAX_PARTITIONS} partitions"
            )
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
