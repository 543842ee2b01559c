"""The messages of AlterConfigs.

Written by tools/write_messages.py from schemas/AlterConfigs.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class AlterableConfig(Struct, frozen=True, gc=False):
    """An entry of `configs`."""

    name: str = ""
    value: str | None = ""


class AlterConfigsResource(Struct, frozen=True, gc=False):
    """An entry of `resources`."""

    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[AlterableConfig, ...] = ()


class AlterConfigsRequest(Struct, frozen=True, gc=False):
    """AlterConfigsRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CONFIGS
    resources: tuple[AlterConfigsResource, ...] = ()
    validate_only: bool = False


class AlterConfigsResourceResponse(Struct, frozen=True, gc=False):
    """An entry of `responses`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""


class AlterConfigsResponse(Struct, frozen=True, gc=False):
    """AlterConfigsResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.ALTER_CONFIGS
    throttle_time_ms: int = 0
    responses: tuple[AlterConfigsResourceResponse, ...] = ()
