"""The messages of SaslAuthenticate.

Written by tools/write_messages.py from schemas/SaslAuthenticate.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class SaslAuthenticateRequest(Struct, frozen=True, gc=False):
    """SaslAuthenticateRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.SASL_AUTHENTICATE
    auth_bytes: bytes = b""


class SaslAuthenticateResponse(Struct, frozen=True, gc=False):
    """SaslAuthenticateResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.SASL_AUTHENTICATE
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    auth_bytes: bytes = b""
    session_lifetime_ms: int = 0
