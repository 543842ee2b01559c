"""The deadlines of a cluster, and long requests in slices, so that others are answered in between.

A request is work in steps (`log.format.steps`). The first slice runs when the request arrives;
nearly all requests finish in it. The others continue slice by slice, in turn, whenever the driver
calls `work`. The connection of the request waits meanwhile, as for any late answer.
"""

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from coordinator_sim.broker.contract import Answers, Call, Handler, Instants, Timed
from coordinator_sim.errors import described
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


Task = Callable[[Instants], None]
"""Work to do; called with the present instants."""

WakeBy = Callable[[int | None], None]
"""Arms the alarm for an instant, unless an earlier one is armed; None arms nothing."""

_Entry = tuple[int, int, Task]


class Scheduler:
    """The alarm of a cluster, on both clocks.

    Whoever arms a timer calls `wake_by_group_ms` or `wake_by_wall_ms`. A postponed deadline may
    fire early; that is harmless. After `expire`, all families arm the alarm for what is left.

    Attributes:
        group_ms: When `expire` is due by the group clock, or earlier; None if nothing is armed.
        wall_ms: When `expire` is due by the wall clock, or earlier; None if nothing is armed.
        has_moved: Whether either of them changed since `next_deadline_ms` was called.
    """

    __slots__ = (
        "_by_group",
        "_by_wall",
        "_count",
        "_families",
        "group_ms",
        "has_moved",
        "wall_ms",
    )

    def __init__(self) -> None:
        self._by_group: list[_Entry] = []
        self._by_wall: list[_Entry] = []
        self._count = 0
        self._families: list[Timed] = []
        self.group_ms: int | None = None
        self.wall_ms: int | None = None
        self.has_moved = True

    def watch(self, *families: Timed) -> None:
        """Fire the deadlines of more families, after those of earlier families."""
        self._families += families

    # -- tasks -----------------------------------------------------------------------------

    def at_group_ms(self, at_ms: int, task: Task) -> None:
        """Run a task when the group clock reaches an instant; tasks of one instant in order."""
        self._put(self._by_group, at_ms, task)
        self.wake_by_group_ms(at_ms)

    def at_wall_ms(self, at_ms: int, task: Task) -> None:
        """Run a task when the wall clock reaches an instant; tasks of one instant in order."""
        self._put(self._by_wall, at_ms, task)
        self.wake_by_wall_ms(at_ms)

    def _put(self, entries: list[_Entry], at_ms: int, task: Task) -> None:
        self._count += 1
        heappush(entries, (at_ms, self._count, task))

    @property
    def has_tasks(self) -> bool:
        """Whether any task waits."""
        return bool(self._by_group or self._by_wall)

    # -- time ------------------------------------------------------------------------------

    def expire(self, now: Instants) -> None:
        """Run what is due, tasks first, and arm the alarm for the rest.

        Raises:
            ExceptionGroup: All failures, after everything else has run.
        """
        failures: list[Exception] = []
        for expire in (self._run_tasks, *(family.expire for family in self._families)):
            try:
                expire(now)
            except Exception as error:  # noqa: BLE001 - raised below
                failures.append(error)
        self.arm()
        if failures:
            texts = "; ".join(described(each) for each in failures)
            raise ExceptionGroup(f"deadlines met a bug: {texts}", failures)

    def _run_tasks(self, now: Instants) -> None:
        for entries, now_ms in ((self._by_group, now.group_ms), (self._by_wall, now.wall_ms)):
            while entries and entries[0][0] <= now_ms:
                heappop(entries)[2](now)

    # -- deadlines -------------------------------------------------------------------------

    def arm(self) -> None:
        """Arm the alarm anew: after it fired, or when the timers of a broker resume."""
        self.group_ms = _first(self._by_group)
        self.wall_ms = _first(self._by_wall)
        self.has_moved = True
        for family in self._families:
            family.arm()

    def wake_by_group_ms(self, at_ms: int | None) -> None:
        """Call `expire` when the group clock reaches an instant, or earlier; None for never."""
        if at_ms is not None and (self.group_ms is None or at_ms < self.group_ms):
            self.group_ms = at_ms
            self.has_moved = True

    def wake_by_wall_ms(self, at_ms: int | None) -> None:
        """Call `expire` when the wall clock reaches an instant, or earlier; None for never."""
        if at_ms is not None and (self.wall_ms is None or at_ms < self.wall_ms):
            self.wall_ms = at_ms
            self.has_moved = True

    def next_deadline_ms(self) -> int | None:
        """The earlier of `group_ms` and `wall_ms`, for a driver with one clock for both."""
        self.has_moved = False
        return earliest((self.group_ms, self.wall_ms))

    def exact_group_deadline_ms(self) -> int | None:
        """The earliest deadline on the group clock, None if there is none. Asks every family."""
        exact = (family.next_group_deadline_ms() for family in self._families)
        return earliest((_first(self._by_group), *exact))


def _first(entries: list[_Entry]) -> int | None:
    return entries[0][0] if entries else None


def earliest(instants: Iterable[int | None]) -> int | None:
    """The earliest of some instants, None if there is none."""
    return min((each for each in instants if each is not None), default=None)
