"""Requests that take long, worked on in slices, so that other clients are answered in between.

A request is work in steps (`wire.steps`). Its first slice is done as the request comes; nearly all
are finished then. What is not goes on slice by slice, by turns with other such requests, whenever
the driver calls `work`. The connection of the request waits meanwhile, as for any late answer.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from msgspec import Struct

from coordinator_sim.mini_broker.contract import Answers, Call, Instants
from coordinator_sim.wire.steps import Steps, do_slice

R = TypeVar("R", bound=Struct)
"""A response."""


class Jobs:
    """The requests that are not finished yet.

    One whose client is gone is finished all the same, as a broker does with what it has received.

    Args:
        answers: Where the answers go.

    Attributes:
        answers: Likewise.
        now: The present of whatever is worked on.
        turn: Changes with every slice: work that finds another one than before was interrupted, and
            what it knew of the cluster may be over.
        begun: Is called when there is work for `work` again.
    """

    __slots__ = ("_unfinished", "answers", "begun", "now", "turn")

    def __init__(self, answers: Answers) -> None:
        self.answers = answers
        self.now = Instants(0, 0)
        self.turn = 0
        self.begun: Callable[[], None] | None = None
        self._unfinished: deque[tuple[int, Steps[Struct | None]]] = deque()

    @property
    def has_work(self) -> bool:
        """Whether any request is not finished."""
        return bool(self._unfinished)

    def run(self, call: Call[Any], steps: Steps[R | None]) -> R | None:
        """Do the first slice of a request that has come just now; as `start`."""
        self.now = call.now
        return self.start(call.context.token, steps)

    def start(self, token: int, steps: Steps[R | None]) -> R | None:
        """Do the first slice of a request.

        Returns:
            Its answer; None where there is none, or it comes later.
        """
        try:
            self._do_slice(steps)
        except StopIteration as done:
            answer: R | None = done.value
            return answer
        self._unfinished.append((token, steps))
        if self.begun is not None:
            self.begun()
        return None

    def work(self, now: Instants) -> None:
        """Do one slice of the request whose turn it is.

        Raises:
            Exception: It met a bug; its connection is closed.
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
        """Raises StopIteration with what the work comes to, when it is over."""
        self.turn += 1
        do_slice(steps)
