"""The messages of DescribeConfigs.

Written by tools/write_messages.py from schemas/DescribeConfigs.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class DescribeConfigsResource(Struct, frozen=True, gc=False):
    """An entry of `resources`."""

    resource_type: int = 0
    resource_name: str = ""
    configuration_keys: tuple[str, ...] | None = ()


class DescribeConfigsRequest(Struct, frozen=True, gc=False):
    """DescribeConfigsRequest of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CONFIGS
    resources: tuple[DescribeConfigsResource, ...] = ()
    include_synonyms: bool = False
    include_documentation: bool = False


class DescribeConfigsSynonym(Struct, frozen=True, gc=False):
    """An entry of `synonyms`."""

    name: str = ""
    value: str | None = ""
    source: int = 0


class DescribeConfigsResourceResult(Struct, frozen=True, gc=False):
    """An entry of `configs`."""

    name: str = ""
    value: str | None = ""
    read_only: bool = False
    is_default: bool = False
    config_source: int = -1
    is_sensitive: bool = False
    synonyms: tuple[DescribeConfigsSynonym, ...] = ()
    config_type: int = 0
    documentation: str | None = ""


class DescribeConfigsResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    resource_type: int = 0
    resource_name: str = ""
    configs: tuple[DescribeConfigsResourceResult, ...] = ()


class DescribeConfigsResponse(Struct, frozen=True, gc=False):
    """DescribeConfigsResponse of versions 0 to 4."""

    api_key: ClassVar[ApiKey] = ApiKey.DESCRIBE_CONFIGS
    throttle_time_ms: int = 0
    results: tuple[DescribeConfigsResult, ...] = ()
