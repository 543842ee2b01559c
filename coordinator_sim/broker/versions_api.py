"""ApiVersions: the API versions and features that a broker offers.

Source: kafka 4.4, KafkaApis.handleApiVersionsRequest (clusterIdOrNodeIdIsInvalid),
ApiVersionsRequest.isValid, ApiVersionsResponse.maybeFilterSupportedFeatureKeys,
createFinalizedFeatureKeys; BrokerFeatures.defaultSupportedFeatures, KRaftMetadataCache.features and
FinalizedFeatures (orders); kafka 0.10.2, ApiVersionsResponse.fromError.
"""

import re
from typing import Final

from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.implemented import METADATA_VERSION
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.offered import OfferedFeatures, Ranges
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.orders.iteration_order import (
    MIN_TABLE_CAPACITY,
    java_filled_capacity,
    java_hash_order,
)
from coordinator_sim.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Client names and versions. Source: ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN."""
_NAMES_SOFTWARE_SINCE: Final = 3
_TELLS_LEVEL_0_SINCE: Final = 4
"""Earlier versions leave out a feature that may be at level 0, which clients cannot read."""
_NO_NODE: Final = -1
_NO_EPOCH: Final = -1


class VersionsApi:
    """Answers ApiVersions.

    Args:
        ranges: The offered API versions.
        features: The supported levels of features.
        image: The metadata, with the finalized levels.
        cluster_id: Id of the cluster.
    """

    def __init__(
        self, ranges: Ranges, features: OfferedFeatures, image: MetadataImage, *, cluster_id: str
    ) -> None:
        self.ranges = ranges
        self._features = features
        self._image = image
        self._cluster_id = cluster_id

    def handlers(self) -> Handlers:
        """The handler of ApiVersions."""
        return {ApiKey.API_VERSIONS: self._handle}

    def unsupported(self) -> ApiVersionsResponse:
        """The answer to an unknown version, in version 0, with the known versions of ApiVersions.

        Brokers that do not know version 3 leave the versions out (KIP-511).
        """
        span = self.ranges[ApiKey.API_VERSIONS]
        names_itself = span[1] >= _NAMES_SOFTWARE_SINCE
        return ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=(_entry(ApiKey.API_VERSIONS, span),) if names_itself else (),
        )

    def _handle(self, call: Call[ApiVersionsRequest]) -> ApiVersionsResponse:
        error = self._error(call)
        if error is not ErrorCode.NONE:
            return ApiVersionsResponse(error_code=error)
        has_features = bool(self._features.supported)
        return ApiVersionsResponse(
            api_keys=tuple(_entry(api, span) for api, span in self.ranges.items()),
            supported_features=self._supported(call.context.api_version),
            finalized_features_epoch=self._image.version if has_features else _NO_EPOCH,
            finalized_features=self._finalized(),
        )

    def _error(self, call: Call[ApiVersionsRequest]) -> ErrorCode:
        request, version = call.request, call.context.api_version
        if (request.node_id != _NO_NODE) != (request.cluster_id is not None):
            return ErrorCode.INVALID_REQUEST
        if version >= _NAMES_SOFTWARE_SINCE and not _names_software(request):
            return ErrorCode.INVALID_REQUEST
        if request.cluster_id is not None:
            meant = (request.cluster_id, request.node_id)
            if meant != (self._cluster_id, call.broker_id):
                return ErrorCode.REBOOTSTRAP_REQUIRED
        return ErrorCode.NONE

    def _supported(self, version: int) -> tuple[SupportedFeatureKey, ...]:
        supported = self._features.supported
        return tuple(
            SupportedFeatureKey(name=name, min_version=lowest, max_version=highest)
            for name in java_hash_order(supported)
            for lowest, highest in (supported[name],)
            if lowest > 0 or version >= _TELLS_LEVEL_0_SINCE
        )

    def _finalized(self) -> tuple[FinalizedFeatureKey, ...]:
        levels = {
            name: level
            for name in java_hash_order(self._features.supported)
            if (level := self._image.features.get(name, 0))
        }
        # `metadata.version` goes last into a copy of the map of the others.
        others = [name for name in levels if name != METADATA_VERSION]
        capacity = java_filled_capacity(len(others)) if others else MIN_TABLE_CAPACITY
        if len(levels) * 4 > capacity * 3:
            capacity *= 2
        names = java_hash_order([*others, *levels], capacity)
        return tuple(FinalizedFeatureKey(name, levels[name], levels[name]) for name in names)


def _entry(api: ApiKey, span: tuple[int, int]) -> ApiVersion:
    return ApiVersion(api_key=int(api), min_version=span[0], max_version=span[1])


def _names_software(request: ApiVersionsRequest) -> bool:
    return all(
        _SOFTWARE.fullmatch(each)
        for each in (request.client_software_name, request.client_software_version)
    )
