"""Requests and responses in JSON, in every version of every group API; and their frames.

`messages.codec.answers` has what a version changes beside its fields, `messages` the fields. With
frames, any program that reads JSON can be a client of a real broker.

Source: `encode` and `decode` of the reference (`conformance/oracle`).
"""

from typing import Final

from coordinator_sim.coordinator.effects import InternalTopic
from coordinator_sim.errors import UnsupportedVersion, WireFormatError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.catalogue import layout_of, name_of, structs_module
from coordinator_sim.messages.codec.answers import fitted, understood
from coordinator_sim.messages.codec.compiler import request_writer, response_reader
from coordinator_sim.messages.codec.json_form import Json, JsonReader, to_json
from coordinator_sim.messages.requests import GROUP_APIS, Request, Response, group_api_named

_DEFAULT_REPLICATION: Final = -1


def _reader(api: ApiKey) -> JsonReader:
    return JsonReader(structs_module(name_of(api)))


def read_request(api: str, version: int, data: Json) -> Request:
    """Parse a request from its JSON, by the API's Kafka name.

    Fields missing at the top level have their defaults; inside lists all are required.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: no such API or version, or one that cannot express a field.
    """
    key = group_api_named(api)
    layout = layout_of(key, version, response=False)
    request: Request = _reader(key).read(layout, data, defaulted=True)
    return request


def write_request(request: Request, version: int) -> Json:
    """Return a request as JSON.

    Raises:
        UnsupportedVersion: no such version, or one that cannot express the request.
    """
    api = request.api_key
    if api not in GROUP_APIS:
        raise UnsupportedVersion(f"{api.name} is not one of the group APIs")
    return to_json(layout_of(api, version, response=False), request)


def read_response(api: str, version: int, data: Json, request: Request | None = None) -> Response:
    """Parse a response from its JSON, by the API's Kafka name.

    The request gives the group or key that old versions do not repeat.

    Raises:
        DataError: a field is missing or of another type, or an unknown error code.
        UnsupportedVersion: no such API or version, or one that cannot express a field.
    """
    key = group_api_named(api)
    read = _reader(key).read(layout_of(key, version, response=True), data)
    response: Response = understood(read, version, request)
    return response


def write_response(request: Request, version: int, response: Response) -> Json:
    """Return a response as JSON, in the version of its request.

    Raises:
        TypeError: the response is not one of the group APIs.
        UnsupportedVersion: the version cannot express the response.
    """
    api = getattr(response, "api_key", None)
    if api not in GROUP_APIS:
        raise TypeError(f"no JSON form of {type(response).__name__}")
    return to_json(layout_of(api, version, response=True), fitted(response, version, request))


def json_to_frame(
    api: str, version: int, data: Json, *, client_id: str = "client", correlation_id: int = 0
) -> bytes:
    """Return the frame of a request, from its JSON; the top level is filled with defaults.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: no such API or version, or one that cannot express a field.
    """
    request = read_request(api, version, data)
    return request_writer(request.api_key, version)(correlation_id, client_id, request)


def frame_to_json(api: str, version: int, frame: bytes, *, correlation_id: int = 0) -> Json:
    """Return the JSON of a response, from its frame.

    Raises:
        UnsupportedVersion: no such API or version.
        WireFormatError: the bytes do not parse, or answer another request.
    """
    key = group_api_named(api)
    answered, response = response_reader(key, version)(frame)
    if answered != correlation_id:
        raise WireFormatError(
            f"the frame answers correlation id {answered}, not {correlation_id}", 0
        )
    if key is ApiKey.JOIN_GROUP:
        # Kafka's class formats a missing protocol as its version does, whatever the frame had.
        response = fitted(response, version)
    return to_json(layout_of(key, version, response=True), response)


def write_topic(topic: InternalTopic) -> Json:
    """Return a topic that a streams group needs, as a broker would create it."""
    return {
        "name": topic.name,
        "partitions": topic.partition_count,
        "replicationFactor": topic.replication_factor or _DEFAULT_REPLICATION,
        "configs": dict(topic.configs),
    }
