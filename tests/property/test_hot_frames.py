"""What is read and packed by hand is what the general codec reads and writes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.forms import request_from, response_fields, response_from
from coordinator_sim.wire.frames import (
    RequestHeader,
    decode_group_request,
    read_request_frame,
    request_frame,
    response_frame,
)
from coordinator_sim.wire.hot_requests import read_usual_request
from coordinator_sim.wire.hot_responses import write_usual_response
from coordinator_sim.wire.schemas import layout_of
from tests.property.test_wire_round_trips import TEXT, fields, integers

pytestmark = pytest.mark.property

READ = {
    ApiKey.HEARTBEAT: range(5),
    ApiKey.OFFSET_COMMIT: range(2, 10),
    ApiKey.OFFSET_FETCH: range(8, 10),
    ApiKey.JOIN_GROUP: range(1, 10),
    ApiKey.SYNC_GROUP: range(6),
}
"""The versions whose requests have a reader of their own."""
WRITTEN = {
    ApiKey.HEARTBEAT: range(5),
    ApiKey.OFFSET_COMMIT: range(10),
    ApiKey.OFFSET_FETCH: range(2, 10),
    ApiKey.JOIN_GROUP: range(10),
    ApiKey.SYNC_GROUP: range(6),
}
"""The versions whose answers have a packer of their own."""
HOT_READS = [(api, version) for api, versions in READ.items() for version in versions]
HOT_WRITES = [(api, version) for api, versions in WRITTEN.items() for version in versions]


def read_generally(frame: bytes) -> tuple[str | None, Any]:
    """The client id and the request as the general codec reads them."""
    header, data = read_request_frame(frame)
    api = ApiKey(header.api_key)
    return header.client_id, request_from(api, header.api_version, data)


def drawn_frame(api: ApiKey, version: int, data: st.DataObject) -> bytes:
    """A frame with any request that the version can say."""
    header = RequestHeader(
        api_key=api,
        api_version=version,
        correlation_id=data.draw(integers(32)),
        client_id=data.draw(TEXT),
    )
    return request_frame(header, data.draw(fields(layout_of(api, version, response=False))))


@pytest.mark.parametrize(("api", "version"), HOT_READS)
@settings(max_examples=60)
@given(data=st.data())
def test_a_usual_request_is_read_as_the_general_codec_reads_it(
    api: ApiKey, version: int, data: st.DataObject
) -> None:
    """Short texts and small arrays are usual: the reader does not give up."""
    frame = drawn_frame(api, version, data)

    assert read_usual_request(api, version, frame) == read_generally(frame)


@pytest.mark.parametrize(("api", "version"), HOT_READS)
@settings(max_examples=200)
@given(data=st.data())
def test_a_broken_request_is_never_read_as_another(
    api: ApiKey, version: int, data: st.DataObject
) -> None:
    """Cut anywhere or with a byte changed: the same request, or the general codec's error."""
    frame = bytearray(drawn_frame(api, version, data))
    at = data.draw(st.integers(8, len(frame) - 1))
    if data.draw(st.booleans()):
        del frame[at:]
    else:
        frame[at] = data.draw(st.integers(0, 255))
    try:
        wanted = read_generally(bytes(frame))
    except CoordinatorSimError as error:
        assert read_usual_request(api, version, bytes(frame)) is None
        with pytest.raises(type(error)):
            decode_group_request(api, version, bytes(frame))
    else:
        assert read_usual_request(api, version, bytes(frame)) in (None, wanted)
        assert decode_group_request(api, version, bytes(frame)) == wanted


@pytest.mark.parametrize(("api", "version"), HOT_WRITES)
@settings(max_examples=60)
@given(data=st.data())
def test_a_packed_answer_has_the_bytes_of_the_general_codec(
    api: ApiKey, version: int, data: st.DataObject
) -> None:
    """All versions, any error, any offset; what a version cannot say is left to the codec."""
    newest = layout_of(api, WRITTEN[api][-1], response=True)
    said = data.draw(fields(newest))
    response = response_from(api, WRITTEN[api][-1], said)
    correlation_id = data.draw(integers(32))
    if api is ApiKey.OFFSET_FETCH and version < 8 and len(response.groups) != 1:
        return
    packed = write_usual_response(api, version, correlation_id, response)
    try:
        wanted = response_frame(
            api, version, correlation_id, response_fields(api, version, response)
        )
    except CoordinatorSimError:
        assert packed is None
    else:
        assert packed == wanted
