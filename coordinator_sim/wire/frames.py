"""Whole requests and responses as bytes: header and body, without the length prefix.

Every version that Kafka ever had of the APIs in `schemas`, from 0 to the newest of 4.4; the group
APIs also as messages.

The codec is made from `schemas` and not from kio's classes: Kafka 4.4's bounds are checked before
anything is allocated, unknown tagged fields are passed over, and versions that kio lacks exist
(such as Produce 0-2, Fetch 0-3, OffsetCommit 0-1, ApiVersions 5). The tests compare the two for
all the others.

Source: kafka trunk, clients/src/main/resources/common/message/{RequestHeader,
ResponseHeader}.json; ApiKeys.requestHeaderVersion, responseHeaderVersion.
"""

import struct
from collections.abc import Callable
from functools import cache
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import DataError, UnsupportedVersion, WireFormatError
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.requests import Request, Response
from coordinator_sim.wire.classic_types import int16_bytes, int32_bytes, string_bytes
from coordinator_sim.wire.codec import reader_of, writer_of
from coordinator_sim.wire.forms import (
    request_fields,
    request_from,
    response_fields,
    response_from,
)
from coordinator_sim.wire.frame_reader import MAX_STRING_LENGTH, FrameReader
from coordinator_sim.wire.hot_requests import read_usual_request
from coordinator_sim.wire.hot_responses import write_usual_response
from coordinator_sim.wire.schema import Data
from coordinator_sim.wire.schemas import GROUP_SCHEMAS, layout_of, schema_of

_NO_TAGS: Final = b"\x00"
_HEADER_START: Final = struct.Struct(">hhi")
_REQUEST_HEADER: Final = "request header"
_RESPONSE_HEADER: Final = "response header"


class RequestHeader(Struct, frozen=True, kw_only=True):
    """What precedes every request. `api_key` may be the number of an API not spoken here."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None = None


# -- fields and bytes ----------------------------------------------------------------------


@cache
def _reader(api: ApiKey, version: int, *, response: bool) -> Callable[[FrameReader], Data]:
    return reader_of(layout_of(api, version, response=response))


@cache
def _writer(api: ApiKey, version: int, *, response: bool) -> Callable[[Data], bytes]:
    return writer_of(layout_of(api, version, response=response))


def header_bytes(header: RequestHeader, *, flexible: bool) -> bytes:
    """The header of a request; `flexible` says whether the request's version has tagged fields.

    Raises:
        DataError: a client id that is too long.
    """
    client_id = header.client_id
    if client_id is not None and len(client_id.encode(errors="replace")) > MAX_STRING_LENGTH:
        raise DataError(f"client id has more than {MAX_STRING_LENGTH} bytes")
    return b"".join(
        (
            int16_bytes(header.api_key),
            int16_bytes(header.api_version),
            int32_bytes(header.correlation_id),
            string_bytes(client_id),
            _NO_TAGS if flexible else b"",
        )
    )


def request_frame(header: RequestHeader, fields: Data) -> bytes:
    """A request from its fields, by Kafka's names; those it does not name are at their defaults.

    Raises:
        DataError: a value that its field's type cannot say.
        UnsupportedVersion: no such API or version, or one that cannot say a field.
    """
    api = _api(header)
    flexible = layout_of(api, header.api_version, response=False).flexible
    body = _writer(api, header.api_version, response=False)(fields)
    return header_bytes(header, flexible=flexible) + body


def response_frame(api: ApiKey, version: int, correlation_id: int, fields: Data) -> bytes:
    """A response from its fields, by Kafka's names; those it does not name are at their defaults.

    Raises:
        DataError: a value that its field's type cannot say.
        UnsupportedVersion: no such API or version, or one that cannot say a field.
    """
    tags = _NO_TAGS if _has_tagged_header(api, version) else b""
    body = _writer(api, version, response=True)(fields)
    return b"".join((int32_bytes(correlation_id), tags, body))


def _has_tagged_header(api: ApiKey, version: int) -> bool:
    """Whether a response's header may have tagged fields.

    Never that of ApiVersions: its reader does not know yet which version answers.

    Source: ApiKeys.responseHeaderVersion; ApiMessageTypeGenerator, KIP-511.
    """
    return layout_of(api, version, response=True).flexible and api is not ApiKey.API_VERSIONS


def _api(header: RequestHeader) -> ApiKey:
    try:
        api = ApiKey(header.api_key)
    except ValueError:
        raise UnsupportedVersion(f"API {header.api_key} is not spoken here") from None
    return schema_of(api).api_key


def _read_header(reader: FrameReader) -> RequestHeader:
    api_key, api_version, correlation_id = reader.fixed(_HEADER_START, _REQUEST_HEADER)
    return RequestHeader(
        api_key=api_key,
        api_version=api_version,
        correlation_id=correlation_id,
        client_id=reader.nullable_text("client id"),
    )


def read_header(frame: bytes) -> RequestHeader:
    """The header of a request, also of an API or version that is not spoken here.

    Raises:
        WireFormatError: the frame ends within the header.
    """
    return _read_header(FrameReader(frame, _REQUEST_HEADER))


def read_request_frame(frame: bytes) -> tuple[RequestHeader, Data]:
    """A request's header and fields. Bytes behind the last field are ignored, as in Kafka.

    Raises:
        UnsupportedVersion: no such API or version.
        WireFormatError: the bytes do not parse.
    """
    reader = FrameReader(frame, "frame")
    header = _read_header(reader)
    return header, _read_request(reader, header)


def _read_request(reader: FrameReader, header: RequestHeader) -> Data:
    api = _api(header)
    read = _reader(api, header.api_version, response=False)
    if layout_of(api, header.api_version, response=False).flexible:
        reader.pass_over_tags(_REQUEST_HEADER)
    return read(reader)


def read_response_frame(api: ApiKey, version: int, frame: bytes) -> tuple[int, Data]:
    """A response's correlation id and fields. Bytes behind the last field are ignored.

    Raises:
        UnsupportedVersion: no such API or version.
        WireFormatError: the bytes do not parse.
    """
    read = _reader(api, version, response=True)
    reader = FrameReader(frame, "frame")
    correlation_id = reader.int32("correlation id")
    if _has_tagged_header(api, version):
        reader.pass_over_tags(_RESPONSE_HEADER)
    return correlation_id, read(reader)


# -- messages and bytes --------------------------------------------------------------------


def encode_request(
    request: Request, version: int, *, correlation_id: int, client_id: str | None = None
) -> bytes:
    """A request as a client sends it.

    Raises:
        DataError: a value that its field's type cannot say.
        UnsupportedVersion: no such version, or one that cannot say what the request holds.
    """
    header = RequestHeader(
        api_key=request.api_key,
        api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    layout_of(request.api_key, version, response=False)
    return request_frame(header, request_fields(request, version))


def decode_request(frame: bytes) -> tuple[RequestHeader, Request]:
    """A request as a broker receives it, with its header.

    Raises:
        UnsupportedVersion: no such group API or version; `read_header` tells which.
        WireFormatError: the bytes do not parse.
    """
    if len(frame) >= _HEADER_START.size:
        api_key, api_version, correlation_id = _HEADER_START.unpack_from(frame)
        usual = read_usual_request(api_key, api_version, frame)
        if usual is not None:
            return RequestHeader(
                api_key=api_key,
                api_version=api_version,
                correlation_id=correlation_id,
                client_id=usual[0],
            ), usual[1]
    reader = FrameReader(frame, "frame")
    header = _read_header(reader)
    api = _api(header)
    if api not in GROUP_SCHEMAS:
        raise UnsupportedVersion(f"{api.name} is not one of the group APIs")
    return header, request_from(api, header.api_version, _read_request(reader, header))


def decode_group_request(api: ApiKey, version: int, frame: bytes) -> tuple[str | None, Request]:
    """The client id and the request of a frame whose API and version are known already.

    It saves the header, which costs as much as a Heartbeat.

    Raises:
        UnsupportedVersion: no such group API or version.
        WireFormatError: the bytes do not parse.
    """
    usual = read_usual_request(api, version, frame)
    if usual is not None:
        return usual
    header, request = decode_request(frame)
    return header.client_id, request


def encode_response(
    api: ApiKey,
    version: int,
    response: Response,
    *,
    correlation_id: int,
    request: Request | None = None,
) -> bytes:
    """A response as a broker sends it, in the version of its request.

    The request names the partitions that OffsetFetch 0 and 1 repeat with a group's error.

    Raises:
        DataError: a value that its field's type cannot say.
        UnsupportedVersion: no such API or version, or one that cannot say the response.
    """
    usual = write_usual_response(api, version, correlation_id, response)
    if usual is not None:
        return usual
    layout_of(api, version, response=True)
    fields = response_fields(api, version, response, request)
    return response_frame(api, version, correlation_id, fields)


def decode_response(
    api: ApiKey, version: int, frame: bytes, *, request: Request | None = None
) -> tuple[int, Response]:
    """A response as a client receives it, with its correlation id.

    The request names the group or key that old versions do not repeat.

    Raises:
        UnsupportedVersion: no such API or version.
        WireFormatError: the bytes do not parse, or hold an error code that no group API answers.
    """
    correlation_id, fields = read_response_frame(api, version, frame)
    try:
        return correlation_id, response_from(api, version, fields, request)
    except DataError as error:
        raise WireFormatError(str(error), len(frame)) from None
