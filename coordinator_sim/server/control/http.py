"""The listener of the control surface: bound first, served once its application is imported."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from coordinator_sim.listening import bound_socket

if TYPE_CHECKING:
    import uvicorn

    from coordinator_sim.server.control.control import Control

_IDLE_S: Final = 120
"""How long a connection may be idle, in seconds.

Longer than clients keep theirs (httpx 5, aiohttp 15, Go 90): a request is lost that is sent while
the server closes its connection.
"""


class ControlServer:
    """One listening socket.

    Args:
        control: The server to control.
        host: Host to bind.
        port: Port to bind; 0 for any free one.
        token: Token that callers must send; empty for none.

    Raises:
        ConfigError: the address cannot be bound, or wants a token.
    """

    def __init__(self, control: "Control", *, host: str, port: int, token: str = "") -> None:
        self._control = control
        self._host = host
        self._token = token
        self._socket = bound_socket(host, port, "--control-port")
        self._server: uvicorn.Server | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """URL of the listener."""
        host, port = self._socket.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def start(self) -> None:
        """Serve from now on.

        Raises:
            ConfigError: the address is not the loopback one, and there is no token.
            MissingDependencyError: the libraries of the extra `serve` are not installed.
        """
        self._server = await asyncio.to_thread(self._made)
        serving = self._server.serve([self._socket])
        self._task = asyncio.get_running_loop().create_task(serving)

    async def stop(self) -> None:
        """Close the listener; streams of events end."""
        self._control.end()
        if self._server is not None and self._task is not None:
            self._server.should_exit = True
            await self._task
        self._socket.close()

    def _made(self) -> "uvicorn.Server":
        """Import slow modules, on another thread, so that the brokers answer meanwhile."""
        from coordinator_sim.errors import needing

        with needing("serve", "the control surface", otherwise="or serve with --no-control"):
            import uvicorn

            from coordinator_sim.server.control.access import Access
            from coordinator_sim.server.control.app import make_app

        class Quiet(uvicorn.Server):
            """Server that leaves signals to the process."""

            @contextmanager
            def capture_signals(self) -> Iterator[None]:
                """Capture no signals."""
                yield

        app = make_app(self._control, Access(self._host, self._token))
        return Quiet(
            uvicorn.Config(
                app,
                log_config=None,
                access_log=False,
                lifespan="off",
                timeout_keep_alive=_IDLE_S,
                ws="none",
                timeout_graceful_shutdown=1,
            )
        )
