"""A request routed to one resource, and helpers that resources share.

Source: kafka trunk, connect/runtime/.../rest/resources/ConnectorsResource.java.
"""

from collections.abc import Callable

from msgspec import Struct

from coordinator_sim.connect.effects import HttpRequest, HttpResponse
from coordinator_sim.connect.herding.requests import Request
from coordinator_sim.connect.rest import http
from coordinator_sim.connect.rest.forwarding import Forward, RequestHandler
from coordinator_sim.connect.thread import Blocking
from coordinator_sim.kafka.java_numbers import java_int
from coordinator_sim.kafka.resources import ConnectorTaskId


class Call(Struct, frozen=True):
    """A request for one resource.

    Args:
        names: Names in the path, in order: a connector, a task.
        target: Path and query of the request.
        request: The HTTP request as received.
    """

    names: tuple[str, ...]
    target: http.Target
    request: HttpRequest

    @property
    def connector(self) -> str:
        """Connector that the path names."""
        return self.names[0]

    def task(self) -> ConnectorTaskId:
        """Return the task that the path names.

        Raises:
            RestError: 404 when the task number is not a number.
        """
        number = java_int(self.names[1])
        if number is None:
            raise http.RestError(http.NOT_FOUND, http.status_text(http.NOT_FOUND))
        return ConnectorTaskId(self.connector, number)

    def forward(
        self, *, body: bytes | None = None, query: tuple[tuple[str, str], ...] = ()
    ) -> Forward:
        """Return the call in the form in which another worker receives it."""
        return Forward(
            method=self.request.method,
            path=http.path_of(*self.target.segments),
            query=query,
            body=body,
            headers=self.request.headers,
            flag=self.target.flag("forward"),
        )


Resource = Callable[[Call], Blocking[HttpResponse]]
"""Answers a request; may wait for the herder."""


def do(
    handler: RequestHandler, request: Request, call: Call, *, body: bytes | None = None
) -> Blocking[HttpResponse]:
    """Run a request here or on another worker, and answer 204 without a body."""
    yield from handler.complete_or_forward(request, call.forward(body=body))
    return http.empty_response(http.NO_CONTENT)
