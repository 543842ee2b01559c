"""The messages of JoinGroup.

Written by tools/write_messages.py from schemas/JoinGroup.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class JoinGroupRequestProtocol(Struct, frozen=True, gc=False):
    """An entry of `protocols`."""

    name: str = ""
    metadata: bytes = b""


class JoinGroupRequest(Struct, frozen=True, gc=False):
    """JoinGroupRequest of versions 0 to 9."""

    api_key: ClassVar[ApiKey] = ApiKey.JOIN_GROUP
    group_id: str = ""
    session_timeout_ms: int = 0
    rebalance_timeout_ms: int = -1
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str = ""
    protocols: tuple[JoinGroupRequestProtocol, ...] = ()
    reason: str | None = None


class JoinGroupResponseMember(Struct, frozen=True, gc=False):
    """An entry of `members`."""

    member_id: str = ""
    group_instance_id: str | None = None
    metadata: bytes = b""


class JoinGroupResponse(Struct, frozen=True, gc=False):
    """JoinGroupResponse of versions 0 to 9."""

    api_key: ClassVar[ApiKey] = ApiKey.JOIN_GROUP
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    generation_id: int = -1
    protocol_type: str | None = None
    protocol_name: str | None = ""
    leader: str = ""
    skip_assignment: bool = False
    member_id: str = ""
    members: tuple[JoinGroupResponseMember, ...] = ()
