"""Ends a process on SIGTERM or SIGINT: cleanly if its event loop runs, otherwise by force.

This module knows nothing of clusters.
"""

import asyncio
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from types import FrameType
from typing import Final

BUSY_S: Final = 5.0
"""A loop that does not react to a signal for so long hangs: a clean end is impossible."""
ENDING_S: Final = 90.0
"""How long a clean end may take, for example on a slow disk; systemd waits as long."""
_LOG: Final = logging.getLogger(__name__)


@contextmanager
def stopped_by_signals() -> Iterator[asyncio.Event]:
    """An event of the running loop that SIGTERM and SIGINT set; call it on the main thread.

    After a signal a thread watches the loop. If the loop does not notice the signal within
    `BUSY_S`, or the `with` block does not end within `ENDING_S`, the process ends as if it were
    killed; acknowledged data is in its log directory nevertheless.
    """
    watch = _Watch(asyncio.get_running_loop())
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, watch.ring) for number in numbers]
    try:
        yield watch.stopped
    finally:
        watch.end()
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class _Watch:
    """Watches a loop after a signal, on a thread that sleeps until then.

    Attributes:
        stopped: Set on the loop after the signal.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.stopped = asyncio.Event()
        self._loop = loop
        self._noticed = threading.Event()
        self._is_over = threading.Event()
        # A signal handler may put into a SimpleQueue, whatever it interrupted.
        self._signals: SimpleQueue[int] = SimpleQueue()
        threading.Thread(target=self._watch, name="signals", daemon=True).start()

    def ring(self, number: int, _frame: FrameType | None) -> None:
        """Handle a signal, at any point of the main thread."""
        self._signals.put(number)
        self._loop.call_soon_threadsafe(self._notice)

    def end(self) -> None:
        """End the watch."""
        self._is_over.set()
        self._signals.put(0)

    def _notice(self) -> None:
        self._noticed.set()
        self.stopped.set()

    def _watch(self) -> None:
        number = self._signals.get()
        if self._is_over.is_set():
            return
        if not self._noticed.wait(BUSY_S):
            _kill(number, f"the server was busy for {BUSY_S:g} s")
        if not self._is_over.wait(ENDING_S):
            _kill(number, f"the server did not end within {ENDING_S:g} s")


def _kill(number: int, reason: str) -> None:
    _LOG.error("%s after %s: it is killed", reason, signal.Signals(number).name)
    os._exit(128 + number)
