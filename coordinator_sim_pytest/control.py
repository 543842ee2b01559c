"""A client of a served cluster's control surface: JSON over HTTP, with the standard library."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from coordinator_sim.errors import CoordinatorSimError

PATIENCE_S = 60
"""Timeout of an answer in seconds."""


class ControlRefused(CoordinatorSimError):
    """Refusal of the control surface, with its message.

    Args:
        message: Reason of the refusal.
        status: HTTP status.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.status = status

    def __str__(self) -> str:
        """Return the reason."""
        return str(self.args[0])


class ControlClient:
    """Client of one server.

    Args:
        url: URL from the server's ready line.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def get(self, path: str, **query: Any) -> Any:  # noqa: ANN401 - JSON
        """Send a GET and return its JSON.

        Args:
            path: Path such as `/v1/groups`.
            query: Parameters; those that are None are left out.
        """
        wanted = {name: value for name, value in query.items() if value is not None}
        return self._send("GET", f"{path}?{urlencode(wanted)}" if wanted else path)

    def post(self, path: str, body: Mapping[str, Any] | bytes | None = None) -> Any:  # noqa: ANN401 - JSON
        """Send a POST and return its JSON."""
        return self._send("POST", path, body)

    def put(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Send a PUT and return its JSON."""
        return self._send("PUT", path, body)

    def delete(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Send a DELETE and return its JSON."""
        return self._send("DELETE", path)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | bytes | None = None) -> Any:  # noqa: ANN401 - JSON
        """Send a request and return the answer.

        Raises:
            ControlRefused: the server refuses the request.
            OSError: the server has ended.
        """
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        request = Request(self.url + path, data, method=method)  # noqa: S310 - the server's own URL
        request.add_header("Content-Type", "application/json")
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:  # noqa: S310 - as above
                content = answer.read()
        except HTTPError as error:
            with error:
                text = error.read().decode(errors="replace")
            raise ControlRefused(f"{method} {path}: {text}", error.code) from None
        return json.loads(content) if content else None
