"""A worker's Java threads as generators: where Java blocks, the generator yields a `Wait`.

The herder's tick, start-up and a REST call read as their Java methods do, check by check; no clock,
socket or thread is here. A driver answers requests (`Outbox.answered`), sets the time, and lets
the threads run on (`Thread.run`) until each waits for something that has not come yet.
"""

from collections.abc import Callable, Generator
from typing import Generic, Protocol, TypeVar

from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.effects import WorkerEffect
from coordinator_sim.errors import InvariantViolation

T = TypeVar("T")


class Pending(Generic[T]):
    """Result that a thread may wait for: a value, or a failure named by `error`.

    Args:
        token: Token that the driver answers to; 0 when no driver is asked.
    """

    __slots__ = ("done", "error", "token", "value")

    def __init__(self, token: int = 0) -> None:
        self.token = token
        self.done = False
        self.value: T | None = None
        self.error: str | None = None

    def complete(self, value: T | None = None, error: str | None = None) -> None:
        """Succeed with a value, or fail with an error. Only the first outcome counts."""
        if not self.done:
            self.done, self.value, self.error = True, value, error

    def result(self) -> T:
        """Return the value of a successful result.

        Raises:
            InvariantViolation: the result is an error or not there; look at `error` first.
        """
        if self.value is None:
            raise InvariantViolation(f"no result: done={self.done}, error={self.error}")
        return self.value


class Awaited(Protocol):
    """Result that a wait depends on: a `Pending` of any value."""

    @property
    def done(self) -> bool:
        """Whether the result is there."""
        ...


class Wait:
    """Condition that a thread blocks on: one of several results, or an instant.

    Args:
        until_ms: Instant at which the wait ends in any case.
        pending: Results, any of which ends the wait.
    """

    __slots__ = ("pending", "until_ms")

    def __init__(self, *pending: Awaited, until_ms: int = FOREVER) -> None:
        self.pending = pending
        self.until_ms = until_ms

    def is_over(self, now_ms: int) -> bool:
        """Whether the thread may run on."""
        return now_ms >= self.until_ms or any(each.done for each in self.pending)


Blocking = Generator[Wait, None, T]
"""A Java method that may block, called with `yield from`; returns a T."""


class Thread:
    """One Java thread, run by the driver from one wait to the next.

    Args:
        main: The thread's body, created and not yet begun.
    """

    __slots__ = ("_main", "_wait", "is_finished")

    def __init__(self, main: Blocking[None]) -> None:
        self._main = main
        self._wait = Wait(until_ms=0)
        self.is_finished = False

    def run(self, now_ms: int) -> bool:
        """Run on as far as possible; return whether the thread moved at all."""
        moved = False
        while not self.is_finished and self._wait.is_over(now_ms):
            moved = True
            try:
                self._wait = next(self._main)
            except StopIteration:
                self.is_finished = True
        return moved

    def kill(self) -> None:
        """Abort the thread, as the death of its process does."""
        self._main.close()
        self.is_finished = True

    @property
    def deadline_ms(self) -> int:
        """When the thread runs on by itself; FOREVER when only an answer can move it."""
        return FOREVER if self.is_finished else self._wait.until_ms


class Threads:
    """The live threads of one process, run in the order they were started.

    Ended threads are forgotten; waiting threads without a deadline cost nothing.
    """

    def __init__(self) -> None:
        self._threads: list[Thread] = []

    def start(self, main: Blocking[None]) -> Thread:
        """Add a thread; it begins with the next `run`, or in the present one."""
        thread = Thread(main)
        self._threads.append(thread)
        return thread

    def run(self, now_ms: int) -> bool:
        """Run all threads until each waits for something new; return whether any moved at all."""
        moved_at_all = False
        moved = True
        while moved:
            moved = False
            # Threads started meanwhile are reached by the same loop.
            for thread in self._threads:
                moved = thread.run(now_ms) or moved
            if moved:
                moved_at_all = True
                self._threads = [each for each in self._threads if not each.is_finished]
        return moved_at_all

    def kill(self) -> None:
        """Abort every thread."""
        for thread in self._threads:
            thread.kill()
        self._threads = []

    @property
    def deadline_ms(self) -> int:
        """When the first thread runs on by itself; FOREVER when only an answer can move one."""
        return min((each.deadline_ms for each in self._threads), default=FOREVER)


class Outbox:
    """Effects that all parts of one worker request of its driver, in order.

    Attributes:
        now_ms: The present instant; the driver sets it before anything else.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._effects: list[WorkerEffect] = []
        self._pending: dict[int, Pending[object]] = {}
        self._next_token = 1

    def tell(self, effect: WorkerEffect) -> None:
        """Request an effect whose completion is not awaited."""
        self._effects.append(effect)

    def ask(self, effect_of: Callable[[int], WorkerEffect]) -> Pending[object]:
        """Request an effect; the returned result is completed by its answer.

        Args:
            effect_of: Makes the effect, given its token.
        """
        pending: Pending[object] = Pending(self._next_token)
        self._next_token += 1
        self._pending[pending.token] = pending
        self._effects.append(effect_of(pending.token))
        return pending

    def answered(self, token: int, value: object = None, error: str | None = None) -> None:
        """Complete the result for a token; an unknown token is ignored."""
        pending = self._pending.pop(token, None)
        if pending is not None:
            pending.complete(value, error)

    def take(self) -> tuple[WorkerEffect, ...]:
        """Return the effects requested since the last call."""
        effects = tuple(self._effects)
        self._effects.clear()
        return effects
