"""The messages of CreateAcls.

Written by tools/write_messages.py from schemas/CreateAcls.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class AclCreation(Struct, frozen=True, gc=False):
    """An entry of `creations`."""

    resource_type: int = 0
    resource_name: str = ""
    resource_pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class CreateAclsRequest(Struct, frozen=True, gc=False):
    """CreateAclsRequest of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.CREATE_ACLS
    creations: tuple[AclCreation, ...] = ()


class AclCreationResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


class CreateAclsResponse(Struct, frozen=True, gc=False):
    """CreateAclsResponse of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.CREATE_ACLS
    throttle_time_ms: int = 0
    results: tuple[AclCreationResult, ...] = ()
