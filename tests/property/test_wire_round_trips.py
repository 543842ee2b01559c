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
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.errors import ErrorCode
from coordinator_sim.wire.forms import request_from, response_from
from coordinator_sim.wire.frames import (
    RequestHeader,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    read_request_frame,
    read_response_frame,
    request_frame,
    response_frame,
)
from coordinator_sim.wire.schema import Data, Kind, Layout, MessageSchema, Slot
from coordinator_sim.wire.schemas import GROUP_SCHEMAS, SCHEMAS, layout_of

pytestmark = pytest.mark.property

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
BITS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}


def integers(bits: int) -> st.SearchStrategy[int]:
    """Signed integers of so many bits."""
    return st.integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1)


SIMPLE: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.STRING: TEXT,
    Kind.BYTES: st.binary(max_size=12),
    Kind.UUID: st.binary(min_size=16, max_size=16),
    Kind.FLOAT64: st.floats(allow_nan=False),
    Kind.STRINGS: st.lists(TEXT, max_size=3),
    Kind.INT8S: st.lists(integers(8), max_size=3),
    Kind.INT32S: st.lists(integers(32), max_size=3),
    Kind.INT64S: st.lists(integers(64), max_size=3),
}
ERRORS = st.sampled_from([int(error) for error in ErrorCode])


def values(slot: Slot) -> st.SearchStrategy[Any]:
    """What a field may hold."""
    if slot.name == "errorCode":
        drawn = ERRORS
    elif slot.name == "throttleTimeMs":
        drawn = st.just(0)
    elif slot.layout is not None:
        drawn = fields(slot.layout)
        if slot.kind is Kind.STRUCTS:
            drawn = st.lists(drawn, max_size=2)
    elif slot.kind in BITS:
        drawn = integers(BITS[slot.kind])
    else:
        drawn = SIMPLE[slot.kind]
    return st.none() | drawn if slot.nullable else drawn


def fields(layout: Layout) -> st.SearchStrategy[Data]:
    """A struct with every field of its version."""
    return st.fixed_dictionaries({slot.name: values(slot) for slot in layout.present})


@st.composite
def apis(draw: st.DrawFn) -> tuple[MessageSchema, int]:
    """A group API and one of its versions."""
    schema = draw(st.sampled_from(list(GROUP_SCHEMAS.values())))
    return schema, draw(st.integers(0, schema.newest))


@given(apis(), st.data(), st.integers(-(1 << 31), (1 << 31) - 1), st.none() | TEXT)
def test_requests_survive(
    api: tuple[MessageSchema, int],
    data: st.DataObject,
    correlation_id: int,
    client_id: str | None,
) -> None:
    """decode(encode(m)) == m, in bytes with its header and in JSON."""
    schema, version = api
    layout = layout_of(schema.api_key, version, response=False)
    request = request_from(schema.api_key, version, data.draw(fields(layout)))
    frame = encode_request(request, version, correlation_id=correlation_id, client_id=client_id)
    header, read = decode_request(frame)
    assert read == request
    assert (header.correlation_id, header.client_id) == (correlation_id, client_id)
    assert (header.api_key, header.api_version) == (schema.api_key, version)
    assert read_request(schema.name, version, write_request(request, version)) == request


@given(apis(), st.data(), st.integers(-(1 << 31), (1 << 31) - 1))
def test_responses_survive(
    api: tuple[MessageSchema, int], data: st.DataObject, correlation_id: int
) -> None:
    """decode(encode(m)) == m, beside the request that it answers."""
    schema, version = api
    key = schema.api_key
    asked = request_from(key, version, data.draw(fields(layout_of(key, version, response=False))))
    said = data.draw(fields(layout_of(key, version, response=True)))
    response = response_from(key, version, said, asked)
    if key in (ApiKey.JOIN_GROUP, ApiKey.FIND_COORDINATOR):
        # An empty protocol name and the message of no error are said in the version's own way.
        first = encode_response(key, version, response, correlation_id=0)
        response = decode_response(key, version, first, request=asked)[1]
    frame = encode_response(key, version, response, correlation_id=correlation_id, request=asked)
    assert decode_response(key, version, frame, request=asked) == (correlation_id, response)
    written = write_response(asked, version, response)
    assert read_response(schema.name, version, written, asked) == response


@given(st.sampled_from(list(SCHEMAS.values())), st.data(), integers(32), st.none() | TEXT)
def test_fields_survive(
    schema: MessageSchema, data: st.DataObject, correlation_id: int, client_id: str | None
) -> None:
    """What a version can say of any API is read as it was written, tagged or not."""
    api, version = schema.api_key, data.draw(st.integers(0, schema.newest))
    asked = data.draw(fields(layout_of(api, version, response=False)))
    said = data.draw(fields(layout_of(api, version, response=True)))
    header = RequestHeader(
        api_key=api, api_version=version, correlation_id=correlation_id, client_id=client_id
    )

    assert read_request_frame(request_frame(header, asked)) == (header, asked)
    answer = response_frame(api, version, correlation_id, said)
    assert read_response_frame(api, version, answer) == (correlation_id, said)
