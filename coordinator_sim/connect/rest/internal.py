"""The resources under `/connectors` that workers ask of one another, with signatures.

Source: kafka trunk, connect/runtime/.../rest/resources/InternalClusterResource.java.
"""

import base64

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.connect.herding.requests import FenceZombies, PutTaskConfigs
from coordinator_sim.connect.rest.call import Call, do
from coordinator_sim.connect.rest.forwarding import RequestHandler
from coordinator_sim.connect.rest.http import (
    BAD_REQUEST,
    INTERNAL_SERVER_ERROR,
    RestError,
    json_in,
    string_map,
    without_nulls,
)
from coordinator_sim.connect.rest.signatures import BadSignature, RequestSignature, signature_of
from coordinator_sim.connect.stores.json_converter import to_json
from coordinator_sim.connect.thread import Blocking


class InternalResource:
    """Requests that only workers send.

    Args:
        handler: Waits for the herder, which checks the signatures.
    """

    def __init__(self, handler: RequestHandler) -> None:
        self._handler = handler

    def put_task_configs(self, call: Call) -> Blocking[HttpResponse]:
        """POST /connectors/{connector}/tasks, signed.

        QUIRK: forwarded to yet another worker, the request loses its signature and is refused
        there.
        """
        configs = _task_configs_in(call.request)
        request = PutTaskConfigs(
            connector=call.connector, configs=configs, signature=_signature(call.request)
        )
        return (yield from do(self._handler, request, call, body=to_json(configs)))

    def fence(self, call: Call) -> Blocking[HttpResponse]:
        """PUT /connectors/{connector}/fence, signed."""
        request = FenceZombies(connector=call.connector, signature=_signature(call.request))
        # QUIRK: a forwarded request carries its bytes as JSON does: a base64 text, even of none.
        body = b'"' + base64.b64encode(call.request.body) + b'"'
        return (yield from do(self._handler, request, call, body=body))


def _task_configs_in(request: HttpRequest) -> tuple[dict[str, str], ...]:
    """Return the task configurations of a body with any content type."""
    value = json_in(
        HttpRequest(
            method=request.method,
            target=request.target,
            headers={"content-type": "application/json"},
            body=request.body,
        ),
        numbers_as_text=True,
    )
    if not isinstance(value, list):
        raise RestError(INTERNAL_SERVER_ERROR, "Cannot deserialize task configurations: no array")
    return tuple(without_nulls(string_map(each)) for each in value)


def _signature(request: HttpRequest) -> RequestSignature | None:
    try:
        return signature_of(request.headers, request.body)
    except BadSignature as error:
        raise RestError(BAD_REQUEST, str(error)) from error
