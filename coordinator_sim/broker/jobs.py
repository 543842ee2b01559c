"""Long requests, worked on in slices, so that other clients are answered in between.

A request is work in steps (`log.format.steps`). The first slice runs when the request arrives;
nearly all requests finish in it. The others continue slice by slice, in turn, whenever the driver
calls `work`. The connection of the request waits meanwhile, as for any late answer.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.broker.contract import Answers, Call, Handler, Instants
from coordinator_sim.log.format.steps import Steps, do_slice

R = TypeVar("R", bound=Struct)
"""A response."""

WAITING_A_TURN: Final = 10
"""Queued requests worked on in a row before other clients are served."""
NO_TOKEN: Final = 0
"""Token of work that answers no request."""


class Waiting(Protocol):
    """A connection with requests that wait for their turn."""

    def work_on_next(self, now: Instants) -> None:
        """Work on the first of them."""
        ...


class Jobs:
    """The requests that are not finished yet.

    A request whose client is gone is finished all the same, as a broker does.

    Args:
        answers: Takes late answers.

    Attributes:
        answers: See above.
        now: The present for the request that is worked on.
        turn: Number of the slice: work that finds another number than before was interrupted, so
            what it read of the cluster may be outdated.
        begun: Called when there is work for `work` again.
        unmuted: Connections whose answer has come; the first request that waits there is next.
    """

    __slots__ = ("_unfinished", "answers", "begun", "now", "turn", "unmuted")

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.now = Instants(0, 0)
        self.turn = 0
        self.begun: Callable[[], None] | None = None
        self.unmuted: deque[Waiting] = deque()
        self._unfinished: deque[tuple[int, Steps[Struct | None]]] = deque()

    @property
    def has_work(self) -> bool:
        """Whether any request is not finished, or waits for its turn."""
        return bool(self._unfinished or self.unmuted)

    def go_on(self, now: Instants) -> None:
        """Work on requests that waited for answers: some, since thousands may wait."""
        for _ in range(WAITING_A_TURN):
            if not self.unmuted:
                return
            self.unmuted.popleft().work_on_next(now)
        if self.unmuted:
            self._wake()

    def _wake(self) -> None:
        if self.begun is not None:
            self.begun()

    def handler(self, work: Callable[[Call[Any]], Steps[Any]]) -> Handler:
        """The handler of requests that are worked on in steps."""
        return lambda call: self.run(call, work(call))

    def run(self, call: Call[Any], steps: Steps[R | None]) -> R | None:
        """Run the first slice of a request that has just arrived; see `start`."""
        self.now = call.now
        return self.start(call.context.token, steps)

    def start(self, token: int, steps: Steps[R | None]) -> R | None:
        """Run the first slice of a request.

        Returns:
            The answer; None if there is none, or if it comes later.
        """
        try:
            self._do_slice(steps)
        except StopIteration as done:
            answer: R | None = done.value
            return answer
        self._unfinished.append((token, steps))
        self._wake()
        return None

    def work(self, now: Instants) -> None:
        """Run one slice of the request whose turn it is.

        Raises:
            Exception: the request hit a bug; its connection is closed.
        """
        if not self._unfinished:
            return
        token, steps = self._unfinished.popleft()
        self.now = now
        try:
            self._do_slice(steps)
        except StopIteration as done:
            if done.value is not None:
                self.answers.answer(token, done.value)
        except Exception:
            self.answers.close(token)
            raise
        else:
            self._unfinished.append((token, steps))

    def _do_slice(self, steps: Steps[Struct | None]) -> None:
        """Run one slice; raise StopIteration with the result when the work is finished."""
        self.turn += 1
        do_slice(steps)
