"""The place of one answer: what request it is of, and how it becomes a frame."""

from inspect import GEN_RUNNING, getgeneratorstate
from typing import Protocol

from msgspec import Struct

from coordinator_sim.broker.jobs import NO_TOKEN, Jobs
from coordinator_sim.errors import described
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.steps import Steps
from coordinator_sim.messages.codec.answers import fitted
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
        """The answer without its length has come; None says that there is none."""
        ...

    def overtaken(self, frame: bytes, within_ms: int) -> None:
        """Send the answer behind the next one, or after so much wall time where none comes."""
        ...

    def throttled(self, throttle_time_ms: int) -> None:
        """Take no further request for so much wall time from now on."""
        ...

    def ended(self, reason: str) -> None:
        """End the connection without an answer. `reason` is for the log."""
        ...


class AnswerPlace(Protocol):
    """Takes the answer of one request."""

    def answered(self, response: Struct | None) -> None:
        """The answer has come; None sends nothing."""
        ...

    def throttled(self, throttle_time_ms: int) -> None:
        """The sender's next request waits for so much wall time from now on, and for the answer."""
        ...

    def closed(self) -> None:
        """No answer comes: the connection is to end."""
        ...


class PendingAnswer:
    """The place of one answer; long answers are written in slices.

    Whoever answers is at work for somebody else perhaps: an answer that cannot be written ends the
    connection that waits for it, and raises nothing.

    Args:
        asker: Who waits for it.
        api: Of the request, as its version.
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
            fitting = fitted(response, self.version, self.request)
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
