"""A stand-in share coordinator: succeeds immediately, on release, or never."""

from collections import deque

from coordinator_sim.coordinator.share.persister import (
    PersisterAnswer,
    PersisterCall,
    answer_alike,
)
from coordinator_sim.kafka.errors import ErrorCode


class StandInPersister:
    """Answers the calls of a group coordinator without keeping any state.

    Attributes:
        holds: Whether calls to come wait for `release`; otherwise each succeeds at once.
        calls: The calls since they were last looked at, in order.
    """

    __slots__ = ("_held", "calls", "holds")

    def __init__(self) -> None:
        self.holds = False
        self.calls: list[PersisterCall] = []
        self._held: deque[PersisterCall] = deque()

    def asked(self, call: PersisterCall) -> PersisterAnswer | None:
        """Return the answer to a call; None for one that is held."""
        self.calls.append(call)
        if self.holds:
            self._held.append(call)
            return None
        return answer_alike(call.request)

    def release(self) -> PersisterCall | None:
        """Return the oldest call that is held, which is held no longer; None if there is none."""
        return self._held.popleft() if self._held else None


def outcome(call: PersisterCall, error: ErrorCode, *, thrown: bool) -> PersisterAnswer:
    """Return the answer that has this error: in each partition, or of the call as a whole."""
    return PersisterAnswer(failure=error) if thrown else answer_alike(call.request, error)
