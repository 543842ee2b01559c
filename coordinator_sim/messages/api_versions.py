"""The messages of ApiVersions.

Written by tools/write_messages.py from schemas/ApiVersions.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class ApiVersionsRequest(Struct, frozen=True, gc=False):
    """ApiVersionsRequest of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.API_VERSIONS
    client_software_name: str = ""
    client_software_version: str = ""
    cluster_id: str | None = None
    node_id: int = -1


class ApiVersion(Struct, frozen=True, gc=False):
    """An entry of `apiKeys`."""

    api_key: int = 0
    min_version: int = 0
    max_version: int = 0


class SupportedFeatureKey(Struct, frozen=True, gc=False):
    """An entry of `supportedFeatures`."""

    name: str = ""
    min_version: int = 0
    max_version: int = 0


class FinalizedFeatureKey(Struct, frozen=True, gc=False):
    """An entry of `finalizedFeatures`."""

    name: str = ""
    max_version_level: int = 0
    min_version_level: int = 0


class ApiVersionsResponse(Struct, frozen=True, gc=False):
    """ApiVersionsResponse of versions 0 to 5."""

    api_key: ClassVar[ApiKey] = ApiKey.API_VERSIONS
    error_code: ErrorCode = ErrorCode.NONE
    api_keys: tuple[ApiVersion, ...] = ()
    throttle_time_ms: int = 0
    supported_features: tuple[SupportedFeatureKey, ...] = ()
    finalized_features_epoch: int = -1
    finalized_features: tuple[FinalizedFeatureKey, ...] = ()
    zk_migration_ready: bool = False
