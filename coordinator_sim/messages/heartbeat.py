"""The messages of Heartbeat.

Written by tools/write_messages.py from schemas/Heartbeat.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class HeartbeatRequest(Struct, frozen=True, gc=False):
    """HeartbeatRequest of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.HEARTBEAT
    group_id: str = ""
    generation_id: int = 0
    member_id: str = ""
    group_instance_id: str | None = None


class HeartbeatResponse(Struct, frozen=True, gc=False):
    """HeartbeatResponse of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.HEARTBEAT
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
