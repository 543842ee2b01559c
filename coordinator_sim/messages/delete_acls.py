"""The messages of DeleteAcls.

Written by tools/write_messages.py from schemas/DeleteAcls.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DeleteAclsFilter(Struct, frozen=True, gc=False):
    """An entry of `filters`."""

    resource_type_filter: int = 0
    resource_name_filter: str | None = ""
    pattern_type_filter: int = 3
    principal_filter: str | None = ""
    host_filter: str | None = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsRequest(Struct, frozen=True, gc=False):
    """DeleteAclsRequest of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_ACLS
    filters: tuple[DeleteAclsFilter, ...] = ()


class DeleteAclsMatchingAcl(Struct, frozen=True, gc=False):
    """An entry of `matchingAcls`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    pattern_type: int = 3
    principal: str = ""
    host: str = ""
    operation: int = 0
    permission_type: int = 0


class DeleteAclsFilterResult(Struct, frozen=True, gc=False):
    """An entry of `filterResults`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    matching_acls: tuple[DeleteAclsMatchingAcl, ...] = ()


class DeleteAclsResponse(Struct, frozen=True, gc=False):
    """DeleteAclsResponse of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_ACLS
    throttle_time_ms: int = 0
    filter_results: tuple[DeleteAclsFilterResult, ...] = ()
