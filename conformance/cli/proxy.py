"""`proxy`: stand before a cluster and flag replies which no correct coordinator could give."""

import asyncio
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from coordinator_sim.cli.ending import EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError, needing
from coordinator_sim_conformance.targets.choice import addresses_of

_ANY = frozenset({"0.0.0.0", "::", "*"})  # noqa: S104 - refused as an address for clients


def proxy(
    listen: Annotated[
        str,
        typer.Option(
            help="Port of the first broker, the others follow; port 0: free ones.",
            metavar="HOST:PORT",
        ),
    ],
    upstream: Annotated[
        str, typer.Option(help="Brokers of the cluster, without TLS.", metavar="HOST:PORT,...")
    ],
    advertised: Annotated[
        str | None,
        typer.Option(help="Host that clients are told; that of --listen.", metavar="HOST"),
    ] = None,
    log: Annotated[
        Path | None,
        typer.Option(help="Write each flag with its frames here, as JSON.", metavar="FILE"),
    ] = None,
    all_clients_pass: Annotated[
        bool,
        typer.Option(
            "--all-clients-pass", help="Nobody else uses the groups: judge offsets fetched too."
        ),
    ] = False,
    fail_fast: Annotated[
        bool, typer.Option("--fail-fast", help="End with the first flag.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print lines of JSON.")] = False,
) -> None:
    """Pass bytes on, and flag replies which no correct coordinator could give; exit 1 if any.

    Clients connect to --listen and stay behind it: addresses of brokers in replies are replaced,
    everything else is passed on unchanged. Ends with Ctrl-C or SIGTERM.

    Example: conformance proxy --listen 127.0.0.1:19092 --upstream localhost:9092 --log flags.jsonl
    """
    with needing("conformance", "the proxy"):
        from coordinator_sim_conformance.proxy.judging import Judge
        from coordinator_sim_conformance.proxy.relay import Stand
        from coordinator_sim_conformance.proxy.reporting import Reporter
        from coordinator_sim_conformance.proxy.serving import loop_factory, serve
    host, port = _listened(listen)
    if advertised is None and host in _ANY:
        raise ConfigError(f"--listen {listen}: say by --advertised HOST what clients are told")
    if log is not None and not log.parent.is_dir():
        raise ConfigError(f"{log}: there is no folder {log.parent}: create it first")
    judge = Judge(all_pass=all_clients_pass)
    places = tuple(addresses_of(upstream, "--upstream"))
    stand = Stand(listen=(host, port), upstream=places, advertised=advertised or host)

    def ready(address: tuple[str, int]) -> None:
        at = f"{address[0]}:{address[1]}"
        told = {"listening": at, "upstream": upstream}
        _say(told if json else f"listening on {at} for {upstream}; Ctrl-C ends")

    with ExitStack() as stack, asyncio.Runner(loop_factory=loop_factory()) as runner:
        sink = None if log is None else stack.enter_context(log.open("wb"))
        reporter = Reporter(_say, _hint, sink, as_json=json)
        runner.run(serve(stand, judge=judge, reporter=reporter, ready=ready, fail_fast=fail_fast))
    counts = judge.counts
    words = f"{counts.exchanges} requests of {counts.groups} groups judged: "
    words += f"{counts.flags} flagged, {counts.repeated} more of the same"
    _say(msgspec.to_builtins(counts) if json else words)
    if counts.flags:
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


def _say(told: str | dict[str, Any]) -> None:
    typer.echo(told if isinstance(told, str) else msgspec.json.encode(told))


def _hint(line: str) -> None:
    typer.echo(line, err=True)


def _listened(text: str) -> tuple[str, int]:
    """Return host and port to listen on; port 0 is any free one.

    Raises:
        ConfigError: it is no address.
    """
    host, _, port = text.rpartition(":")
    if host and port.isdigit() and not int(port):
        return host.strip("[]"), 0
    ((host, number),) = addresses_of(text, "--listen")[:1]
    return host, number
