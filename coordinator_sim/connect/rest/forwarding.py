"""Wait for the herder on behalf of a REST request, and forward to another worker if needed.

A user's request makes at most two hops: the first worker forwards it with `forward=true`, the
second with `forward=false`, the third refuses it.

Source: kafka trunk, connect/runtime/.../rest/HerderRequestHandler.java, RestClient.java.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar, cast
from urllib.parse import urlencode

from msgspec import Struct

from coordinator_sim.connect.effects import CallHttp, HttpRequest, HttpResponse
from coordinator_sim.connect.herding.requests import ErrorKind, Outcome, Request, RequestFailed
from coordinator_sim.connect.rest.http import (
    CONFLICT,
    INTERNAL_SERVER_ERROR,
    JSON,
    NO_CONTENT,
    RestError,
)
from coordinator_sim.connect.thread import Blocking, Outbox, Pending, Wait
from coordinator_sim.errors import InvariantViolation

R = TypeVar("R")

REQUEST_TIMEOUT_MS: Final = 90_000
"""RestServer.DEFAULT_REST_REQUEST_TIMEOUT_MS."""
HEALTH_CHECK_TIMEOUT_MS: Final = 10_000
"""RestServer.DEFAULT_HEALTH_CHECK_TIMEOUT_MS."""
_FIRST_ERROR: Final = 400
_FIRST_REDIRECT: Final = 300


class Stage(Protocol):
    """What the herder's thread is doing, or has done last."""

    @property
    def description(self) -> str:
        """A phrase such as "reading to the end of the config topic"."""
        ...

    @property
    def started_ms(self) -> int:
        """When the stage began."""
        ...

    @property
    def completed_ms(self) -> int | None:
        """When the stage ended; None while it lasts."""
        ...


class RestHerder(Protocol):
    """The herder as the REST resources see it."""

    def submit(self, request: Request) -> Pending[Outcome]:
        """Submit a request to the herder; the result is completed with its outcome."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether a tick has ended since the start."""
        ...

    @property
    def stage(self) -> Stage | None:
        """Present stage of the herder's thread; None when it is not known."""
        ...

    @property
    def logger_levels(self) -> Mapping[str, str]:
        """Log levels set for the whole cluster, by namespace."""
        ...


class Forward(Struct, frozen=True, kw_only=True):
    """A request in the form sent to another worker.

    Args:
        path: Encoded path.
        query: Parameters besides `forward`, in order.
        body: JSON body; None without one.
        headers: Headers of the original request; only the authorization is passed on.
        flag: The `forward` parameter of the original request; None for a user's own.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: Mapping[str, str]
    flag: bool | None


class ForwardedAnswer(Struct, frozen=True):
    """Answer of another worker: the value of its JSON body, None without one."""

    status: int
    value: object


class RequestHandler:
    """Completes requests by the herder of this worker or by another worker.

    Args:
        herder: The herder of this worker.
        outbox: The outbox of this worker.
    """

    def __init__(self, herder: RestHerder, outbox: Outbox) -> None:
        self.herder = herder
        self._outbox = outbox

    @property
    def now_ms(self) -> int:
        """The present instant."""
        return self._outbox.now_ms

    def complete(self, request: Request, kind: type[R]) -> Blocking[R]:
        """Have the herder run a request, and return its result.

        Args:
            request: The request to run.
            kind: Type of the result.

        Raises:
            RestError: the HTTP error of the request's failure; 500 after 90 seconds.
        """
        outcome = yield from self._outcome(request)
        if isinstance(outcome, RequestFailed):
            raise RestError(outcome.status, outcome.message)
        if not isinstance(outcome, kind):
            raise InvariantViolation(f"{request} was answered with {outcome}")
        return outcome

    def complete_or_forward(
        self, request: Request, forward: Forward
    ) -> Blocking[Outcome | ForwardedAnswer]:
        """Have a request run by the herder, or by the worker that it names.

        Raises:
            RestError: see `complete`; 409 when no worker can be asked, or a rebalance is near.
        """
        outcome = yield from self._outcome(request)
        match outcome:
            case RequestFailed(kind=kind, forward_url=url) if kind.is_redirect:
                return (yield from self._forward(forward, url))
            case RequestFailed(kind=ErrorKind.REBALANCE_NEEDED):
                raise RestError(
                    CONFLICT,
                    "Cannot complete request momentarily due to stale configuration "
                    "(typically caused by a concurrent config change)",
                )
            case RequestFailed():
                raise RestError(outcome.status, outcome.message)
        return outcome

    def is_healthy(self, request: Request) -> Blocking[bool]:
        """Whether the herder processed a health check within ten seconds."""
        pending = self.herder.submit(request)
        yield _until_done(pending, self.now_ms + HEALTH_CHECK_TIMEOUT_MS)
        return pending.done

    def stage_text(self) -> str:
        """Describe what the herder's thread is doing, as a sentence; empty when it is not known.

        Source: Stage.summarize.
        """
        stage = self.herder.stage
        if stage is None:
            return ""
        began = instant_text(stage.started_ms)
        if stage.completed_ms is None:
            return f"The worker is currently {stage.description}, which began at {began}."
        return (
            f"The last operation the worker completed was {stage.description}, "
            f"which began at {began} and completed at {instant_text(stage.completed_ms)}."
        )

    def _outcome(self, request: Request) -> Blocking[Outcome]:
        pending = self.herder.submit(request)
        yield _until_done(pending, self.now_ms + REQUEST_TIMEOUT_MS)
        if not pending.done:
            doing = self.stage_text()
            message = f"Request timed out. {doing}" if doing else "Request timed out"
            raise RestError(INTERNAL_SERVER_ERROR, message)
        return pending.result()

    def _forward(self, forward: Forward, url: str | None) -> Blocking[ForwardedAnswer]:
        if forward.flag is False:
            raise RestError(
                CONFLICT,
                "Cannot complete request because of a conflicting operation "
                "(e.g. worker rebalance)",
            )
        if url is None:
            raise RestError(
                CONFLICT,
                "Cannot complete request momentarily due to no known leader URL, "
                "likely because a rebalance was underway.",
            )
        query = urlencode(
            (("forward", "true" if forward.flag is None else "false"), *forward.query)
        )
        return (yield from self._call(url.rstrip("/"), f"{forward.path}?{query}", forward))

    def _call(self, url: str, target: str, forward: Forward) -> Blocking[ForwardedAnswer]:
        """Call another worker, without a timeout as in Java. Source: RestClient.httpRequest."""
        headers = {"accept": JSON, "user-agent": "kafka-connect"}
        if "authorization" in forward.headers:
            headers["authorization"] = forward.headers["authorization"]
        if forward.body is not None:
            headers["content-type"] = JSON
        request = HttpRequest(
            method=forward.method, target=target, headers=headers, body=forward.body or b""
        )
        called = self._outbox.ask(lambda token: CallHttp(token=token, url=url, request=request))
        yield Wait(called)
        if called.error is not None:
            raise _io_error(called.error)
        return _read(cast("HttpResponse", called.value))


def _until_done(pending: Pending[Outcome], until_ms: int) -> Wait:
    return Wait(cast("Pending[object]", pending), until_ms=until_ms)


def _read(response: HttpResponse) -> ForwardedAnswer:
    """Return the answer of another worker, or raise the error that it holds."""
    if response.status == NO_CONTENT:
        return ForwardedAnswer(response.status, None)
    if _FIRST_REDIRECT <= response.status < _FIRST_ERROR:
        raise RestError(
            INTERNAL_SERVER_ERROR,
            f"Unexpected status code when handling forwarded request: {response.status}",
        )
    try:
        value = json.loads(response.body)
    except (ValueError, RecursionError) as error:
        # A worker whose resources are not up yet answers 404 with a page instead of JSON.
        raise _io_error(str(error)) from error
    if response.status >= _FIRST_ERROR:
        message = value.get("message") if isinstance(value, dict) else None
        raise RestError(response.status, str(message))
    return ForwardedAnswer(response.status, value)


def _io_error(reason: str) -> RestError:
    return RestError(INTERNAL_SERVER_ERROR, f"IO Error trying to forward REST request: {reason}")


def instant_text(at_ms: int) -> str:
    """Format an instant as Java does, in UTC. Source: java.time.Instant.toString."""
    whole = datetime.fromtimestamp(at_ms // 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{at_ms % 1000:03d}Z" if at_ms % 1000 else f"{whole}Z"
