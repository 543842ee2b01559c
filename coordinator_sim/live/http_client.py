"""Calls from one worker to another's REST API."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Final

import httpx

from coordinator_sim.connect.effects import CallHttp, HttpResponse

REFUSED: Final = "java.net.ConnectException: Connection refused"
"""Error of Java's client for a worker that does not listen."""

_CONNECT_TIMEOUT_S: Final = 15.0
"""Jetty's default; Java sets no timeout for the answer itself."""

Answered = Callable[[int, object, str | None], None]
"""Takes the token of a call, and its HttpResponse or an error."""


class RestClient:
    """The HTTP client of one worker.

    Args:
        answered: Called on the loop with every outcome.
        tls: Of calls to https; None for the trusted certificates of this machine.
    """

    def __init__(self, answered: Answered, tls: ssl.SSLContext | None = None) -> None:
        self._answered = answered
        self._client = httpx.AsyncClient(
            timeout=httpx.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            trust_env=False,
            verify=True if tls is None else tls,
        )
        self._calls: dict[int, asyncio.Task[None]] = {}

    def call(self, effect: CallHttp) -> None:
        """Send a request; `answered` gets its token."""
        task = asyncio.get_running_loop().create_task(self._call(effect))
        self._calls[effect.token] = task
        task.add_done_callback(lambda _: self._calls.pop(effect.token, None))

    async def close(self) -> None:
        """Abort the calls in progress."""
        for task in tuple(self._calls.values()):
            task.cancel()
        await self._client.aclose()

    async def _call(self, effect: CallHttp) -> None:
        request = effect.request
        try:
            answer = await self._client.request(
                request.method,
                effect.url.rstrip("/") + request.target,
                headers=request.headers,
                content=request.body,
            )
        except httpx.ConnectError:
            self._answered(effect.token, None, REFUSED)
            return
        except httpx.HTTPError as error:
            self._answered(effect.token, None, f"java.io.IOException: {error}")
            return
        response = HttpResponse(
            status=answer.status_code,
            headers={name.lower(): value for name, value in answer.headers.items()},
            body=answer.content,
        )
        self._answered(effect.token, response, None)
