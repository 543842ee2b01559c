"""`member`: one of our members in a real group, until it is told to leave."""

import asyncio
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.arguments import parse_settings
from coordinator_sim.cli.narrator import Narrator
from coordinator_sim.errors import ConfigError, MissingDependencyError, needing

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator_sim.live.consumer import ConsumerOptions
    from coordinator_sim.live.driver import PortLoop
    from coordinator_sim.live.records import RecordReader
    from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

    MakeMember = Callable[[Narrator], PortLoop]

MAX_PORT = 65_535

BootstrapOption = Annotated[
    str, typer.Option(help="Brokers to begin with.", metavar="HOST:PORT,...")
]
ConnectOption = Annotated[
    bool, typer.Option("--connect", help="Be a Connect worker instead of a consumer.")
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="With --connect: the worker's properties file.", metavar="FILE")
]
ManifestsOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="With --connect: a folder of connector manifests; may be repeated.", metavar="DIR"
    ),
]
TopicsOption = Annotated[str, typer.Option(help="Topics to subscribe to.", metavar="NAME,...")]
PatternOption = Annotated[
    str,
    typer.Option(help="Instead of topics: a regular expression for names.", metavar="REGEX"),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A client's or worker's setting, such as session.timeout.ms=10000; may be repeated.",
    ),
]
ForOption = Annotated[
    float,
    typer.Option(
        "--for", min=0, help="Leave after so many seconds; 0: when told.", metavar="SECONDS"
    ),
]
LogOption = Annotated[
    Path | None, typer.Option(help="Write every frame to this file, one JSON object a line.")
]


def member(
    bootstrap: BootstrapOption,
    group: Annotated[
        str, typer.Option(help="The group to join; a worker's may stand in its file.")
    ] = "",
    topics: TopicsOption = "",
    pattern: PatternOption = "",
    assignor: Annotated[
        str, typer.Option(help="Assignors in order of preference.", metavar="NAME,...")
    ] = "range",
    instance_id: Annotated[
        str, typer.Option(help="A group.instance.id, for static membership.")
    ] = "",
    client_id: Annotated[
        str, typer.Option(help="What brokers call a consumer.")
    ] = "coordinator-sim-member",
    connect: ConnectOption = False,
    config: ConfigOption = None,
    manifests: ManifestsOption = None,
    set_: SetOption = None,
    protocol_log: LogOption = None,
    for_: ForOption = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line instead of sentences.")
    ] = False,
) -> None:
    """Run one member of ours in a group on any broker, beside members of any other client.

    A consumer, or with --connect a Connect worker. It leaves in order on Ctrl-C or SIGTERM, or
    after --for seconds. Exit code 1 when the group threw it out for good, or the worker died.

    Example: coordinator-sim member --bootstrap localhost:9092 --group g --topics orders
    """
    settings = parse_settings(set_ or [])
    nodes = parse_bootstrap(bootstrap)
    if connect:
        if topics or pattern or instance_id:
            raise ConfigError(
                "--topics, --pattern and --instance-id are a consumer's: leave them out"
            )
        properties = {**worker_properties(config, nodes), **settings}
        if group:
            properties["group.id"] = group
        make = connect_member(nodes, properties, manifests or [])
    else:
        if config is not None or manifests:
            raise ConfigError("--config and --manifests are a worker's: add --connect")
        if instance_id:
            settings["group.instance.id"] = instance_id
        names = tuple(name.strip() for name in assignor.split(","))
        make = consumer_member(
            nodes,
            _named(group, "--group"),
            topics,
            pattern=pattern,
            client_id=client_id,
            assignors=names,
            settings=settings,
        )
    with ExitStack() as files:
        log = None
        if protocol_log is not None:
            log = files.enter_context(protocol_log.open("w", encoding="utf-8"))
        narrator = Narrator(as_json=json, protocol_log=log)
        fatal_error = asyncio.run(live_until_told(make, narrator, for_))
    if fatal_error is not None:
        raise typer.Exit(1)


def consumer_member(
    bootstrap: "tuple[Node, ...]",
    group: str,
    topics: str,
    *,
    pattern: str,
    client_id: str,
    assignors: tuple[str, ...],
    settings: dict[str, str],
) -> "MakeMember":
    """What makes the consumer that the command line asks for.

    Raises:
        ConfigError: no topic is named, or topics and a pattern.
    """
    from coordinator_sim.live.consumer import ConsumerMember, ConsumerOptions

    options = ConsumerOptions(
        bootstrap=bootstrap,
        group_id=group,
        topics=tuple(name.strip() for name in topics.split(",") if name.strip()),
        pattern=pattern,
        client_id=client_id,
        assignors=assignors,
        settings=settings,
    )
    if bool(options.topics) == bool(pattern):
        raise ConfigError("name topics with commas (--topics), or a --pattern, and not both")
    return lambda narrator: ConsumerMember(options, _reader(options, narrator), narrator)


def connect_member(
    bootstrap: "tuple[Node, ...]", properties: dict[str, str], manifests: list[Path]
) -> "MakeMember":
    """What makes the Connect worker that the command line asks for.

    Raises:
        ConfigError: a folder of manifests is none.
        MissingDependencyError: the libraries of the extra `live` are not installed.
    """
    with needing("live", "a Connect worker"):
        from coordinator_sim.live.worker import ConnectMember, WorkerOptions
    from coordinator_sim.live.plugin_path import scan_plugins

    for folder in manifests:
        if not folder.is_dir():
            raise ConfigError(f"--manifests {folder}: no folder; name one with *.toml or *.json")
    listed = [each.strip() for each in properties.get("plugin.path", "").split(",") if each.strip()]
    scan = scan_plugins([*listed, *map(str, manifests)])
    options = WorkerOptions(
        bootstrap=bootstrap, properties=properties, plugins=scan.plugins, problems=scan.problems
    )
    return lambda narrator: ConnectMember(options, narrator)


def worker_properties(file: Path | None, bootstrap: "tuple[Node, ...]") -> dict[str, str]:
    """The properties of a worker's file, with the brokers of the command line.

    Raises:
        ConfigError: no file is named.
        OSError: it cannot be read.
    """
    from coordinator_sim.connect.settings.worker_config import parse_properties

    if file is None:
        raise ConfigError("--connect wants --config FILE, the worker's properties")
    brokers = ",".join(f"{node.host}:{node.port}" for node in bootstrap)
    text = file.read_text(encoding="utf-8")
    return {**parse_properties(text), "bootstrap.servers": brokers}


def _named(value: str, option: str) -> str:
    if not value:
        raise ConfigError(f"{option} is missing: name the group to join")
    return value


async def live_until_told(make: "MakeMember", narrator: Narrator, for_s: float) -> str | None:
    """Run a member until a signal, or until its time is up; what ended it before, if it did."""
    loop = asyncio.get_running_loop()
    running = make(narrator)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.stop)
    if for_s > 0:
        loop.call_later(for_s, running.stop)
    await running.run()
    return running.fatal_error


def _reader(options: "ConsumerOptions", narrator: Narrator) -> "RecordReader | None":
    """The reader of records; None, with a MEMBERSHIP_ONLY event, if its library is missing."""
    from coordinator_sim.live.story import MemberEvent

    try:
        with needing("clients", "reading records"):
            from coordinator_sim.live.records import RecordReader
    except MissingDependencyError as missing:
        text = f"membership only: {missing}"
        narrator.event(MemberEvent(kind="MEMBERSHIP_ONLY", text=text, details={}))
        return None
    bootstrap = ",".join(f"{node.host}:{node.port}" for node in options.bootstrap)
    return RecordReader(bootstrap, group_id=options.group_id, client_id=options.client_id)


def parse_bootstrap(text: str) -> "tuple[Node, ...]":
    """Brokers to begin with; Java numbers them from -1 downwards until their ids are known.

    Raises:
        ConfigError: no address, or one without a sound port.
    """
    from coordinator_sim.kafka.java_numbers import java_int
    from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

    nodes = []
    for number, address in enumerate(filter(None, (each.strip() for each in text.split(","))), 1):
        host, colon, port = address.rpartition(":")
        port_number = java_int(port)
        if not colon or not host or port_number is None or not 0 < port_number <= MAX_PORT:
            raise ConfigError(f"--bootstrap {address!r}: wants HOST:PORT, as localhost:9092")
        nodes.append(Node(node_id=-number, host=host.strip("[]"), port=port_number))
    if not nodes:
        raise ConfigError("--bootstrap is empty: wants HOST:PORT, as localhost:9092")
    return tuple(nodes)
