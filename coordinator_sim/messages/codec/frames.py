"""Whole requests and responses as bytes: header and body, without the length prefix.

Every version that Kafka ever had of the APIs in `messages`, from 0 to the newest of 4.4. Kafka
4.4's bounds are checked before anything is allocated, and unknown tagged fields are passed over.

Source: kafka trunk, clients/src/main/resources/common/message/{RequestHeader,
ResponseHeader}.json; ApiKeys.requestHeaderVersion, responseHeaderVersion.
"""

import struct
from typing import Any, Final

from msgspec import Struct

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.catalogue import SpokenMessage
from coordinator_sim.messages.codec import compiler
from coordinator_sim.messages.codec.answers import fitted, understood
from coordinator_sim.messages.codec.frame_reader import FrameReader

_HEADER_START: Final = struct.Struct(">hhi")


class RequestHeader(Struct, frozen=True, kw_only=True):
    """What precedes every request. `api_key` may be the number of an API not spoken here."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


def api_of(api_key: int) -> ApiKey:
    """The API of a number.

    Raises:
        UnsupportedVersion: Kafka has no such API.
    """
    try:
        return ApiKey(api_key)
    except ValueError:
        raise UnsupportedVersion(f"API {api_key} is not spoken here") from None


def read_header(frame: bytes) -> RequestHeader:
    """The header of a request, also of an API or version that is not spoken here.

    Raises:
        WireFormatError: the frame ends within the header.
    """
    reader = FrameReader(frame, compiler.REQUEST_HEADER)
    api_key, api_version, correlation_id = reader.fixed(_HEADER_START, compiler.REQUEST_HEADER)
    return RequestHeader(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=reader.nullable_text(compiler.CLIENT_ID)
        if compiler.has_client_id(api_key, api_version)
        else None,
    )


def encode_request(
    request: SpokenMessage,
    version: int,
    *,
    correlation_id: int,
    client_id: str | None = None,
) -> bytes:
    """A request as a client sends it.

    Raises:
        DataError: a value that its field's type cannot say.
        UnsupportedVersion: no such version, or one that cannot say what the request holds.
    """
    return compiler.request_writer(request.api_key, version)(correlation_id, client_id, request)


def decode_request(frame: bytes) -> tuple[RequestHeader, Any]:
    """A request as a broker receives it, with its header. Bytes behind its end are ignored.

    Raises:
        UnsupportedVersion: no such API or version; `read_header` tells which.
        WireFormatError: the bytes do not parse.
    """
    header = read_header(frame)
    _, request = compiler.request_reader(api_of(header.api_key), header.api_version)(frame)
    return header, request


def encode_response(
    response: SpokenMessage,
    version: int,
    *,
    correlation_id: int,
    request: SpokenMessage | None = None,
) -> bytes:
    """A response as a broker sends it, in the version of its request.

    The request names the partitions that OffsetFetch 0 and 1 repeat with a group's error.

    Raises:
        DataError: a value that its field's type cannot say.
        UnsupportedVersion: no such version, or one that cannot say the response.
    """
    write = compiler.response_writer(response.api_key, version)
    return write(correlation_id, fitted(response, version, request))


def decode_response(
    api: ApiKey,
    version: int,
    frame: bytes,
    *,
    request: SpokenMessage | None = None,
) -> tuple[int, Any]:
    """A response as a client receives it, with its correlation id.

    The request names the group or key that old versions do not repeat.

    Raises:
        UnsupportedVersion: no such API or version.
        WireFormatError: the bytes do not parse, or hold an error code that Kafka does not have.
    """
    correlation_id, response = compiler.response_reader(api, version)(frame)
    return correlation_id, understood(response, version, request)
