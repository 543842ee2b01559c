"""The messages of ListGroups.

Written by tools/write_messages.py from schemas/ListGroups.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ListGroupsRequest(Struct, frozen=True, gc=False):
    """ListGroupsRequest of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_GROUPS
    states_filter: tuple[str, ...] = ()
    types_filter: tuple[str, ...] = ()


class ListedGroup(Struct, frozen=True, gc=False):
    """An entry of `groups`."""

    group_id: str = ""
    protocol_type: str = ""
    group_state: str = ""
    group_type: str = ""


class ListGroupsResponse(Struct, frozen=True, gc=False):
    """ListGroupsResponse of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_GROUPS
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    groups: tuple[ListedGroup, ...] = ()
