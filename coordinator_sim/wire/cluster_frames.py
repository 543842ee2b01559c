"""ApiVersions and Metadata on the client side: encodes requests, decodes responses.

Source: kafka trunk, ApiVersionsRequest, ApiVersionsResponse.parse, MetadataRequest,
MetadataResponse; ApiKeys.API_VERSIONS.responseHeaderVersion.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.messages import metadata as messages
from coordinator_sim.messages.api_versions import ApiVersionsRequest
from coordinator_sim.messages.metadata import MetadataRequestTopic, MetadataResponseTopic
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.cluster_view import (
    MetadataRequest,
    MetadataResponse,
    Node,
    PartitionMetadata,
    TopicMetadata,
)
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.compiler import response_reader
from coordinator_sim.wire.frame_reader import FrameReader
from coordinator_sim.wire.frames import encode_request

API_VERSIONS: Final = int(ApiKey.API_VERSIONS)
"""The number of the ApiVersions API."""
API_VERSIONS_NEWEST: Final = 4
"""Version that clients ask first; brokers of 4.4 also know 5, which names the expected broker."""
METADATA_NEWEST: Final = 13
UNSUPPORTED: Final = int(ErrorCode.UNSUPPORTED_VERSION)

_METADATA_NULL_IS_ALL: Final = 1


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


def metadata_request(
    request: MetadataRequest, version: int, *, correlation_id: int, client_id: str | None
) -> bytes:
    """Encode a Metadata request; in version 0 an empty list means all topics."""
    topics = None
    if request.topics is not None:
        topics = tuple(MetadataRequestTopic(name=name) for name in request.topics)
    elif version < _METADATA_NULL_IS_ALL:
        topics = ()
    asked = messages.MetadataRequest(topics=topics)
    return encode_request(asked, version, correlation_id=correlation_id, client_id=client_id)


def read_metadata(version: int, frame: bytes) -> MetadataResponse:
    """Decode a Metadata response; topics in the broker's order, partitions ascending.

    An error code that Kafka 4.4 does not have becomes UNKNOWN_SERVER_ERROR.

    Raises:
        WireFormatError: the bytes do not parse.
    """
    _, answer = response_reader(ApiKey.METADATA, version)(frame)
    brokers = tuple(
        Node(node_id=each.node_id, host=each.host, port=each.port, rack=each.rack)
        for each in answer.brokers
    )
    racks = {node.node_id: node.rack for node in brokers if node.rack is not None}
    return MetadataResponse(
        brokers=brokers, topics=tuple(_topic(each, racks) for each in answer.topics)
    )


def _topic(topic: MetadataResponseTopic, racks: dict[int, str]) -> TopicMetadata:
    partitions = [
        PartitionMetadata(
            partition=each.partition_index,
            leader_id=each.leader_id,
            leader_epoch=each.leader_epoch,
            replica_racks=tuple(racks[node] for node in each.replica_nodes if node in racks),
        )
        for each in topic.partitions
    ]
    return TopicMetadata(
        name=topic.name or "",
        partitions=tuple(sorted(partitions, key=lambda each: each.partition)),
        error_code=_known_error(topic.error_code),
        is_internal=topic.is_internal,
    )


def _known_error(error: ErrorCode) -> ErrorCode:
    return ErrorCode.__members__.get(error.name, ErrorCode.UNKNOWN_SERVER_ERROR)
