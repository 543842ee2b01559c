"""ApiVersions: what a broker says it speaks.

Source: kafka 4.4, KafkaApis.handleApiVersionsRequest (clusterIdOrNodeIdIsInvalid),
ApiVersionsRequest.isValid, ApiVersionsResponse.maybeFilterSupportedFeatureKeys,
createFinalizedFeatureKeys; kafka 0.10.2, ApiVersionsResponse.fromError.
"""

import re
from typing import Final

from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.mini_broker.image import ClusterImage
from coordinator_sim.mini_broker.offered import OfferedFeatures, Ranges
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.schema import Data

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Names and versions of clients. Source: ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN."""
_NAMES_SOFTWARE_SINCE: Final = 3
_TELLS_LEVEL_0_SINCE: Final = 4
"""Before, a feature that may be at level 0 is left out: clients could not read it."""
_NAMES_BROKER_SINCE: Final = 5
_NO_NODE: Final = -1


class VersionsApi:
    """Answers ApiVersions.

    Args:
        ranges: What is offered.
        features: Which levels the cluster could have.
        image: Which it has.
        cluster_id: Of the cluster.
    """

    __slots__ = ("_cluster_id", "_features", "_image", "ranges")

    def __init__(
        self, ranges: Ranges, features: OfferedFeatures, image: ClusterImage, *, cluster_id: str
    ) -> None:
        self.ranges = ranges
        self._features = features
        self._image = image
        self._cluster_id = cluster_id

    def handlers(self) -> Handlers:
        """Of ApiVersions alone."""
        return {ApiKey.API_VERSIONS: self._handle}

    def unsupported(self) -> Data:
        """What a request of an unknown version is told, in version 0: which ones there are.

        Brokers that do not know version 3, which brought this, name none (KIP-511).
        """
        span = self.ranges[ApiKey.API_VERSIONS]
        names_itself = span[1] >= _NAMES_SOFTWARE_SINCE
        return {
            "errorCode": int(ErrorCode.UNSUPPORTED_VERSION),
            "apiKeys": [_entry(ApiKey.API_VERSIONS, span)] if names_itself else [],
        }

    def _handle(self, call: Call) -> Data:
        version = call.context.api_version
        error = self._error(call)
        if error is not ErrorCode.NONE:
            return {"errorCode": int(error), "apiKeys": []}
        return {
            "errorCode": 0,
            "apiKeys": [_entry(api, span) for api, span in self.ranges.items()],
            **self._feature_fields(version),
        }

    def _error(self, call: Call) -> ErrorCode:
        request, version = call.request, call.context.api_version
        if version >= _NAMES_BROKER_SINCE:
            names_node = request["nodeId"] != _NO_NODE
            if names_node != (request["clusterId"] is not None):
                return ErrorCode.INVALID_REQUEST
        if version >= _NAMES_SOFTWARE_SINCE and not _names_software(request):
            return ErrorCode.INVALID_REQUEST
        if version >= _NAMES_BROKER_SINCE and request["clusterId"] is not None:
            meant = (request["clusterId"], request["nodeId"])
            if meant != (self._cluster_id, call.broker_id):
                return ErrorCode.REBOOTSTRAP_REQUIRED
        return ErrorCode.NONE

    def _feature_fields(self, version: int) -> Data:
        supported = self._features.supported
        if not supported:
            return {}
        finalized = self._image.features
        return {
            "supportedFeatures": [
                {"name": name, "minVersion": lowest, "maxVersion": highest}
                for name, (lowest, highest) in supported.items()
                if lowest > 0 or version >= _TELLS_LEVEL_0_SINCE
            ],
            "finalizedFeaturesEpoch": self._image.version,
            "finalizedFeatures": [
                {"name": name, "maxVersionLevel": level, "minVersionLevel": level}
                for name in supported
                if (level := finalized.get(name, 0))
            ],
        }


def _entry(api: ApiKey, span: tuple[int, int]) -> Data:
    return {"apiKey": int(api), "minVersion": span[0], "maxVersion": span[1]}


def _names_software(request: Data) -> bool:
    return all(
        _SOFTWARE.fullmatch(request[name])
        for name in ("clientSoftwareName", "clientSoftwareVersion")
    )
