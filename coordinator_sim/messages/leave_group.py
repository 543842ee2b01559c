"""The messages of LeaveGroup.

Written by tools/write_messages.py from schemas/LeaveGroup.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class MemberIdentity(Struct, frozen=True, gc=False):
    """An entry of `members`."""

    member_id: str = ""
    group_instance_id: str | None = None
    reason: str | None = None


class LeaveGroupRequest(Struct, frozen=True, gc=False):
    """LeaveGroupRequest of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.LEAVE_GROUP
    group_id: str = ""
    members: tuple[MemberIdentity, ...] = ()


class MemberResponse(Struct, frozen=True, gc=False):
    """An entry of `members`."""

    member_id: str = ""
    group_instance_id: str | None = ""
    error_code: ErrorCode = ErrorCode.NONE


class LeaveGroupResponse(Struct, frozen=True, gc=False):
    """LeaveGroupResponse of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.LEAVE_GROUP
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    members: tuple[MemberResponse, ...] = ()
