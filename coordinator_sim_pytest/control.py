"""A client of a served cluster's control surface: JSON over HTTP, by the standard library."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from coordinator_sim.errors import CoordinatorSimError

PATIENCE_S = 60
"""Seconds that an answer may take."""


class ControlRefused(CoordinatorSimError):
    """The control surface did not do it; the message is its own.

    Args:
        message: Why.
        status: Of HTTP.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message, status)
        self.status = status

    def __str__(self) -> str:
        """The reason."""
        return str(self.args[0])


class ControlClient:
    """Speaks to one server.

    Args:
        url: As its ready line has it.
    """

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")

    def get(self, path: str, **query: Any) -> Any:  # noqa: ANN401 - JSON
        """What is there.

        Args:
            path: Such as `/v1/groups`.
            query: Parameters; those that are None are left out.
        """
        wanted = {name: value for name, value in query.items() if value is not None}
        return self._send("GET", f"{path}?{urlencode(wanted)}" if wanted else path)

    def post(self, path: str, body: Mapping[str, Any] | bytes | None = None) -> Any:  # noqa: ANN401 - JSON
        """Do something."""
        return self._send("POST", path, body)

    def put(self, path: str, body: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON
        """Set something."""
        return self._send("PUT", path, body)

    def delete(self, path: str) -> Any:  # noqa: ANN401 - JSON
        """Take something away."""
        return self._send("DELETE", path)

    def _send(self, method: str, path: str, body: Mapping[str, Any] | bytes | None = None) -> Any:  # noqa: ANN401 - JSON
        """Ask, and read the answer.

        Raises:
            ControlRefused: the server did not do it.
            OSError: it is gone.
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
