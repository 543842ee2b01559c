"""Blocking calls in threads of their own."""

import asyncio
import threading

import pytest

from coordinator_sim.errors import DataError
from coordinator_sim.live.background import InOrder, in_thread


def test_a_call_returns_or_raises_on_the_loop() -> None:
    """What the thread raises arrives where it is waited for."""

    def fail() -> None:
        raise DataError("no")

    async def both() -> str:
        with pytest.raises(DataError, match="no"):
            await in_thread(fail)
        return await in_thread(lambda: threading.current_thread().name)

    assert asyncio.run(both()) == "calls"


def test_one_thing_follows_another() -> None:
    """In one thread, in the order submitted, until it is told to end."""
    done: list[int] = []
    over = threading.Event()
    thread = InOrder("test")
    for number in range(100):
        thread.submit(lambda number=number: done.append(number))
    thread.submit(over.set)
    thread.end()

    assert over.wait(10)
    assert done == list(range(100))
