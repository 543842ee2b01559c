"""The messages of AlterUserScramCredentials.

Written by tools/write_messages.py from schemas/AlterUserScramCredentials.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ScramCredentialDeletion(Struct, frozen=True, gc=False):
    """An entry of `deletions`."""

    name: str = ""
    mechanism: int = 0


class ScramCredentialUpsertion(Struct, frozen=True, gc=False):
    """An entry of `upsertions`."""

    name: str = ""
    mechanism: int = 0
    iterations: int = 0
    salt: bytes = b""
    salted_password: bytes = b""


class AlterUserScramCredentialsRequest(Struct, frozen=True, gc=False):
    """AlterUserScramCredentialsRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    deletions: tuple[ScramCredentialDeletion, ...] = ()
    upsertions: tuple[ScramCredentialUpsertion, ...] = ()


class AlterUserScramCredentialsResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    user: str = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


class AlterUserScramCredentialsResponse(Struct, frozen=True, gc=False):
    """AlterUserScramCredentialsResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_USER_SCRAM_CREDENTIALS
    throttle_time_ms: int = 0
    results: tuple[AlterUserScramCredentialsResult, ...] = ()
