"""The messages of SyncGroup.

Written by tools/write_messages.py from schemas/SyncGroup.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class SyncGroupRequestAssignment(Struct, frozen=True, gc=False):
    """An entry of `assignments`."""

    member_id: str = ""
    assignment: bytes = b""


class SyncGroupRequest(Struct, frozen=True, gc=False):
    """SyncGroupRequest of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.SYNC_GROUP
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[SyncGroupRequestAssignment, ...] = ()


class SyncGroupResponse(Struct, frozen=True, gc=False):
    """SyncGroupResponse of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.SYNC_GROUP
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""
