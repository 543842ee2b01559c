"""The messages of UpdateFeatures.

Written by tools/write_messages.py from schemas/UpdateFeatures.json.
"""

from typing import ClassVar

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode


class FeatureUpdateKey(Struct, frozen=True, gc=False):
    """An entry of `featureUpdates`."""

    feature: str = ""
    max_version_level: int = 0
    allow_downgrade: bool = False
    upgrade_type: int = 1


class UpdateFeaturesRequest(Struct, frozen=True, gc=False):
    """UpdateFeaturesRequest of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.UPDATE_FEATURES
    timeout_ms: int = 60_000
    feature_updates: tuple[FeatureUpdateKey, ...] = ()
    validate_only: bool = False


class UpdatableFeatureResult(Struct, frozen=True, gc=False):
    """An entry of `results`."""

    feature: str = ""
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""


class UpdateFeaturesResponse(Struct, frozen=True, gc=False):
    """UpdateFeaturesResponse of versions 0 to 2."""

    api_key: ClassVar[ApiKey] = ApiKey.UPDATE_FEATURES
    throttle_time_ms: int = 0
    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = ""
    results: tuple[UpdatableFeatureResult, ...] = ()
