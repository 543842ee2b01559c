"""`ctl link`: the network between the clients and the brokers of a running `serve`."""

from typing import Annotated, Any, Final

import typer

from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.ctl_calls import call, table

link_app = CommandLine(help="The network between clients and brokers: cut, slow, reset.")

_DIRECTIONS: Final = {
    "both": ("to_broker", "to_clients"),
    "to-broker": ("to_broker",),
    "to-clients": ("to_clients",),
}

BrokerOption = Annotated[int | None, typer.Option("--broker", help="By default all.", min=0)]
ListenerOption = Annotated[
    str | None, typer.Option("--listener", help="By default all.", metavar="NAME")
]


@link_app.command("list")
def link_list(context: typer.Context) -> None:
    """List every link: a broker on a listener, and what passes."""
    _table(call(context, "GET", "/v1/links"))


@link_app.command("set")
def link_set(
    context: typer.Context,
    broker: BrokerOption = None,
    listener: ListenerOption = None,
    cut: Annotated[bool, typer.Option("--cut", help="Let nothing pass.")] = False,
    latency: Annotated[int, typer.Option(help="Milliseconds.", min=0)] = 0,
    rate: Annotated[int, typer.Option(help="kbit/s of a connection; 0: no bound.", min=0)] = 0,
    direction: Annotated[
        str, typer.Option(help="What is slow.", metavar="both|to-broker|to-clients")
    ] = "both",
) -> None:
    """Cut links, or make them slow; without any option they are whole again.

    Connections stay open, and nothing is lost: what a cut holds back arrives when it heals.

    Example: coordinator-sim ctl link set --listener CLIENT_A --latency 200
    """
    ways = _DIRECTIONS.get(direction)
    if ways is None:
        raise typer.BadParameter(f"{direction!r}: use {', '.join(_DIRECTIONS)}")
    body: dict[str, Any] = {"broker": broker, "listener": listener, "cut": cut}
    body |= {way: {"latency_ms": latency, "kbit_per_s": rate} for way in ways}
    _table(call(context, "PUT", "/v1/links", body))


@link_app.command("reset")
def link_reset(
    context: typer.Context, broker: BrokerOption = None, listener: ListenerOption = None
) -> None:
    """Reset the open connections of links, as a firewall or a failing host does."""
    body = {"broker": broker, "listener": listener}
    found = call(context, "POST", "/v1/links/reset", body)
    typer.echo(f"{found['connections']} connections reset")


def _table(links: list[dict[str, Any]]) -> None:
    rows = [
        {
            **each,
            "address": f"{each['host']}:{each['port']}",
            "cut": "yes" if each["cut"] else "no",
            "to_broker": _way(each["to_broker"]),
            "to_clients": _way(each["to_clients"]),
        }
        for each in links
    ]
    names = ("broker_id", "listener", "address", "connections", "cut", "to_broker", "to_clients")
    table(rows, names)


def _way(way: dict[str, int]) -> str:
    said = []
    if way["latency_ms"]:
        said.append(f"{way['latency_ms']} ms")
    if way["kbit_per_s"]:
        said.append(f"{way['kbit_per_s']} kbit/s")
    return ", ".join(said) or "-"
