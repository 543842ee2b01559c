"""The messages of SaslHandshake.

Written by tools/write_messages.py from schemas/SaslHandshake.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class SaslHandshakeRequest(Struct, frozen=True, gc=False):
    """SaslHandshakeRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.SASL_HANDSHAKE
    mechanism: str = ""


class SaslHandshakeResponse(Struct, frozen=True, gc=False):
    """SaslHandshakeResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.SASL_HANDSHAKE
    error_code: ErrorCode = ErrorCode.NONE
    mechanisms: tuple[str, ...] = ()
