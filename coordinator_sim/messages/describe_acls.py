"""The messages of DescribeAcls.

Written by tools/write_messages.py from schemas/DescribeAcls.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DescribeAclsRequest(Struct, frozen=True, gc=False):
    """DescribeAclsRequest of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_ACLS
    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


class AclDescription(Struct, frozen=True, gc=False):
    """An entry of `acls`."""

    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DescribeAclsResource(Struct, frozen=True, gc=False):
    """An entry of `resources`."""

    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    acls: tuple[AclDescription, ...] = ()


class DescribeAclsResponse(Struct, frozen=True, gc=False):
    """DescribeAclsResponse of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_ACLS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    resources: tuple[DescribeAclsResource, ...] = ()
