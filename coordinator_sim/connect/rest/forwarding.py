"""Waiting for the herder on behalf of a REST request, and asking another worker instead.

A user's request goes over at most two hops: the first worker forwards it with `forward=true`, the
second with `forward=false`, the third gives up.

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
        """Since when."""
        ...

    @property
    def completed_ms(self) -> int | None:
        """Until when; None while it lasts."""
        ...


class RestHerder(Protocol):
    """The herder as the REST resources see it."""

    def submit(self, request: Request) -> Pending[Outcome]:
        """Have the herder do something; what is answered completes with its outcome."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether a tick has ended since the start."""
        ...

    @property
    def stage(self) -> Stage | None:
        """What its thread is doing; None when nothing is known of it."""
        ...

    @property
    def logger_levels(self) -> Mapping[str, str]:
        """Levels that the whole cluster was told to log at, by namespace."""
        ...


class Forward(Struct, frozen=True, kw_only=True):
    """How a request looks to another worker.

    Args:
        path: Encoded.
        query: Besides `forward`, in order.
        body: Its JSON; None for none.
        headers: Of the request as it came; only the authorization is passed on.
        flag: The `forward` of the request as it came; None for a user's own.
    """

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: Mapping[str, str]
    flag: bool | None


class ForwardedAnswer(Struct, frozen=True):
    """What another worker answered; the value is that of its JSON body, None without one."""

    status: int
    value: object


class RequestHandler:
    """Completes requests by the herder of this worker or by another worker.

    Args:
        herder: Of this worker.
        outbox: Of this worker.
    """

    __slots__ = ("_outbox", "herder")

    def __init__(self, herder: RestHerder, outbox: Outbox) -> None:
        self.herder = herder
        self._outbox = outbox

    @property
    def now_ms(self) -> int:
        """The present instant."""
        return self._outbox.now_ms

    def complete(self, request: Request, kind: type[R]) -> Blocking[R]:
        """Have the herder do it.

        Args:
            request: What.
            kind: Of the result.

        Raises:
            RestError: what the request's failure is over HTTP; 500 after 90 seconds.
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
        """Have the herder do it, or the worker that it names.

        Raises:
            RestError: as `complete`; 409 when nobody can be asked, or a rebalance is near.
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
        """Whether the herder came round to a health check within ten seconds."""
        pending = self.herder.submit(request)
        yield _until_done(pending, self.now_ms + HEALTH_CHECK_TIMEOUT_MS)
        return pending.done

    def stage_text(self) -> str:
        """What the herder's thread is doing, as a sentence; empty when it is not known.

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
        """Source: RestClient.httpRequest. Java sets no limit of time here."""
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
    """The answer of another worker, or the error that it was."""
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
        # So it is with a worker whose resources are not up: its 404 is a page, no JSON.
        raise _io_error(str(error)) from error
    if response.status >= _FIRST_ERROR:
        message = value.get("message") if isinstance(value, dict) else None
        raise RestError(response.status, str(message))
    return ForwardedAnswer(response.status, value)


def _io_error(reason: str) -> RestError:
    return RestError(INTERNAL_SERVER_ERROR, f"IO Error trying to forward REST request: {reason}")


def instant_text(at_ms: int) -> str:
    """An instant as Java prints it, in UTC. Source: java.time.Instant.toString."""
    whole = datetime.fromtimestamp(at_ms // 1000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{whole}.{at_ms % 1000:03d}Z" if at_ms % 1000 else f"{whole}Z"
