"""What a client asks of a broker first, ApiVersions and Metadata, against kio's classes."""

from dataclasses import fields
from datetime import timedelta
from importlib import import_module
from io import BytesIO

import pytest
from kio.schema.errors import ErrorCode as KioError
from kio.serial import entity_reader, entity_writer

from coordinator_sim.clients.cluster_metadata import replica_racks
from coordinator_sim.errors import WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.live import connection
from coordinator_sim.live.connection import sayable
from coordinator_sim.messages.catalogue import newest_version
from coordinator_sim.messages.codec.frames import decode_response, encode_request
from coordinator_sim.messages.requests import metadata_request

METADATA_VERSIONS = range(newest_version(ApiKey.METADATA) + 1)
API_VERSIONS_VERSIONS = range(connection.API_VERSIONS_NEWEST + 1)
SOFTWARE = ("coordinator-sim", "0.1")


def kio_type(module: str, name: str) -> type:
    """One of kio's classes, such as `metadata.v4.response`."""
    found: type = getattr(import_module(f"kio.schema.{module}"), name)
    return found


def made(kind: type, **values: object) -> object:
    """One of kio's entities from those values that its version has."""
    known = {field.name for field in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in known})


def written(entity: object) -> bytes:
    """A response's frame: kio's header and body."""
    buffer = BytesIO()
    header = type(entity).__header_schema__
    entity_writer(header)(buffer, header(correlation_id=7))
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def read(kind: type, frame: bytes) -> object:
    """A request as kio reads it, to its last byte."""
    header, start = entity_reader(kind.__header_schema__)(frame, 0)
    assert (header.correlation_id, header.client_id) == (7, "c")
    entity, size = entity_reader(kind)(frame, start)
    assert start + size == len(frame)
    return entity


def metadata_frame(version: int) -> bytes:
    """A response with two brokers, a sound topic and one that is not."""
    module = f"metadata.v{version}.response"
    partition = kio_type(module, "MetadataResponsePartition")
    topic = kio_type(module, "MetadataResponseTopic")
    broker = kio_type(module, "MetadataResponseBroker")
    partitions = tuple(
        made(
            partition,
            error_code=KioError.none,
            partition_index=number,
            leader_id=1,
            leader_epoch=5,
            replica_nodes=(1, 2),
            isr_nodes=(2,),
            offline_replicas=(),
        )
        for number in (1, 0)
    )
    none = {"topic_id": None, "is_internal": False}
    good = made(topic, error_code=KioError.none, name="orders", partitions=partitions, **none)
    bad = made(topic, error_code=KioError.delegation_token_expired, name="x", partitions=(), **none)
    brokers = (
        made(broker, node_id=1, host="a", port=9092, rack="r1"),
        made(broker, node_id=2, host="b", port=9093, rack=None),
    )
    response = made(
        kio_type(module, "MetadataResponse"),
        throttle_time=timedelta(),
        brokers=brokers,
        cluster_id="id",
        controller_id=1,
        topics=(good, bad),
        error_code=KioError.none,
    )
    return written(response)


@pytest.mark.parametrize("version", METADATA_VERSIONS)
def test_metadata_reads_what_kio_writes(version: int) -> None:
    """Brokers with racks, partitions ascending, an error as what it is."""
    _, response = decode_response(ApiKey.METADATA, version, metadata_frame(version))

    racks = ("r1", None) if version else (None, None)
    assert [(n.node_id, n.host, n.port, n.rack) for n in response.brokers] == [
        (1, "a", 9092, racks[0]),
        (2, "b", 9093, racks[1]),
    ]
    good, bad = response.topics
    assert [p.partition_index for p in good.partitions] == [0, 1]
    assert good.partitions[0].leader_epoch == (5 if version >= 7 else -1)
    known = {broker.node_id: broker.rack for broker in response.brokers if broker.rack}
    assert replica_racks(good, known)[0] == (("r1",) if version else ())
    assert good.error_code is ErrorCode.NONE
    assert bad.error_code is ErrorCode.DELEGATION_TOKEN_EXPIRED


@pytest.mark.parametrize("version", METADATA_VERSIONS)
@pytest.mark.parametrize("topics", [("a", "b"), (), None])
def test_metadata_asks_what_kio_reads(version: int, topics: tuple[str, ...] | None) -> None:
    """None means all topics, which version 0 says by naming none."""
    request = sayable(metadata_request(topics), version)
    frame = encode_request(request, version, correlation_id=7, client_id="c")
    asked = read(kio_type(f"metadata.v{version}.request", "MetadataRequest"), frame)

    if topics is None and version:
        assert asked.topics is None
    else:
        assert tuple(topic.name for topic in asked.topics) == (topics or ())
    assert getattr(asked, "allow_auto_topic_creation", True)


@pytest.mark.parametrize("version", API_VERSIONS_VERSIONS)
def test_api_versions_asks_what_kio_reads(version: int) -> None:
    """From version 3 on the client says what it is."""
    frame = connection.api_versions_request(
        version, correlation_id=7, client_id="c", software=SOFTWARE
    )
    asked = read(kio_type(f"api_versions.v{version}.request", "ApiVersionsRequest"), frame)

    told = (
        getattr(asked, "client_software_name", SOFTWARE[0]),
        getattr(asked, "client_software_version", SOFTWARE[1]),
    )
    assert told == SOFTWARE


@pytest.mark.parametrize("version", API_VERSIONS_VERSIONS)
def test_api_versions_reads_what_kio_writes(version: int) -> None:
    """Ranges by API; tagged features are passed over."""
    module = f"api_versions.v{version}.response"
    ranges = tuple(
        made(kio_type(module, "ApiVersion"), api_key=api, min_version=low, max_version=high)
        for api, low, high in ((3, 0, 13), (11, 2, 9))
    )
    response = made(
        kio_type(module, "ApiVersionsResponse"),
        error_code=KioError.none,
        api_keys=ranges,
        throttle_time=timedelta(),
        finalized_features_epoch=4,
    )
    offered = connection.read_api_versions(version, written(response))

    assert offered.ranges == {3: (0, 13), 11: (2, 9)}
    assert offered.newest_common(11, 5) == 5
    assert offered.newest_common(11, 1) is None
    assert offered.newest_common(14, 5) is None


def test_a_refusal_is_read_in_the_layout_of_version_0() -> None:
    """Whatever version was asked: KIP-511."""
    frame = bytes.fromhex("00000007002300000001001200000003")

    offered = connection.read_api_versions(4, frame)

    assert (offered.error_code, offered.ranges) == (35, {18: (0, 3)})


def test_a_cut_answer_is_refused() -> None:
    """The error says where the bytes end."""
    with pytest.raises(WireFormatError):
        decode_response(ApiKey.METADATA, 12, metadata_frame(12)[:-3])
