"""Every message that a version can say survives its bytes and its JSON."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_sim.harness.kafka_json import (
    read_request,
    read_response,
    write_request,
    write_response,
)
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.log.format.steps import finished
from coordinator_sim.messages import catalogue, requests, schema
from coordinator_sim.messages.codec import answers, compiler, frames
from coordinator_sim_conformance import field_frames

pytestmark = pytest.mark.property

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BITS = {schema.Kind.INT8: 8, schema.Kind.INT16: 16, schema.Kind.INT32: 32, schema.Kind.INT64: 64}


def integers(bits: int) -> st.SearchStrategy[int]:
    """Signed integers of so many bits."""
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


SIMPLE: dict[schema.Kind, st.SearchStrategy[Any]] = {
    schema.Kind.BOOLEAN: st.booleans(),
    schema.Kind.STRING: TEXT,
    schema.Kind.BYTES: st.binary(max_size=12),
    schema.Kind.UUID: st.binary(min_size=16, max_size=16),
    schema.Kind.FLOAT64: st.floats(allow_nan=False),
    **{kind: integers(bits) for kind, bits in BITS.items()},
    schema.Kind.UINT16: st.integers(0, (1 << 16) - 1),
}
ERRORS = st.sampled_from([int(error) for error in ErrorCode])


def values(each: schema.VersionField) -> st.SearchStrategy[Any]:
    """What a field may hold."""
    field = each.field
    if field.is_error_code:
        drawn = ERRORS
    elif field.name == "throttleTimeMs":
        drawn = st.just(0)
    elif each.layout is not None:
        drawn = fields(each.layout)
    else:
        drawn = SIMPLE[field.element or field.kind]
    if field.element is not None:
        drawn = st.lists(drawn, max_size=2)
    return st.none() | drawn if each.is_nullable else drawn


def fields(layout: schema.Layout) -> st.SearchStrategy[field_frames.Fields]:
    """A struct with every field of its version."""
    return st.fixed_dictionaries({each.field.name: values(each) for each in layout.present})


@st.composite
def apis(draw: st.DrawFn) -> tuple[ApiKey, int]:
    """A group API and one of its versions."""
    api = draw(st.sampled_from(requests.GROUP_APIS))
    return api, draw(st.integers(catalogue.oldest_version(api), catalogue.newest_version(api)))


@given(apis(), st.data(), st.integers(-(1 << 31), (1 << 31) - 1), st.none() | TEXT)
def test_requests_survive(
    api: tuple[ApiKey, int], data: st.DataObject, correlation_id: int, client_id: str | None
) -> None:
    """decode(encode(m)) == m, in bytes with its header and in JSON."""
    key, version = api
    layout = catalogue.layout_of(key, version, response=False)
    request = field_frames.message_from(key, version, data.draw(fields(layout)), response=False)
    frame = frames.encode_request(
        request, version, correlation_id=correlation_id, client_id=client_id
    )
    header, read = frames.decode_request(frame)
    assert read == request
    assert (header.correlation_id, header.client_id) == (correlation_id, client_id)
    assert (header.api_key, header.api_version) == (key, version)
    assert read_request(catalogue.name_of(key), version, write_request(request, version)) == request


@given(apis(), st.data(), st.integers(-(1 << 31), (1 << 31) - 1))
def test_responses_survive(
    api: tuple[ApiKey, int], data: st.DataObject, correlation_id: int
) -> None:
    """decode(encode(m)) == m, beside the request that it answers."""
    key, version = api
    drawn = data.draw(fields(catalogue.layout_of(key, version, response=False)))
    asked = field_frames.message_from(key, version, drawn, response=False)
    said = data.draw(fields(catalogue.layout_of(key, version, response=True)))
    response = answers.understood(
        field_frames.message_from(key, version, said, response=True), version, asked
    )
    if key in (ApiKey.JOIN_GROUP, ApiKey.FIND_COORDINATOR):
        # An empty protocol name and the message of no error are said in the version's own way.
        first = frames.encode_response(response, version, correlation_id=0, request=asked)
        response = frames.decode_response(key, version, first, request=asked)[1]
    frame = frames.encode_response(response, version, correlation_id=correlation_id, request=asked)
    assert frames.decode_response(key, version, frame, request=asked) == (correlation_id, response)
    written = write_response(asked, version, response)
    assert read_response(catalogue.name_of(key), version, written, asked) == response


@given(st.sampled_from(list(catalogue.API_NAMES)), st.data(), integers(32), st.none() | TEXT)
def test_fields_survive(
    api: ApiKey, data: st.DataObject, correlation_id: int, client_id: str | None
) -> None:
    """What a version can say of any API is read as it was written, in steps or not."""
    version = data.draw(st.integers(catalogue.oldest_version(api), catalogue.newest_version(api)))
    asked = data.draw(fields(catalogue.layout_of(api, version, response=False)))
    said = data.draw(fields(catalogue.layout_of(api, version, response=True)))
    header = frames.RequestHeader(
        api_key=api, api_version=version, correlation_id=correlation_id, client_id=client_id
    )

    assert field_frames.read_request_frame(field_frames.request_frame(header, asked)) == (
        header,
        asked,
    )
    answer = field_frames.response_frame(api, version, correlation_id, said)
    assert field_frames.read_response_frame(api, version, answer) == (correlation_id, said)
    message = field_frames.message_from(api, version, said, response=True)
    assert finished(compiler.response_steps(api, version)(correlation_id, message)) == answer
