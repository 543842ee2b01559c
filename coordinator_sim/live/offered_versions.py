"""ApiVersions on the client side: what a broker offers, asked before anything else.

Source: kafka trunk, ApiVersionsRequest, ApiVersionsResponse.parse;
ApiKeys.API_VERSIONS.responseHeaderVersion.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.api_versions import ApiVersionsRequest
from coordinator_sim.messages.codec.compiler import response_reader
from coordinator_sim.messages.codec.frame_reader import FrameReader
from coordinator_sim.messages.codec.frames import encode_request

API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
"""The number of the ApiVersions API."""
API_VERSIONS_NEWEST: Final = 4
"""Version that clients ask first; brokers of 4.4 also know 5, which names the expected broker."""
UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION)


class OfferedVersions(Struct, frozen=True, kw_only=True):
    """The versions that a broker offers.

    Args:
        error_code: 35 when the broker does not know the version of the ApiVersions request.
        ranges: API number -> oldest and newest version.
    """

    error_code: int
    ranges: dict[int, tuple[int, int]]

    def newest_common(self, api: int, newest: int) -> int | None:
        """The newest version that both sides know; None when there is none."""
        low, high = self.ranges.get(api, (0, -1))
        version = min(high, newest)
        return version if version >= low else None


def api_versions_request(
    version: int, *, correlation_id: int, client_id: str | None, software: tuple[str, str]
) -> bytes:
    """Encode an ApiVersions request.

    `software` is name and version of the client; brokers accept letters, digits, `-` and `.`.
    """
    request = ApiVersionsRequest(
        client_software_name=software[0], client_software_version=software[1]
    )
    return encode_request(request, version, correlation_id=correlation_id, client_id=client_id)


def read_api_versions(version: int, frame: bytes) -> OfferedVersions:
    """Decode an ApiVersions response; a refusal of the version has the layout of version 0.

    Raises:
        WireFormatError: the bytes do not parse.
    """
    reader = FrameReader(frame, "frame")
    reader.int32("correlation id")
    if reader.int16("ApiVersionsResponse.errorCode") == UNSUPPORTED:
        version = 0
    _, answer = response_reader(ApiKey.API_VERSIONS, version)(frame)
    return OfferedVersions(
        error_code=answer.error_code,
        ranges={each.api_key: (each.min_version, each.max_version) for each in answer.api_keys},
    )
