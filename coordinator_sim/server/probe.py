"""Check that a listener answers ApiVersions, every client's first request."""

import asyncio
import ssl
import struct
from contextlib import suppress
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey

LIMIT_S: Final = 5.0
_WILDCARDS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - names of wildcards
_REQUEST: Final = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, -1)


async def answers_api_versions(host: str, port: int, *, uses_tls: bool = False) -> None:
    """Return when the listener there has answered an ApiVersions request.

    With TLS a handshake is enough, as the listener may demand a client certificate.

    Raises:
        ConfigError: there is no answer within 5 seconds.
    """
    try:
        async with asyncio.timeout(LIMIT_S):
            address = (_WILDCARDS.get(host, host), port)
            if uses_tls:
                await _shakes_hands(*address)
                return
            reader, writer = await asyncio.open_connection(*address)
            writer.write(_REQUEST)
            length = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(length)
            writer.close()
            await writer.wait_closed()
    except (OSError, EOFError, TimeoutError) as error:
        raise ConfigError(f"the listener at {host}:{port} does not answer: {error}") from None


async def _shakes_hands(host: str, port: int) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with suppress(ssl.SSLError):
        _, writer = await asyncio.open_connection(host, port, ssl=context)
        writer.close()
        await writer.wait_closed()
