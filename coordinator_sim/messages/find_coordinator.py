"""The messages of FindCoordinator.

Written by tools/write_messages.py from schemas/FindCoordinator.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class FindCoordinatorRequest(Struct, frozen=True, gc=False):
    """FindCoordinatorRequest of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.FIND_COORDINATOR
    key_type: int = 0
    coordinator_keys: tuple[str, ...] = ()


class Coordinator(Struct, frozen=True, gc=False):
    """An entry of `coordinators`."""

    key: str = ""
    node_id: int = 0
    host: str = ""
    port: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


class FindCoordinatorResponse(Struct, frozen=True, gc=False):
    """FindCoordinatorResponse of versions 0 to 6."""

    api_key: ClassVar[ApiKey] = ApiKey.FIND_COORDINATOR
    throttle_time_ms: int = 0
    coordinators: tuple[Coordinator, ...] = ()
