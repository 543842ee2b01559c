"""ApiVersions and Metadata as a client speaks them: requests to bytes, responses from bytes.

Source: kafka trunk, ApiVersionsRequest, ApiVersionsResponse.parse, MetadataRequest,
MetadataResponse; ApiKeys.API_VERSIONS.responseHeaderVersion.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.protocol.messages import (
    MetadataRequest,
    MetadataResponse,
    Node,
    PartitionMetadata,
    TopicMetadata,
)
from coordinator_sim.wire.frame_reader import FrameReader
from coordinator_sim.wire.frames import RequestHeader, read_response_frame, request_frame
from coordinator_sim.wire.schema import Data

API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
"""The number of the ApiVersions API."""
API_VERSIONS_NEWEST: Final = 4
"""What clients ask first; brokers of 4.4 speak 5 too, which names the broker that is meant."""
METADATA_NEWEST: Final = 13
UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION)

_METADATA_NULL_IS_ALL: Final = 1


class OfferedVersions(Struct, frozen=True, kw_only=True):
    """What a broker speaks.

    Args:
        error_code: 35 when it does not speak the version of ApiVersions that it was asked in.
        ranges: API number -> oldest and newest version.
    """

    error_code: int
    ranges: dict[int, tuple[int, int]]

    def newest_common(self, api: int, newest: int) -> int | None:
        """The newest version that both sides speak; None when there is none."""
        low, high = self.ranges.get(api, (0, -1))
        version = min(high, newest)
        return version if version >= low else None


def api_versions_request(
    version: int, *, correlation_id: int, client_id: str | None, software: tuple[str, str]
) -> bytes:
    """Ask a broker what it speaks.

    `software` is name and version of the client; brokers accept letters, digits, `-` and `.`.
    """
    header = RequestHeader(
        api_key=API_VERSIONS,
        api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    fields = {"clientSoftwareName": software[0], "clientSoftwareVersion": software[1]}
    return request_frame(header, fields)


def read_api_versions(version: int, frame: bytes) -> OfferedVersions:
    """What a broker speaks, from its answer; a refusal of the version has the layout of 0.

    Raises:
        WireFormatError: the bytes do not parse.
    """
    reader = FrameReader(frame, "frame")
    reader.int32("correlation id")
    if reader.int16("ApiVersionsResponse.errorCode") == UNSUPPORTED:
        version = 0
    _, data = read_response_frame(ApiKey.API_VERSIONS, version, frame)
    return OfferedVersions(
        error_code=data["errorCode"],
        ranges={
            entry["apiKey"]: (entry["minVersion"], entry["maxVersion"]) for entry in data["apiKeys"]
        },
    )


def metadata_request(
    request: MetadataRequest, version: int, *, correlation_id: int, client_id: str | None
) -> bytes:
    """Ask for brokers and topics; version 0 says all topics by naming none."""
    topics: list[Data] | None = None
    if request.topics is not None:
        topics = [{"name": name} for name in request.topics]
    elif version < _METADATA_NULL_IS_ALL:
        topics = []
    header = RequestHeader(
        api_key=ApiKey.METADATA,
        api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return request_frame(header, {"topics": topics})


def read_metadata(version: int, frame: bytes) -> MetadataResponse:
    """A broker's view of the cluster; topics in its order, partitions ascending.

    An error that no group client tells from others is UNKNOWN_SERVER_ERROR.

    Raises:
        WireFormatError: the bytes do not parse.
    """
    _, data = read_response_frame(ApiKey.METADATA, version, frame)
    brokers = tuple(
        Node(
            node_id=entry["nodeId"],
            host=entry["host"],
            port=entry["port"],
            rack=entry.get("rack"),
        )
        for entry in data["brokers"]
    )
    racks = {node.node_id: node.rack for node in brokers if node.rack is not None}
    return MetadataResponse(
        brokers=brokers,
        topics=tuple(_topic(entry, racks) for entry in data["topics"]),
    )


def _topic(entry: Data, racks: dict[int, str]) -> TopicMetadata:
    partitions = [
        PartitionMetadata(
            partition=each["partitionIndex"],
            leader_id=each["leaderId"],
            leader_epoch=each.get("leaderEpoch", -1),
            replica_racks=tuple(racks[node] for node in each["replicaNodes"] if node in racks),
        )
        for each in entry["partitions"]
    ]
    return TopicMetadata(
        name=entry["name"] or "",
        partitions=tuple(sorted(partitions, key=lambda each: each.partition)),
        error_code=_known_error(entry["errorCode"]),
        is_internal=entry.get("isInternal", False),
    )


def _known_error(number: int) -> ErrorCode:
    try:
        return ErrorCode(number)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
