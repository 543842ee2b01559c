"""`member`: one of our members in a real group, until it is told to leave."""

import asyncio
import signal
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.arguments import parse_settings
from coordinator_sim.cli.narrator import Narrator
from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from coordinator_sim.live.consumer import ConsumerOptions
    from coordinator_sim.live.driver import PortLoop
    from coordinator_sim.live.records import RecordReader
    from coordinator_sim.protocol.messages import Node

MAX_PORT = 65_535


def member(
    bootstrap: Annotated[
        str, typer.Option(help="Brokers to begin with: HOST:PORT, several with commas.")
    ],
    group: Annotated[str, typer.Option(help="The group to join.")],
    topics: Annotated[
        str, typer.Option(help="Topics to subscribe to, several with commas.", metavar="A,B")
    ],
    assignor: Annotated[
        str,
        typer.Option(help="Assignors in order of preference.", metavar="NAME,..."),
    ] = "range",
    instance_id: Annotated[
        str, typer.Option(help="A group.instance.id, for static membership.")
    ] = "",
    client_id: Annotated[
        str, typer.Option(help="What brokers call this member.")
    ] = "coordinator-sim-member",
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A client's setting, such as session.timeout.ms=10000; may be repeated.",
        ),
    ] = None,
    protocol_log: Annotated[
        Path | None,
        typer.Option(help="Write every frame to this file, one JSON object a line."),
    ] = None,
    for_: Annotated[
        float, typer.Option("--for", help="Leave after so many seconds.", metavar="SECONDS")
    ] = 0,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object a line instead of sentences.")
    ] = False,
) -> None:
    """Run one member of ours in a group on any broker, beside members of any other client.

    It leaves in order on Ctrl-C or SIGTERM, or after --for seconds. Records are read with
    confluent-kafka where it is installed; positions are committed by the member itself.
    Exit code 1 when the group threw it out for good.

    Example: coordinator-sim member --bootstrap localhost:9092 --group g --topics orders
    """
    from coordinator_sim.live.consumer import ConsumerOptions

    settings = parse_settings(set_ or [])
    if instance_id:
        settings["group.instance.id"] = instance_id
    options = ConsumerOptions(
        bootstrap=parse_bootstrap(bootstrap),
        group_id=group,
        topics=tuple(name.strip() for name in topics.split(",") if name.strip()),
        client_id=client_id,
        assignors=tuple(name.strip() for name in assignor.split(",")),
        settings=settings,
    )
    if not options.topics:
        raise ConfigError("--topics names no topic: write them with commas")
    with ExitStack() as files:
        log = None
        if protocol_log is not None:
            log = files.enter_context(protocol_log.open("w", encoding="utf-8"))
        narrator = Narrator(as_json=json, protocol_log=log)
        fatal_error = asyncio.run(_consume(options, narrator, for_))
    if fatal_error is not None:
        raise typer.Exit(1)


async def _consume(options: "ConsumerOptions", narrator: Narrator, for_s: float) -> str | None:
    """Be a consumer until told to stop; the exception that ended it, if one did."""
    from coordinator_sim.live.consumer import ConsumerMember

    running = ConsumerMember(options, _reader(options, narrator), narrator)
    await live_until_told(running, for_s)
    return running.fatal_error


async def live_until_told(running: "PortLoop", for_s: float) -> None:
    """Run a member until a signal, or until its time is up."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, running.stop)
    if for_s > 0:
        loop.call_later(for_s, running.stop)
    await running.run()


def _reader(options: "ConsumerOptions", narrator: Narrator) -> "RecordReader | None":
    """Where records come from; None, said aloud, where the library for them is absent."""
    from coordinator_sim.live.story import MemberEvent

    try:
        from coordinator_sim.live.records import RecordReader
    except ImportError:
        text = "membership only: no records are read without coordinator-sim[clients]"
        narrator.event(MemberEvent(kind="MEMBERSHIP_ONLY", text=text, details={}))
        return None
    bootstrap = ",".join(f"{node.host}:{node.port}" for node in options.bootstrap)
    return RecordReader(bootstrap, group_id=options.group_id, client_id=options.client_id)


def parse_bootstrap(text: str) -> "tuple[Node, ...]":
    """Brokers to begin with; Java numbers them from -1 downwards until their ids are known.

    Raises:
        ConfigError: no address, or one without a sound port.
    """
    from coordinator_sim.protocol.messages import Node

    nodes = []
    for number, address in enumerate(filter(None, (each.strip() for each in text.split(","))), 1):
        host, colon, port = address.rpartition(":")
        if not colon or not host or not port.isdecimal() or not 0 < int(port) <= MAX_PORT:
            raise ConfigError(f"--bootstrap {address!r}: wants HOST:PORT, as localhost:9092")
        nodes.append(Node(node_id=-number, host=host.strip("[]"), port=int(port)))
    if not nodes:
        raise ConfigError("--bootstrap is empty: wants HOST:PORT, as localhost:9092")
    return tuple(nodes)
