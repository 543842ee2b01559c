"""JSON to frames and frames to JSON: any program's codec for a real broker.

Source: `encode` and `decode` of the reference (`conformance/oracle`).
"""

from coordinator_sim.errors import WireFormatError
from coordinator_sim.harness.kafka_json.converter import Json, read_fields, write_fields
from coordinator_sim.harness.kafka_json.messages import api_named
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.wire.forms.membership import NULLABLE_PROTOCOL
from coordinator_sim.wire.frames import RequestHeader, read_response_frame, request_frame
from coordinator_sim.wire.schemas import layout_of


def json_to_frame(
    api: str, version: int, data: Json, *, client_id: str = "client", correlation_id: int = 0
) -> bytes:
    """The frame of a request, from its JSON; the top level is filled with defaults.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: no such API or version, or one that cannot say a field.
    """
    key = api_named(api)
    fields = read_fields(layout_of(key, version, response=False), data, defaulted=True)
    header = RequestHeader(
        api_key=key, api_version=version, correlation_id=correlation_id, client_id=client_id
    )
    return request_frame(header, fields)


def frame_to_json(api: str, version: int, frame: bytes, *, correlation_id: int = 0) -> Json:
    """The JSON of a response, from its frame.

    Raises:
        UnsupportedVersion: no such API or version.
        WireFormatError: the bytes do not parse, or answer another request.
    """
    key = api_named(api)
    layout = layout_of(key, version, response=True)
    answered, fields = read_response_frame(key, version, frame)
    if answered != correlation_id:
        raise WireFormatError(
            f"the frame answers correlation id {answered}, not {correlation_id}", 0
        )
    if key is ApiKey.JOIN_GROUP and fields["protocolName"] == "":
        # From version 7 no protocol is null. Source: JoinGroupResponse's constructor.
        fields["protocolName"] = None if layout.version >= NULLABLE_PROTOCOL else ""
    return write_fields(layout, fields)
