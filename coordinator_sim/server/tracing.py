"""What is served, recorded as a trace on disk: the same as a simulated run leaves.

Events go through a bounded buffer to a thread that writes. When the buffer is full the cluster
waits: nothing is dropped, and the waits are counted.
"""

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coordinator_sim.errors import described
from coordinator_sim.server.control.models import TraceView
from coordinator_sim.trace.events import RunInfo, TraceEvent
from coordinator_sim.trace.schema import EVENTS_DIR

if TYPE_CHECKING:
    from coordinator_sim.ingest.run_directory import RunDirectoryWriter

BUFFERED: Final = 1_000
"""Verbs whose events may wait to be written."""

_LOG: Final = logging.getLogger(__name__)
_Events = tuple[TraceEvent, ...]


class _Recording:
    """One trace under way.

    Args:
        writer: Writes it.
        buffered: Bound of the buffer.
    """

    def __init__(self, directory: Path, writer: "RunDirectoryWriter", buffered: int) -> None:
        self.directory = directory
        self.count = 0
        self.stalls = 0
        self.failure: BaseException | None = None
        self._writer = writer
        self._buffer: queue.Queue[_Events | None] = queue.Queue(buffered)
        self._thread = threading.Thread(target=self._write, name="trace", daemon=True)
        self._thread.start()

    def take(self, events: _Events) -> None:
        self.count += len(events)
        try:
            self._buffer.put_nowait(events)
        except queue.Full:
            self.stalls += 1
            self._buffer.put(events)

    def end(self) -> None:
        """Return when all is written."""
        self._buffer.put(None)
        self._thread.join()

    def _write(self) -> None:
        try:
            with self._writer:
                while (events := self._buffer.get()) is not None:
                    for event in events:
                        self._writer.record(event)
        except Exception as error:  # noqa: BLE001 - else a full buffer would stop the brokers
            _LOG.error("the trace in %s ends here: %s", self.directory, described(error))
            self.failure = error
            while self._buffer.get() is not None:
                self.count -= 1


class Tracing:
    """Begins and ends traces of one served cluster.

    Args:
        info: What the whole run shares, asked when a trace begins.
        scratch: Makes a directory for a trace that names none.
        buffered: Bound of the buffer.

    Attributes:
        changed: Called when a recording begins or ends.
    """

    __slots__ = ("_buffered", "_info", "_last", "_recording", "_scratch", "changed")

    def __init__(
        self,
        info: Callable[[], RunInfo],
        scratch: Callable[[], Path],
        buffered: int = BUFFERED,
    ) -> None:
        self._info = info
        self._scratch = scratch
        self._buffered = buffered
        self._recording: _Recording | None = None
        self._last = TraceView(recording=False)
        self.changed: Callable[[], None] = lambda: None

    def take(self, events: _Events) -> None:
        """Record events, if anything is recorded; waits while the buffer is full."""
        if self._recording is not None:
            self._recording.take(events)

    def start(self, directory: str | Path | None) -> None:
        """Begin a trace; what is recorded already goes on instead if it is the same directory.

        Raises:
            ConfigError: the directory holds something that is no trace, or one is under way.
        """
        from coordinator_sim.errors import ConfigError
        from coordinator_sim.ingest.run_directory import RunDirectoryWriter

        if self._recording is not None:
            raise ConfigError(f"a trace is under way in {self._recording.directory}: stop it first")
        path = self._scratch() if directory is None else Path(directory)
        writer = RunDirectoryWriter(path, self._info(), format="jsonl")
        self._recording = _Recording(path, writer, self._buffered)
        self.changed()

    async def stop(self) -> TraceView:
        """End the trace under way; its directory is whole then."""
        recording = self._recording
        if recording is not None:
            self._recording = None
            self.changed()
            await asyncio.to_thread(recording.end)
            self._last = _view(recording, is_on=False)
        return self._last

    def lines(self) -> Iterator[bytes] | None:
        """The events of the last finished trace as JSON lines; None when there is none."""
        if self._recording is not None or self._last.directory is None:
            return None
        path = Path(self._last.directory) / EVENTS_DIR / f"{EVENTS_DIR}.jsonl"
        return _lines(path)

    def view(self) -> TraceView:
        """What is recorded, or was last."""
        if self._recording is None:
            return self._last
        return _view(self._recording, is_on=True)


def _lines(path: Path) -> Iterator[bytes]:
    if path.is_file():
        with path.open("rb") as lines:
            yield from lines


def _view(recording: _Recording, *, is_on: bool) -> TraceView:
    return TraceView(
        recording=is_on and recording.failure is None,
        directory=str(recording.directory),
        events=recording.count,
        stalls=recording.stalls,
    )
