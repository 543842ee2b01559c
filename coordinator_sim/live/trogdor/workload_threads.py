"""A workload's threads as threads of this process, one of which runs at a time.

A thread holds the lock while its generator runs, and gives it up while it waits and while it is in
a call that blocks. So the state of a workload needs no locks of its own.
"""

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from coordinator_sim.clock import Action
from coordinator_sim.connect.thread import Blocking, Wait
from coordinator_sim.trogdor.workloads.clients import Interrupted

T = TypeVar("T")

_NS_PER_MS: Final = 1_000_000
_MS_PER_S: Final = 1_000
_LONGEST_S: Final = 3_600.0
"""Longest wait of one turn; waits go on after it."""


def now_ms() -> int:
    """The wall clock, as Java's `Time.SYSTEM`: stamps in records are compared between processes."""
    return time.time_ns() // _NS_PER_MS


class WorkloadThreads:
    """The threads of one workload, which a thread outside them makes and interrupts."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # Waits for an instant alone need not look at each outcome of a record.
        self._time_passed = threading.Condition(self._lock)
        self._outcome_came = threading.Condition(self._lock)
        self._thread_ended = threading.Condition(self._lock)
        self._main = threading.get_ident()
        self._count = 0
        self._is_interrupted = False

    def start(self, thread: Blocking[None]) -> None:
        """Run a thread; after an interrupt, do not."""
        with self._lock:
            if self._is_interrupted:
                thread.close()
                return
            self._count += 1
        threading.Thread(target=self._run, args=(thread,), daemon=True).start()

    def interrupt(self) -> None:
        """Stop every thread, and return when none runs any more.

        A thread in a call that cannot be broken off is stopped when the call is over.
        """
        with self._lock:
            self._is_interrupted = True
            self._time_passed.notify_all()
            self._outcome_came.notify_all()
            while self._count:
                self._thread_ended.wait()

    def call(self, action: Action) -> None:
        """Do something while no thread runs; what waits for an outcome looks again."""
        with self._lock:
            action()
            self._outcome_came.notify_all()

    def run(self, work: Blocking[T]) -> T:
        """Run what is no thread of the workload to its end; no interrupt stops it."""
        with self._lock:
            while True:
                try:
                    wait = next(work)
                except StopIteration as over:
                    result: T = over.value
                    return result
                self._await(wait)

    def outside(self, blocking: Callable[[], T]) -> T:
        """Return what a blocking call returns, while other threads run.

        Raises:
            Interrupted: the thread is to stop; the call was made.
        """
        self._check()
        self._lock.release()
        try:
            result = blocking()
        finally:
            self._lock.acquire()
        self._check()
        return result

    def await_outcome(self, until_ms: int) -> None:
        """Wait for the outcome of a record, or an instant.

        Raises:
            Interrupted: the thread is to stop.
        """
        self._check()
        self._outcome_came.wait(self._seconds_to(until_ms))
        self._check()

    def _run(self, thread: Blocking[None]) -> None:
        with self._lock:
            try:
                for wait in thread:
                    self._await(wait)
            except Interrupted:
                thread.close()
            finally:
                self._count -= 1
                self._thread_ended.notify_all()

    def _await(self, wait: Wait) -> None:
        condition = self._outcome_came if wait.pending else self._time_passed
        self._check()
        while not wait.is_over(now_ms()):
            condition.wait(self._seconds_to(wait.until_ms))
            self._check()

    def _seconds_to(self, until_ms: int) -> float:
        return min(max(0, until_ms - now_ms()) / _MS_PER_S, _LONGEST_S)

    def _check(self) -> None:
        if self._is_interrupted and threading.get_ident() != self._main:
            raise Interrupted("the workload is being stopped")
