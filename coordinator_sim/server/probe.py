"""Whether a listener answers: the first thing that any client asks of it."""

import asyncio
import struct
from typing import Final

from coordinator_sim.errors import ConfigError
from coordinator_sim.protocol.api_keys import ApiKey

LIMIT_S: Final = 5.0
_WILDCARDS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - names of wildcards
_REQUEST: Final = struct.pack(">ihhih", 10, ApiKey.API_VERSIONS, 0, 1, -1)


async def answers_api_versions(host: str, port: int) -> None:
    """Return when the listener there has answered an ApiVersions request.

    Raises:
        ConfigError: it does not within 5 seconds.
    """
    try:
        async with asyncio.timeout(LIMIT_S):
            reader, writer = await asyncio.open_connection(_WILDCARDS.get(host, host), port)
            writer.write(_REQUEST)
            length = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(length)
            writer.close()
            await writer.wait_closed()
    except (OSError, EOFError, TimeoutError) as error:
        raise ConfigError(f"the listener at {host}:{port} does not answer: {error}") from None
