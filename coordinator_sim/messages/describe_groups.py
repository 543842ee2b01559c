"""The messages of DescribeGroups.

Written by tools/write_messages.py from schemas/DescribeGroups.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DescribeGroupsRequest(Struct, frozen=True, gc=False):
    """DescribeGroupsRequest of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_GROUPS
    groups: tuple[str, ...] = ()
    include_authorized_operations: bool = False


class DescribedGroupMember(Struct, frozen=True, gc=False):
    """An entry of `members`."""

    member_id: str = ""
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    member_metadata: bytes = b""
    member_assignment: bytes = b""


class DescribedGroup(Struct, frozen=True, gc=False):
    """An entry of `groups`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None
    group_id: str = ""
    group_state: str = ""
    protocol_type: str = ""
    protocol_data: str = ""
    members: tuple[DescribedGroupMember, ...] = ()
    authorized_operations: int = -2_147_483_648


class DescribeGroupsResponse(Struct, frozen=True, gc=False):
    """DescribeGroupsResponse of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_GROUPS
    throttle_time_ms: int = 0
    groups: tuple[DescribedGroup, ...] = ()
