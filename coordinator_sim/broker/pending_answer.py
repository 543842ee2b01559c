"""The answer to one request, on its way from a broker to the connection that waits for it."""

from inspect import GEN_RUNNING, getgeneratorstate
from typing import Protocol

from msgspec import Struct

from coordinator_sim.broker.scheduler import NO_TOKEN, Jobs
from coordinator_sim.errors import described
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.codec.answers import FITTED
from coordinator_sim.messages.codec.compiler import has_rows, response_steps, response_writer


class Output(Protocol):
    """The way out of a connection."""

    def write(self, data: bytes) -> None:
        """Send bytes, in order."""
        ...

    def close(self, reason: str) -> None:
        """End the connection; what was written still leaves. `reason` is for the log."""
        ...


class Asker(Protocol):
    """Who waits for an answer."""

    def answered(self, frame: bytes | None) -> None:
        """Take the response frame without its length prefix; None means that none is sent."""
        ...

    def overtaken(self, frame: bytes, within_ms: int) -> None:
        """Send the answer after the next one, or after `within_ms` of wall time without a next."""
        ...

    def throttled(self, throttle_time_ms: int) -> None:
        """Take no further request for `throttle_time_ms` of wall time from now on."""
        ...

    def ended(self, reason: str) -> None:
        """End the connection without an answer. `reason` is for the log."""
        ...


class PendingAnswer:
    """Encodes and sends the response of one request; long responses are written in slices.

    Encoding errors close this connection and are never raised, because the caller may be serving
    another client.

    Args:
        asker: The connection that waits for it.
        api: API of the request.
        version: Version of the request.
        correlation_id: Correlation id of the request.
        jobs: Runs the remaining slices of a long answer.

    Attributes:
        request: The answers of some versions repeat it; None until it is read.
    """

    __slots__ = ("_jobs", "_steps", "api", "asker", "correlation_id", "request", "version")

    def __init__(
        self, asker: Asker, api: ApiKey, version: int, correlation_id: int, jobs: Jobs
    ) -> None:
        self._jobs = jobs
        self._steps: Steps[None] | None = None
        self.asker = asker
        self.api = api
        self.version = version
        self.correlation_id = correlation_id
        self.request: Struct | None = None

    def answered(self, response: Struct | None) -> None:
        """The answer has come; None sends nothing."""
        try:
            if response is None:
                self.asker.answered(None)
                return
            change = FITTED.get(type(response))
            fitting = response if change is None else change(response, self.version, self.request)
            if has_rows(self.api, self.version):
                self._steps = self._writing(fitting)
                self._jobs.start(NO_TOKEN, self._steps)
            else:
                write = response_writer(self.api, self.version)
                self.asker.answered(write(self.correlation_id, fitting))
        except Exception as error:  # noqa: BLE001 - see the class
            self._unwritable(error)

    def throttled(self, throttle_time_ms: int) -> None:
        """Mute the connection; see `AnswerPlace.throttled`."""
        self.asker.throttled(throttle_time_ms)

    def abandon(self) -> None:
        """Stop writing the answer: the client has disconnected."""
        if self._steps is not None and getgeneratorstate(self._steps) != GEN_RUNNING:
            self._steps.close()

    def _writing(self, response: Struct) -> Steps[None]:
        try:
            write = response_steps(self.api, self.version)
            frame = yield from write(self.correlation_id, response)
            self.asker.answered(frame)
        except Exception as error:  # noqa: BLE001 - see the class
            self._unwritable(error)

    def closed(self) -> None:
        """The connection ends instead of an answer."""
        self.asker.ended(f"a {self.api.name} without acknowledgement that failed")

    def _unwritable(self, error: Exception) -> None:
        text = f"an answer to a {self.api.name} of version {self.version} met a bug"
        self.asker.ended(f"{text}: {described(error)}")
