"""Frames by the names of Kafka's fields, for tests and tools that inspect messages by field.

A message is a dict of Kafka's field names: integers, booleans, strings, bytes (a uuid is 16 of
them), None, such dicts, and lists of all these. Absent fields are at their defaults.
"""

from importlib import import_module
from typing import Any

from msgspec import Struct

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ERRORS, ErrorCode
from coordinator_sim.messages.catalogue import layout_of, name_of, structs_module
from coordinator_sim.messages.codec.compiler import (
    request_reader,
    request_writer,
    response_reader,
    response_writer,
)
from coordinator_sim.messages.codec.frames import RequestHeader, read_header
from coordinator_sim.messages.schema import Kind, Layout, VersionField

Fields = dict[str, Any]
"""A message by Kafka's field names."""


# -- structs and fields --------------------------------------------------------------------


def _said(each: VersionField, value: Any) -> Any:  # noqa: ANN401 - any field
    if isinstance(value, ErrorCode):
        return int(value)
    if each.layout is None or value is None:
        return list(value) if isinstance(value, tuple) else value
    if each.field.kind is Kind.STRUCT:
        return fields_of(each.layout, value)
    return [fields_of(each.layout, item) for item in value]


def fields_of(layout: Layout, message: Struct) -> Fields:
    """Return the fields of a version, from our struct."""
    entry: Any = None
    if layout.entries is not None:
        (entry,) = getattr(message, layout.entries.attribute)
    fields: Fields = {}
    for each in layout.present:
        owner = entry if each.is_inlined else message
        is_whole = each.is_inlined and not isinstance(entry, Struct)
        value = owner if is_whole else getattr(owner, each.field.attribute)
        fields[each.field.name] = _said(each, value)
    return fields


def _understood(each: VersionField, value: Any, structs: Any) -> Any:  # noqa: ANN401 - any field
    if each.field.is_error_code:
        return ERRORS[value]
    if each.layout is None or value is None:
        return tuple(value) if isinstance(value, list) else value
    if each.field.kind is Kind.STRUCT:
        return struct_of(each.layout, value, structs)
    return tuple(struct_of(each.layout, item, structs) for item in value)


def struct_of(layout: Layout, fields: Fields, structs: Any) -> Any:  # noqa: ANN401 - any message
    """Return our struct, from the fields of a version.

    Raises:
        UnsupportedVersion: the version lacks a field, and it must not be dropped.
    """
    for field in layout.absent:
        if not field.ignorable and fields.get(field.name, field.default) != field.default:
            raise UnsupportedVersion(
                f"{layout.name} version {layout.version} cannot say {field.name}"
            )
    own: Fields = {}
    inlined: Fields = {}
    for each in layout.present:
        if each.field.name in fields:
            value = _understood(each, fields[each.field.name], structs)
            (inlined if each.is_inlined else own)[each.field.attribute] = value
    if layout.entries is not None:
        name = layout.entries.struct_name
        entry = getattr(structs, name)(**inlined) if name else next(iter(inlined.values()), "")
        own[layout.entries.attribute] = (entry,)
    return getattr(structs, layout.struct_name)(**own)


def message_from(api: ApiKey, version: int, fields: Fields, *, response: bool) -> Any:  # noqa: ANN401
    """Return a request or response from its fields."""
    layout = layout_of(api, version, response=response)
    return struct_of(layout, fields, import_module(structs_module(name_of(api))))


# -- frames --------------------------------------------------------------------------------


def request_frame(header: RequestHeader, fields: Fields) -> bytes:
    """Encode a request as a client sends it.

    Raises:
        DataError: a value does not fit its field's type.
        UnsupportedVersion: no such API or version, or one that cannot express a field.
    """
    api, version = ApiKey(header.api_key), header.api_version
    message = message_from(api, version, fields, response=False)
    return request_writer(api, version)(header.correlation_id, header.client_id, message)


def response_frame(api: ApiKey, version: int, correlation_id: int, fields: Fields) -> bytes:
    """Encode a response as a broker sends it.

    Raises:
        DataError: a value does not fit its field's type.
        UnsupportedVersion: no such API or version, or one that cannot express a field.
    """
    message = message_from(api, version, fields, response=True)
    return response_writer(api, version)(correlation_id, message)


def read_request_frame(frame: bytes) -> tuple[RequestHeader, Fields]:
    """Return a request's header and fields.

    Raises:
        UnsupportedVersion: no such API or version.
        WireFormatError: the bytes do not parse.
    """
    header = read_header(frame)
    api, version = ApiKey(header.api_key), header.api_version
    _, message = request_reader(api, version)(frame)
    return header, fields_of(layout_of(api, version, response=False), message)


def read_response_frame(api: ApiKey, version: int, frame: bytes) -> tuple[int, Fields]:
    """Return a response's correlation id and fields.

    Raises:
        UnsupportedVersion: no such API or version.
        WireFormatError: the bytes do not parse.
    """
    correlation_id, message = response_reader(api, version)(frame)
    return correlation_id, fields_of(layout_of(api, version, response=True), message)
