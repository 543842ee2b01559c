"""The messages of DeleteGroups.

Written by tools/write_messages.py from schemas/DeleteGroups.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DeleteGroupsRequest(Struct, frozen=True, gc=False):
    """DeleteGroupsRequest of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_GROUPS
    groups_names: tuple[str, ...] = ()


class DeletableGroupResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    group_id: str = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


class DeleteGroupsResponse(Struct, frozen=True, gc=False):
    """DeleteGroupsResponse of versions 0 to 3."""

    api_key: ClassVar[ApiKey] = ApiKey.DELETE_GROUPS
    throttle_time_ms: int = 0
    results: tuple[DeletableGroupResult, ...] = ()
