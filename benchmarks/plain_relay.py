"""A TCP relay that looks at nothing: what passing bytes on costs in Python, on the proxy's loop."""

import asyncio
import sys
from typing import cast

from coordinator_sim_conformance.proxy.serving import loop_factory


class Side(asyncio.Protocol):
    """One socket of a pair; what comes here leaves on the other."""

    def __init__(self, other: "Side | None", upstream: tuple[str, int]) -> None:
        self.other = other
        self.upstream = upstream
        self.early: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Connect to the server behind, if this is a client's socket."""
        self.transport = cast("asyncio.Transport", transport)
        if self.other is None:
            self.task = asyncio.ensure_future(self.joined())
        else:
            self.other.other = self

    async def joined(self) -> None:
        """Connect, and send what came before."""
        loop = asyncio.get_running_loop()
        await loop.create_connection(lambda: Side(self, self.upstream), *self.upstream)
        for data in self.early:
            self.data_received(data)

    def data_received(self, data: bytes) -> None:
        """Pass on what came."""
        if self.other is None:
            self.early.append(data)
        else:
            self.other.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Close the other socket."""
        del exc
        if self.other is not None:
            self.other.transport.close()


async def relay(upstream: tuple[str, int]) -> None:
    """Relay from a free port until the process is ended; its address is the first line printed."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Side(None, upstream), "127.0.0.1", 0)
    print(f"127.0.0.1:{server.sockets[0].getsockname()[1]}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    host, _, port = sys.argv[1].rpartition(":")
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(relay((host, int(port))))
