"""The functions that read and write one version of a message, compiled at their first use."""

from collections.abc import Callable, Generator
from functools import cache
from typing import Any, Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.messages.catalogue import layout_of, name_of, structs_module
from coordinator_sim.messages.codec.read_source import Reading
from coordinator_sim.messages.codec.write_source import Writing
from coordinator_sim.messages.schema import Kind

REQUEST_HEADER: Final = "request header"
RESPONSE_HEADER: Final = "response header"
CORRELATION_ID: Final = "correlation id"
CLIENT_ID: Final = "client id"

_CLIENT_ID_AT: Final = 8
"""Where a request's header has the client id, behind API, version and correlation id."""


def has_tagged_header(api: ApiKey, version: int) -> bool:
    """Whether a response's header may have tagged fields.

    Never that of ApiVersions: its reader does not know yet which version answers.

    Source: ApiKeys.responseHeaderVersion; ApiMessageTypeGenerator, KIP-511.
    """
    return layout_of(api, version, response=True).is_flexible and api is not ApiKey.API_VERSIONS


def has_client_id(api: int, version: int) -> bool:
    """Whether a request's header has a client id: all but that of ControlledShutdown 0.

    Source: ApiMessageTypeGenerator.generateHeaderVersion of 3.9.
    """
    return version > 0 or api != ApiKey.CONTROLLED_SHUTDOWN


@cache
def request_reader(api: ApiKey, version: int) -> Callable[..., tuple[str | None, Any]]:
    """Takes a frame; gives the client id and the request.

    Raises:
        UnsupportedVersion: nobody speaks the API here, or Kafka never had the version.
    """
    layout = layout_of(api, version, response=False)
    name = f"read_{layout.name}_{version}"
    reading = Reading(name, structs_module(name_of(api)), start=_CLIENT_ID_AT)
    client_id = "None"
    if has_client_id(api, version):
        client_id = reading.text(CLIENT_ID, flexible=False, nullable=True)
    if layout.is_flexible:
        reading.tags(REQUEST_HEADER)
    return reading.compiled(f"{client_id}, {reading.struct(layout)}")


@cache
def request_writer(api: ApiKey, version: int) -> Callable[..., bytes]:
    """Takes correlation id, client id and request; gives the frame.

    Raises:
        UnsupportedVersion: nobody speaks the API here, or Kafka never had the version.
    """
    layout = layout_of(api, version, response=False)
    name = f"write_{layout.name}_{version}"
    writing = Writing(name, ("correlation_id", "client_id"), structs_module(name_of(api)))
    writing.constant("h", api)
    writing.constant("h", version)
    writing.number("i", CORRELATION_ID, "correlation_id")
    if has_client_id(api, version):
        writing.text(CLIENT_ID, "client_id", flexible=False, nullable=True)
    if layout.is_flexible:
        writing.no_tags()
    writing.struct(layout, "message")
    return writing.compiled()


@cache
def response_reader(api: ApiKey, version: int) -> Callable[..., tuple[int, Any]]:
    """Takes a frame; gives the correlation id and the response.

    Raises:
        UnsupportedVersion: nobody speaks the API here, or Kafka never had the version.
    """
    layout = layout_of(api, version, response=True)
    reading = Reading(f"read_{layout.name}_{version}", structs_module(name_of(api)))
    correlation_id = reading.number("i", CORRELATION_ID)
    if has_tagged_header(api, version):
        reading.tags(RESPONSE_HEADER)
    return reading.compiled(f"{correlation_id}, {reading.struct(layout)}")


@cache
def has_rows(api: ApiKey, version: int) -> bool:
    """Whether a response has an array of structs at its top level, and so may be long."""
    return any(
        each.field.kind is Kind.ARRAY and each.layout is not None
        for each in layout_of(api, version, response=True).present
    )


@cache
def response_writer(api: ApiKey, version: int) -> Callable[..., bytes]:
    """Takes correlation id and response; gives the frame.

    Raises:
        UnsupportedVersion: nobody speaks the API here, or Kafka never had the version.
    """
    return _response_writing(api, version, in_steps=False)


@cache
def response_steps(api: ApiKey, version: int) -> Callable[..., Generator[int, None, bytes]]:
    """`response_writer` as a generator: yields counts of fields written, returns the frame.

    Raises:
        UnsupportedVersion: nobody speaks the API here, or Kafka never had the version.
    """
    return _response_writing(api, version, in_steps=True)


def _response_writing(api: ApiKey, version: int, *, in_steps: bool) -> Callable[..., Any]:
    layout = layout_of(api, version, response=True)
    name = f"write_{layout.name}_{version}"
    structs = structs_module(name_of(api))
    writing = Writing(name, ("correlation_id",), structs, in_steps=in_steps)
    writing.number("i", CORRELATION_ID, "correlation_id")
    if has_tagged_header(api, version):
        writing.no_tags()
    writing.struct(layout, "message")
    return writing.compiled()
