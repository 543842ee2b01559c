"""Requests that one worker sends to another by itself, signed with the session key.

The REST layer forwards users' requests. This module makes no decisions.

Source: kafka trunk, connect/runtime/.../rest/RestClient.java, httpRequest;
rest/InternalRequestSignature.java, addToRequest.
"""

import json
from typing import Final, cast
from urllib.parse import quote

from coordinator_sim.connect.effects import CallHttp, HttpRequest, HttpResponse
from coordinator_sim.connect.herding.refusals import ConnectRestException
from coordinator_sim.connect.rest.signatures import signature_headers
from coordinator_sim.connect.stores.config_records import SessionKey
from coordinator_sim.connect.thread import Blocking, Outbox, Wait

_ERROR: Final = 400
_INTERNAL_SERVER_ERROR: Final = 500


class InternalRequests:
    """Sends requests to other workers.

    Args:
        outbox: The worker's outbox.
        signature_algorithm: `inter.worker.signature.algorithm`.
    """

    def __init__(self, outbox: Outbox, signature_algorithm: str = "HmacSHA256") -> None:
        self._outbox = outbox
        self._signature_algorithm = signature_algorithm

    def put_task_configs(
        self,
        leader_url: str,
        connector: str,
        configs: list[dict[str, str]],
        key: SessionKey | None,
    ) -> Blocking[None]:
        """Ask the leader to write a connector's task configurations.

        Raises:
            ConnectRestException: the leader refuses, or cannot be reached (500).
        """
        body = json.dumps(configs, ensure_ascii=False, separators=(",", ":")).encode()
        target = f"/connectors/{quote(connector, safe='')}/tasks"
        yield from self._send(leader_url, "POST", target, body=body, key=key)

    def fence_zombies(
        self, leader_url: str, connector: str, key: SessionKey | None
    ) -> Blocking[None]:
        """Ask the leader to fence the older tasks of a connector.

        Raises:
            ConnectRestException: the leader refuses, or cannot be reached (500).
        """
        target = f"/connectors/{quote(connector, safe='')}/fence"
        yield from self._send(leader_url, "PUT", target, body=None, key=key)

    def _send(
        self, url: str, method: str, target: str, *, body: bytes | None, key: SessionKey | None
    ) -> Blocking[None]:
        headers = {"accept": "application/json", "user-agent": "kafka-connect"}
        if body is not None:
            headers["content-type"] = "application/json"
        if key is not None:
            headers |= signature_headers(key.key, body or b"", self._signature_algorithm)
        request = HttpRequest(method=method, target=target, headers=headers, body=body or b"")
        called = self._outbox.ask(
            lambda token: CallHttp(token=token, url=url.rstrip("/"), request=request)
        )
        yield Wait(called)
        if called.error is not None:
            raise ConnectRestException(
                _INTERNAL_SERVER_ERROR,
                f"IO Error trying to forward REST request: {called.error}",
            )
        response = cast("HttpResponse", called.value)
        if response.status >= _ERROR:
            raise ConnectRestException(response.status, _message(response.body))


def _message(body: bytes) -> str:
    """Return the message in an error's body, or the whole body when it is not Connect's."""
    try:
        parsed = json.loads(body)
    except ValueError:
        return body.decode(errors="replace")
    message = parsed.get("message") if isinstance(parsed, dict) else None
    return message if isinstance(message, str) else body.decode(errors="replace")
