"""Threads for blocking calls that the process does not wait for at its end.

The standard library joins its pools at exit, and a call into librdkafka may take a minute.
"""

import asyncio
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from confluent_kafka import KafkaException

from coordinator_sim.errors import CoordinatorSimError

T = TypeVar("T")


def in_background(name: str, work: Callable[[], object]) -> None:
    """Run work in a thread of its own."""
    threading.Thread(target=work, name=name, daemon=True).start()


async def in_thread(work: Callable[[], T]) -> T:
    """Return what a blocking call returns, or raise what it raises.

    Raises:
        KafkaException: the call raised it.
        CoordinatorSimError: the call raised it.
    """
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            result = work()
        except (KafkaException, CoordinatorSimError) as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)
        finally:
            outcome.cancel()  # after a bug; a settled outcome stays

    in_background("calls", run)
    return await asyncio.wrap_future(outcome)


def without_waiting(path: str, flags: int) -> int:
    """Opener for `open` that does not block on a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


class InOrder:
    """A thread that runs jobs in order.

    Args:
        name: Name of the thread.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        in_background(name, self._run)

    def submit(self, work: Callable[[], object]) -> None:
        """Run a job after those submitted before."""
        self._queue.put(work)

    def end(self) -> None:
        """End after the submitted jobs; returns at once."""
        self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()
