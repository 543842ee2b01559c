"""ApiVersions: what a broker says it speaks.

Source: kafka trunk, KafkaApis.handleApiVersionsRequest, ApiVersionsRequest.isValid.
"""

import re
from collections.abc import Mapping
from typing import Final

from coordinator_sim.mini_broker.contract import Call, Handlers
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.schema import Data

Ranges = Mapping[ApiKey, tuple[int, int]]
"""Oldest and newest version of each API that is offered."""

_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
"""Names and versions of clients. Source: ApiVersionsRequest.SOFTWARE_NAME_VERSION_PATTERN."""
_NAMES_SOFTWARE_SINCE: Final = 3


class VersionsApi:
    """Answers ApiVersions.

    Args:
        ranges: What is offered.
    """

    __slots__ = ("ranges",)

    def __init__(self, ranges: Ranges) -> None:
        self.ranges = ranges

    def handlers(self) -> Handlers:
        """Of ApiVersions alone."""
        return {ApiKey.API_VERSIONS: self._handle}

    def unsupported(self) -> Data:
        """What a request of an unknown version is told, in version 0: which ones there are."""
        return {
            "errorCode": int(ErrorCode.UNSUPPORTED_VERSION),
            "apiKeys": [_entry(ApiKey.API_VERSIONS, self.ranges[ApiKey.API_VERSIONS])],
        }

    def _handle(self, call: Call) -> Data:
        if call.context.api_version >= _NAMES_SOFTWARE_SINCE and not _is_valid(call.request):
            return {"errorCode": int(ErrorCode.INVALID_REQUEST), "apiKeys": []}
        keys = [_entry(api, span) for api, span in sorted(self.ranges.items())]
        return {"errorCode": 0, "apiKeys": keys}


def _entry(api: ApiKey, span: tuple[int, int]) -> Data:
    return {"apiKey": int(api), "minVersion": span[0], "maxVersion": span[1]}


def _is_valid(request: Data) -> bool:
    return all(
        _SOFTWARE.fullmatch(request[name])
        for name in ("clientSoftwareName", "clientSoftwareVersion")
    )
