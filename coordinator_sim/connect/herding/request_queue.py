"""Queue of requests to the herder's thread, ordered by due time and then by arrival.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, addRequest,
runRequest, DistributedHerderRequest.
"""

from collections.abc import Callable
from heapq import heappop, heappush

from coordinator_sim.connect.exceptions import JavaException
from coordinator_sim.connect.herding.refusals import failure_of
from coordinator_sim.connect.herding.requests import Outcome
from coordinator_sim.connect.thread import Blocking, Pending

Action = Callable[[], Blocking[Outcome | None]]
"""Work of the herder's thread for a request; returns its outcome, None if another thread answers.

May raise a JavaException, which is the outcome then.
"""


class QueuedRequest:
    """A request that waits for the herder's thread.

    Args:
        due_ms: Earliest instant at which the request may run.
        sequence: Order of arrival, for requests of one instant.
        action: The work to do.
        answer: Completed with the outcome.
    """

    __slots__ = ("action", "answer", "due_ms", "sequence")

    def __init__(
        self, due_ms: int, sequence: int, action: Action, answer: Pending[Outcome]
    ) -> None:
        self.due_ms = due_ms
        self.sequence = sequence
        self.action = action
        self.answer = answer

    def __lt__(self, other: "QueuedRequest") -> bool:
        """Whether this request runs before the other."""
        return (self.due_ms, self.sequence) < (other.due_ms, other.sequence)

    def run(self) -> Blocking[None]:
        """Run the action, and complete the answer unless another thread will."""
        try:
            outcome = yield from self.action()
        except JavaException as exception:
            outcome = failure_of(exception)
        if outcome is not None:
            self.answer.complete(outcome)


class RequestQueue:
    """The herder's queue."""

    def __init__(self) -> None:
        self._heap: list[QueuedRequest] = []
        self._sequence = 0

    def add(self, due_ms: int, action: Action, answer: Pending[Outcome]) -> bool:
        """Queue a request; return whether it is now the first, so that the herder must wake up."""
        self._sequence += 1
        request = QueuedRequest(due_ms, self._sequence, action, answer)
        heappush(self._heap, request)
        return self._heap[0] is request

    @property
    def first(self) -> QueuedRequest | None:
        """Request that runs next; None when the queue is empty."""
        return self._heap[0] if self._heap else None

    def take(self) -> QueuedRequest:
        """Remove and return the request that runs next; the queue must not be empty."""
        return heappop(self._heap)
