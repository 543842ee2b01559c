"""The messages of ListConfigResources.

Written by tools/write_messages.py from schemas/ListConfigResources.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ListConfigResourcesRequest(Struct, frozen=True, gc=False):
    """ListConfigResourcesRequest of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_CONFIG_RESOURCES
    resource_types: tuple[int, ...] = ()


class ConfigResource(Struct, frozen=True, gc=False):
    """An entry of `configResources`."""

    resource_name: str = ""
    resource_type: int = 16


class ListConfigResourcesResponse(Struct, frozen=True, gc=False):
    """ListConfigResourcesResponse of versions 0 to 1."""

    api_key: ClassVar[ApiKey] = ApiKey.LIST_CONFIG_RESOURCES
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    config_resources: tuple[ConfigResource, ...] = ()
