"""The messages of DescribeUserScramCredentials.

Written by tools/write_messages.py from schemas/DescribeUserScramCredentials.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class UserName(Struct, frozen=True, gc=False):
    """An entry of `users`."""

    name: str = ""


class DescribeUserScramCredentialsRequest(Struct, frozen=True, gc=False):
    """DescribeUserScramCredentialsRequest of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    users: tuple[UserName, ...] | None = ()


class CredentialInfo(Struct, frozen=True, gc=False):
    """An entry of `credentialInfos`."""

    mechanism: int = 0
    iterations: int = 0


class DescribeUserScramCredentialsResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    user: str = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    credential_infos: tuple[CredentialInfo, ...] = ()


class DescribeUserScramCredentialsResponse(Struct, frozen=True, gc=False):
    """DescribeUserScramCredentialsResponse of versions 0 to 0."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    results: tuple[DescribeUserScramCredentialsResult, ...] = ()
