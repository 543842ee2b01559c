"""Our messages as Kafka's fields: what each version of each group API says of them."""

from typing import Any, Final

from coordinator_sim.errors import UnsupportedVersion
from coordinator_sim.protocol.api_keys import ApiKey
from coordinator_sim.protocol.requests import Request, Response
from coordinator_sim.wire.forms import admin, membership, offsets, transactions
from coordinator_sim.wire.forms.form import Form
from coordinator_sim.wire.schema import Data

_FORMS: Final[dict[ApiKey, Form[Any, Any]]] = {
    ApiKey.OFFSET_COMMIT: offsets.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH: offsets.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR: membership.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP: membership.JOIN_GROUP,
    ApiKey.HEARTBEAT: membership.HEARTBEAT,
    ApiKey.LEAVE_GROUP: membership.LEAVE_GROUP,
    ApiKey.SYNC_GROUP: membership.SYNC_GROUP,
    ApiKey.DESCRIBE_GROUPS: admin.DESCRIBE_GROUPS,
    ApiKey.LIST_GROUPS: admin.LIST_GROUPS,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.ADD_OFFSETS_TO_TXN,
    ApiKey.WRITE_TXN_MARKERS: transactions.WRITE_TXN_MARKERS,
    ApiKey.TXN_OFFSET_COMMIT: transactions.TXN_OFFSET_COMMIT,
    ApiKey.DELETE_GROUPS: admin.DELETE_GROUPS,
    ApiKey.OFFSET_DELETE: offsets.OFFSET_DELETE,
}


def _form(api: ApiKey) -> Form[Any, Any]:
    form = _FORMS.get(api)
    if form is None:
        raise UnsupportedVersion(f"{api.name} is not one of the group APIs")
    return form


def request_from(api: ApiKey, version: int, data: Data) -> Request:
    """The request that a version's fields say; `data` has all of them.

    Raises:
        UnsupportedVersion: not one of the group APIs; nor do the others here take such.
    """
    request: Request = _form(api).read_request(data, version)
    return request


def request_fields(request: Request, version: int) -> Data:
    """A request's fields, those of other versions among them.

    Raises:
        UnsupportedVersion: the version speaks of one group, key or member, the request of more.
    """
    return _form(request.api_key).write_request(request, version)


def response_from(
    api: ApiKey, version: int, data: Data, request: Request | None = None
) -> Response:
    """The response that a version's fields say; `data` has all of them.

    The request names the group or key that old versions do not repeat; None leaves it empty.

    Raises:
        DataError: an error code that no group API answers.
    """
    response: Response = _form(api).read_response(data, version, request)
    return response


def response_fields(
    api: ApiKey, version: int, response: Response, request: Request | None = None
) -> Data:
    """A response's fields, those of other versions among them.

    The request names the partitions that OffsetFetch 0 and 1 repeat with a group's error.
    """
    return _form(api).write_response(response, version, request)
