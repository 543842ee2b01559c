"""Threads for calls that block, and that nobody waits for when the process ends.

A pool of the standard library is joined at exit, and a call into librdkafka may take a minute.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

from confluent_kafka import KafkaException

from coordinator_sim.errors import CoordinatorSimError

T = TypeVar("T")


def in_background(name: str, work: Callable[[], object]) -> None:
    """Do something in a thread of its own."""
    threading.Thread(target=work, name=name, daemon=True).start()


async def in_thread(work: Callable[[], T]) -> T:
    """What a blocking call returns, or raises.

    Raises:
        KafkaException: as the call.
        CoordinatorSimError: as the call.
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


class InOrder:
    """A thread that does one thing after another.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._queue: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        in_background(name, self._run)

    def submit(self, work: Callable[[], object]) -> None:
        """Do this after what was submitted before."""
        self._queue.put(work)

    def end(self) -> None:
        """End after what was submitted; returns at once."""
        self._queue.put(None)

    def _run(self) -> None:
        while (work := self._queue.get()) is not None:
            work()
