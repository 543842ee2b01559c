"""Runs the proxy until it is told to end."""

import asyncio
import signal
from collections.abc import Callable

from coordinator_sim_conformance.proxy.addresses import Address
from coordinator_sim_conformance.proxy.exchanges import Flag
from coordinator_sim_conformance.proxy.judging import Judge
from coordinator_sim_conformance.proxy.relay import Relay, Stand
from coordinator_sim_conformance.proxy.reporting import Reporter


async def serve(
    stand: Stand,
    *,
    judge: Judge,
    reporter: Reporter,
    ready: Callable[[Address], None],
    fail_fast: bool,
) -> None:
    """Carry and judge until Ctrl-C, SIGTERM, or the first flag where that is wanted.

    Args:
        stand: Where the proxy stands.
        judge: Judges what passes.
        reporter: Tells what was found.
        ready: Called once clients can connect.
        fail_fast: Whether to end with the first flag.

    Raises:
        ConfigError: the address cannot be had.
    """
    ended = asyncio.Event()

    def tell(flag: Flag) -> None:
        reporter.tell(flag)
        if fail_fast:
            ended.set()

    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, ended.set)
    relay = Relay(stand, judge, tell=tell, remark=reporter.remark)
    ready(relay.start())
    await ended.wait()
    relay.close()


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes the loop: uvloop's if it is installed."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop
