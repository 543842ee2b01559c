"""Requests and responses in JSON, in every version of every group API.

What a version cannot say is adapted as the broker does it before sending; the shapes are in
`wire.forms`, the fields in `wire.schemas`.
"""

from typing import Final

from coordinator_sim.harness.kafka_json.converter import Json, read_fields, write_fields
from coordinator_sim.protocol.admin_messages import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    ListGroupsResponse,
    OffsetDeleteResponse,
)
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.messages import (
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from coordinator_sim.protocol.requests import Request, Response
from coordinator_sim.protocol.transaction_messages import (
    AddOffsetsToTxnResponse,
    TxnOffsetCommitResponse,
    WriteTxnMarkersResponse,
)
from coordinator_sim.wire.forms import (
    request_fields,
    request_from,
    response_fields,
    response_from,
)
from coordinator_sim.wire.schemas import layout_of, schema_named

_API_OF: Final[dict[type, ApiKey]] = {
    FindCoordinatorResponse: ApiKey.FIND_COORDINATOR,
    JoinGroupResponse: ApiKey.JOIN_GROUP,
    SyncGroupResponse: ApiKey.SYNC_GROUP,
    HeartbeatResponse: ApiKey.HEARTBEAT,
    LeaveGroupResponse: ApiKey.LEAVE_GROUP,
    OffsetCommitResponse: ApiKey.OFFSET_COMMIT,
    OffsetFetchResponse: ApiKey.OFFSET_FETCH,
    OffsetDeleteResponse: ApiKey.OFFSET_DELETE,
    DescribeGroupsResponse: ApiKey.DESCRIBE_GROUPS,
    ListGroupsResponse: ApiKey.LIST_GROUPS,
    DeleteGroupsResponse: ApiKey.DELETE_GROUPS,
    AddOffsetsToTxnResponse: ApiKey.ADD_OFFSETS_TO_TXN,
    TxnOffsetCommitResponse: ApiKey.TXN_OFFSET_COMMIT,
    WriteTxnMarkersResponse: ApiKey.WRITE_TXN_MARKERS,
}


def api_named(name: str) -> ApiKey:
    """The API of Kafka's name, as `JoinGroup`.

    Raises:
        UnsupportedVersion: not one of the group APIs.
    """
    return schema_named(name).api_key


def read_request(api: str, version: int, data: Json) -> Request:
    """A request from its JSON, by the API's Kafka name.

    Fields that the top level does not name are at their defaults; inside lists all are needed.

    Raises:
        DataError: a field is missing or of another type.
        UnsupportedVersion: no such API or version, or one that cannot say a field.
    """
    key = api_named(api)
    layout = layout_of(key, version, response=False)
    return request_from(key, version, read_fields(layout, data, defaulted=True))


def write_request(request: Request, version: int) -> Json:
    """A request as JSON.

    Raises:
        UnsupportedVersion: no such version, or one that cannot say what the request holds.
    """
    layout = layout_of(request.api_key, version, response=False)
    return write_fields(layout, request_fields(request, version))


def read_response(api: str, version: int, data: Json, request: Request | None = None) -> Response:
    """A response from its JSON, by the API's Kafka name.

    The request names the group or key that old versions do not repeat.

    Raises:
        DataError: a field is missing or of another type, or an unknown error code.
        UnsupportedVersion: no such API or version, or one that cannot say a field.
    """
    key = api_named(api)
    layout = layout_of(key, version, response=True)
    return response_from(key, version, read_fields(layout, data), request)


def write_response(request: Request, version: int, response: Response) -> Json:
    """A response as JSON, in the version its request came in.

    Raises:
        TypeError: the response is not one of the group APIs.
        UnsupportedVersion: the version cannot say what the response holds.
    """
    api = _API_OF.get(type(response))
    if api is None:
        raise TypeError(f"no JSON form of {type(response).__name__}")
    layout = layout_of(api, version, response=True)
    return write_fields(layout, response_fields(api, version, response, request))
